"""What is kept on disk about servers and replicas: a restarted control plane goes on. Pure."""

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from maserve.backends.triton.settings import (
    DrainSettings,
    ProbeSettings,
    ReadinessProbe,
    TritonSettings,
)
from maserve.base.errors import Invalid, Problem
from maserve.base.keys import ClusterId, Key, ReplicaName
from maserve.resource.annotations import RESTART_REPLICAS
from maserve.resource.names import local_replica
from maserve.wire import v2

DESIRED_FILE = "desired.json"
REPLICA_FILE = "replica.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What one server should be in one cluster. `deleted` means: nothing, then forget it."""

    uid: str
    replicas: int
    template: str
    deleted: bool = False
    restarts: tuple[tuple[str, datetime], ...] = ()
    """Replicas that somebody wants replaced, unless they are younger than the instant."""

    def row(self) -> dict[str, Any]:
        return {
            "uid": self.uid,
            "replicas": self.replicas,
            "template": self.template,
            "deleted": self.deleted,
            "restarts": {name: at.isoformat() for name, at in self.restarts},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRecord:
    """What is known of one replica across restarts of the control plane.

    `ports` are http, grpc, metrics. `admitted` tells whether it was ever in the endpoints,
    `left_endpoints` when a draining replica was seen to be out of them, `created` when it was first
    started, and `replaced_for` why another one takes its place (ADR 0020).
    """

    cluster: ClusterId
    key: Key
    ordinal: int
    template: str
    ports: tuple[int, ...] = ()
    draining: bool = False
    ready: bool = False
    admitted: bool = False
    restarts: int = 0
    left_endpoints: datetime | None = None
    created: datetime | None = None
    replaced_for: str = ""

    @property
    def name(self) -> ReplicaName:
        return local_replica(self.key.name, self.cluster, self.ordinal)

    def row(self) -> dict[str, Any]:
        left = self.left_endpoints
        return {
            "cluster": self.cluster,
            "namespace": self.key.namespace,
            "name": self.key.name,
            "ordinal": self.ordinal,
            "template": self.template,
            "ports": list(self.ports),
            "draining": self.draining,
            "ready": self.ready,
            "admitted": self.admitted,
            "restarts": self.restarts,
            "left_endpoints": left.isoformat() if left else "",
            "created": self.created.isoformat() if self.created else "",
            "replaced_for": self.replaced_for,
        }


def build_wish(
    inference_server: v2.InferenceServer, settings: TritonSettings, engine_version: str
) -> Wish:
    """Return what the resource asks for; zero instances mean one (behaviour 4.1)."""
    spec = inference_server.spec.init_spec
    return Wish(
        uid=inference_server.metadata.uid,
        replicas=max(spec.num_instances, 1),
        template=template_hash(inference_server, settings, engine_version),
        restarts=parse_restarts(_asked_restarts(inference_server)),
    )


def template_hash(
    inference_server: v2.InferenceServer, settings: TritonSettings, engine_version: str
) -> str:
    """Return what differs when running replicas must be replaced.

    The resource's uid is part of it: a server that was deleted and made again is another one. So is
    every setting of the guide's pod template: a change of a probe or of the drain restarts running
    replicas once (serving guide, Rollout Configuration). Resources are not enforced here: replicas
    that are replaced for them would be the same.
    """
    parts = {
        "uid": inference_server.metadata.uid,
        "engine": engine_version,
        "auto_complete_config": settings.auto_complete_config,
        "drain": _numbers(settings.drain),
        "probes": _probes(settings),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _probes(settings: TritonSettings) -> dict[str, Any]:
    """Return the probes as they take effect; no readiness probe has no timing."""
    probe = settings.readiness_probe
    readiness = None if probe is ReadinessProbe.NONE else _numbers(settings.readiness_timing())
    return {
        "startup": _numbers(settings.startup),
        "liveness": _numbers(settings.liveness),
        "readiness": [probe, readiness],
    }


def _numbers(settings: ProbeSettings | DrainSettings) -> dict[str, float]:
    """Return the numbers by name, a built-in 10 like a 10.0 that was read from a file."""
    return {name: float(value) for name, value in asdict(settings).items()}


def parse_wish(path: Path, row: Any) -> Wish:
    """Parse `desired.json`. Raises `Invalid` naming the file."""
    try:
        return Wish(
            uid=str(row["uid"]),
            replicas=int(row["replicas"]),
            template=str(row["template"]),
            deleted=bool(row["deleted"]),
            restarts=parse_restarts(row.get("restarts", {})),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Invalid(Problem(str(path), f"is not the state of a server: {error!r}")) from error


def parse_replica(path: Path, row: Any) -> ReplicaRecord:
    """Parse `replica.json`. Raises `Invalid` naming the file."""
    try:
        return ReplicaRecord(
            cluster=ClusterId(row["cluster"]),
            key=Key(row["namespace"], row["name"]),
            ordinal=int(row["ordinal"]),
            template=str(row["template"]),
            ports=tuple(int(port) for port in row["ports"]),
            draining=bool(row["draining"]),
            ready=bool(row["ready"]),
            admitted=bool(row["admitted"]),
            restarts=int(row["restarts"]),
            left_endpoints=_parse_instant(row["left_endpoints"]),
            created=_parse_instant(str(row.get("created", ""))),
            replaced_for=str(row.get("replaced_for", "")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Invalid(Problem(str(path), f"is not the state of a replica: {error!r}")) from error


def _asked_restarts(inference_server: v2.InferenceServer) -> object:
    try:
        return json.loads(inference_server.metadata.annotations.get(RESTART_REPLICAS, "{}"))
    except ValueError:
        return {}


def parse_restarts(rows: object) -> tuple[tuple[str, datetime], ...]:
    """Parse names with instants, in order; what is no instant asks for nothing."""
    found: dict[str, datetime] = {}
    for name, text in rows.items() if isinstance(rows, dict) else ():
        try:
            instant = datetime.fromisoformat(str(text))
        except ValueError:
            continue
        if instant.tzinfo is not None:
            found[str(name)] = instant
    return tuple(sorted(found.items()))


def _parse_instant(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
