"""The values of model-sync: what is wanted, what the engine has, what was decided."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto

from maserve.base.keys import ModelName


class EngineState(StrEnum):
    """State of one model in the serving framework, over all its versions."""

    READY = "READY"
    LOADING = "LOADING"
    UNLOADING = "UNLOADING"
    FAILED = "FAILED"
    UNLOADED = "UNLOADED"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineModel:
    """One model of the engine's index; `reason` is set when FAILED."""

    state: EngineState
    reason: str = ""


class ModelState(StrEnum):
    """State of one model here, as the status file spells it."""

    DOWNLOADING = "DOWNLOADING"
    DOWNLOAD_FAILED = "DOWNLOAD_FAILED"
    VERIFY_FAILED = "VERIFY_FAILED"
    LOADING = "LOADING"
    LOADED = "LOADED"
    LOAD_FAILED = "LOAD_FAILED"
    UNLOADING = "UNLOADING"
    DEAD = "DEAD"
    """The engine says READY, but a process in which it runs has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One model that some entry wants on this replica; `fault` says why it cannot be had."""

    storage_path: str
    content: str
    serving: bool
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The last attempt to bring one content of a model up, which failed.

    `permanent` will not go away by itself. `hidden` means that the engine's index does not show it,
    so that it must be published there, not before `publish_at`.
    """

    state: ModelState
    content: str
    reason: str
    permanent: bool
    hidden: bool
    count: int
    retry_at: float
    publish_at: float = 0.0


class Step(Enum):
    """What is done to one model at a time."""

    STAGE = auto()
    LOAD = auto()
    PUBLISH = auto()
    UNLOAD = auto()
    REMOVE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One step to start. `content` and `storage_path` are empty for UNLOAD and REMOVE."""

    step: Step
    model: ModelName
    storage_path: str = ""
    content: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """What the readiness probe reads: models that must be READY, and those not yet required."""

    required: tuple[ModelName, ...] = ()
    pending: tuple[ModelName, ...] = ()


FAILURE_CONTENT = ""
"""The content of a repository folder that only says why there is no model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """All that one pass has observed.

    `wanted` is the last list that could be read, None before the first; `list_readable` tells
    whether that was now. `engine` is None while the engine does not answer. `linked` has the
    content of each of our repository folders, `applied` the content whose load the engine has
    confirmed, `staged` what this process has verified, `releasing` what it is letting go of.
    `first_serving` is what must be READY before the readiness file is first written, None once it
    was. `lifted` are serving models that the control plane does not require now (ADR 0017). `dead`
    models answer errors though the engine shows them READY (ADR 0019), `stuck` ones are on their
    way for too long (ADR 0020); both with a sentence.
    """

    list_readable: bool
    wanted: Mapping[ModelName, Wanted] | None
    engine: Mapping[ModelName, EngineModel] | None
    linked: Mapping[ModelName, str] = field(default_factory=dict)
    applied: Mapping[ModelName, str] = field(default_factory=dict)
    staged: frozenset[tuple[ModelName, str]] = frozenset()
    held: frozenset[str] = frozenset()
    releasing: frozenset[str] = frozenset()
    busy: Mapping[ModelName, Action] = field(default_factory=dict)
    failures: Mapping[ModelName, Failure] = field(default_factory=dict)
    unwanted_since: Mapping[ModelName, float] = field(default_factory=dict)
    readiness: Readiness | None = None
    first_serving: frozenset[ModelName] | None = None
    lifted: frozenset[ModelName] = frozenset()
    dead: Mapping[ModelName, str] = field(default_factory=dict)
    stuck: Mapping[ModelName, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one pass decided. `readiness` None means that there is to be no file."""

    actions: tuple[Action, ...] = ()
    cancel: tuple[ModelName, ...] = ()
    release: tuple[str, ...] = ()
    readiness: Readiness | None = None
    first_serving: frozenset[ModelName] | None = None
    unwanted_since: Mapping[ModelName, float] = field(default_factory=dict)
    moving: bool = False
    next_at: float | None = None
