"""Everything that can be set, read once (serving guide, Rollout Configuration; behaviour 11)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from maserve.artifacts import StorageSettings, parse_storage_settings
from maserve.backends.triton import (
    DrainSettings,
    ProbeSettings,
    ReadinessProbe,
    TritonSettings,
    parse_readiness_probe,
)
from maserve.base.errors import Invalid, Problem
from maserve.cmd.carried_over import check_blocks, check_image, check_metric_gate
from maserve.cmd.section import Section
from maserve.deployment.stock import RolloutSettings
from maserve.resource.yamlform import Document, read_documents

DEFAULT_LOAD_TIMEOUT_S = 900.0

_ORIGIN = re.compile(r"\*|https?://[A-Za-z0-9.-]+(:[0-9]+)?|https?://\[[0-9a-fA-F:]+\](:[0-9]+)?")
"""What a browser sends as the origin of a page: scheme, host and port, nothing after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """`level` is debug, info, warning or error; `encoding` is console or json."""

    level: str = "info"
    encoding: str = "console"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSyncSettings:
    """How model-sync works beside each replica, in seconds."""

    unload_grace_s: float = 2.0
    load_timeout_s: float = DEFAULT_LOAD_TIMEOUT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """What callers may do at the gateway.

    `idle_timeout_s` is how long nothing of a request or its answer may move, 0 for ever.
    `cors_origins` are the origins of web pages that may ask it, `*` for all.
    """

    idle_timeout_s: float = 300.0
    cors_origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one control plane on one machine."""

    data_dir: Path
    api_address: str = "127.0.0.1:15566"
    gateway_address: str = "127.0.0.1:8880"
    metrics_address: str = "127.0.0.1:8091"
    logs: LogSettings = field(default_factory=LogSettings)
    triton: TritonSettings = field(default_factory=TritonSettings)
    rollout: RolloutSettings = field(default_factory=RolloutSettings)
    model_sync: ModelSyncSettings = field(default_factory=ModelSyncSettings)
    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
    storage_variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    keep_running: bool = False


def parse_settings(
    text: str,
    *,
    source: str = "settings",
    data_dir: Path,
    api_address: str,
    gateway_address: str,
    metrics_address: str,
    storage_variables: Mapping[str, str],
    keep_running: bool,
) -> Settings:
    """Read a settings file's text; addresses come from the command line.

    `storage_variables` are the storage vendors' usual ones; model-sync gets the same. `source`
    names the file in what is said about it.

    Raises `Invalid` with every unknown key and every wrong value, each with its line.
    """
    problems: list[Problem] = []
    elsewhere: list[Problem] = []
    document = _read(text, source)
    root = Section("", document.data, problems)
    settings = Settings(
        data_dir=data_dir,
        api_address=api_address,
        gateway_address=gateway_address,
        metrics_address=metrics_address,
        logs=_logs(root.part("logging")),
        triton=_triton(root.part("inferenceServer"), problems),
        rollout=_rollout(root.part("deployment")),
        model_sync=_model_sync(root.part("modelSync")),
        gateway=_gateway(root.part("gateway")),
        storage=_storage(storage_variables, elsewhere),
        storage_variables=storage_variables,
        keep_running=keep_running,
    )
    check_blocks(root)
    root.check()
    found = (*(_placed(each, document, source) for each in problems), *elsewhere)
    if found:
        raise Invalid(*found)
    return settings


def _read(text: str, source: str) -> Document:
    documents = read_documents(text, source=source)
    if len(documents) > 1:
        text = f"has {len(documents)} documents, settings are one ({source}:{documents[1].line})"
        raise Invalid(Problem("settings", text))
    return documents[0] if documents else Document(data=None, line=1)


def _placed(problem: Problem, document: Document, source: str) -> Problem:
    """Return the problem with the place in the file."""
    return replace(problem, text=f"{problem.text} ({source}:{document.line_of(problem.field)})")


def _logs(section: Section) -> LogSettings:
    level = section.text("level", "info").lower()
    if level not in ("debug", "info", "warning", "error"):
        section.refuse("level", f"is {level!r}, not one of debug, info, warning, error")
    default = "console" if section.flag("development", default=True) else "json"
    encoding = section.text("encoding", default)
    if encoding not in ("console", "json"):
        section.refuse("encoding", f"is {encoding!r}, not one of console, json")
    return LogSettings(level=level, encoding=encoding)


def _triton(section: Section, problems: list[Problem]) -> TritonSettings:
    triton = section.part("triton")
    probes = triton.part("probes")
    drain = triton.part("drain")
    check_image(triton)
    default = TritonSettings(readiness_probe=_readiness(triton, problems))
    return replace(
        default,
        startup=_probe(probes.part("startup"), default.startup),
        liveness=_probe(probes.part("liveness"), default.liveness),
        readiness=_probe(probes.part("readiness"), default.readiness_timing()),
        drain=DrainSettings(
            pre_stop_s=drain.number("preStopSeconds", 0),
            exit_timeout_s=drain.number("exitTimeoutSeconds", 0),
        ),
        auto_complete_config=triton.flag("autoCompleteConfig", default=True),
    )


def _readiness(section: Section, problems: list[Problem]) -> ReadinessProbe:
    try:
        return parse_readiness_probe(section.text("readinessProbe"))
    except Invalid as error:
        problems.extend(error.problems)
        return ReadinessProbe.MODEL_AWARE


def _probe(section: Section, built_in: ProbeSettings) -> ProbeSettings:
    return built_in.overridden(
        period_s=section.number("periodSeconds", 0),
        timeout_s=section.number("timeoutSeconds", 0),
        failure_threshold=section.count("failureThreshold", 0),
    )


def _rollout(section: Section) -> RolloutSettings:
    rollout, rollback = section.part("rollout"), section.part("rollback")
    check_metric_gate(section.part("metricGate"))
    return RolloutSettings(
        skip_canary=rollout.flag("skipCanary", default=False),
        model_load_timeout_s=_budget(rollout),
        soak_period_s=rollout.duration("soakPeriod", 0.0),
        rollback_model_load_timeout_s=_budget(rollback),
    )


def _budget(section: Section) -> float:
    """Return a load budget; zero or less means the default (behaviour 11.1)."""
    value = section.duration("modelLoadTimeout", DEFAULT_LOAD_TIMEOUT_S)
    return value if value > 0 else DEFAULT_LOAD_TIMEOUT_S


def _model_sync(section: Section) -> ModelSyncSettings:
    default = ModelSyncSettings()
    return ModelSyncSettings(
        unload_grace_s=section.duration("unloadGrace", default.unload_grace_s),
        load_timeout_s=section.duration("loadTimeout", default.load_timeout_s),
    )


def _gateway(section: Section) -> GatewaySettings:
    origins = section.texts("corsOrigins")
    wrong = [each for each in origins if not _ORIGIN.fullmatch(each)]
    if wrong:
        section.refuse("corsOrigins", f"has {wrong[0]!r}, which is no origin like https://a.b:8443")
    idle_s = section.duration("idleTimeout", GatewaySettings().idle_timeout_s)
    return GatewaySettings(idle_timeout_s=idle_s, cors_origins=origins)


def _storage(variables: Mapping[str, str], problems: list[Problem]) -> StorageSettings:
    try:
        return parse_storage_settings(variables)
    except Invalid as error:
        problems.extend(error.problems)
        return StorageSettings()
