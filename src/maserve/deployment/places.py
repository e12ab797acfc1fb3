"""On which inference servers a Deployment is, and where its candidate is being made.

A candidate is a server and a revision (ADR 0016). The place where the current revision is served
stays recorded as it is until the candidate's place answers. Pure.
"""

import json
from collections.abc import Iterable

from maserve.deployment.keys import candidate, same_revision, server_name
from maserve.resource.annotations import (
    BACKEND_TYPE,
    CANDIDATE_BACKEND,
    CANDIDATE_CLUSTERS,
    CANDIDATE_PLACEMENT,
    CANDIDATE_SERVER,
    KNOWN_SERVERS,
    PLACED_ON,
    PLACEMENT,
    TARGET_CLUSTERS,
)
from maserve.resource.metadata import set_annotation
from maserve.wire import v2


def candidate_server(deployment: v2.Deployment) -> str:
    """Return the InferenceServer of the rollout under way, or of the last one tried."""
    tried = deployment.metadata.annotations.get(CANDIDATE_SERVER, "")
    return tried or server_name(deployment)


def working_server(deployment: v2.Deployment) -> str:
    """Return the server on which something happens: the candidate's, once it is placed there."""
    is_placed_there = CANDIDATE_CLUSTERS in deployment.metadata.annotations
    return candidate_server(deployment) if is_placed_there else server_name(deployment)


def is_moving(deployment: v2.Deployment) -> bool:
    """Tell whether the candidate is meant for another server than the Deployment is placed on."""
    placed = deployment.metadata.annotations.get(PLACED_ON, "")
    return bool(placed) and candidate_server(deployment) != placed


def is_live(deployment: v2.Deployment) -> bool:
    """Tell whether the candidate is what is served: the same revision on the same server."""
    status = deployment.status
    is_current = same_revision(status.candidate_revision, status.current_revision)
    return is_current and not is_moving(deployment)


def is_wanted(deployment: v2.Deployment) -> bool:
    """Tell whether the candidate is what the spec asks for: that revision on that server."""
    spec, status = deployment.spec, deployment.status
    is_desired = same_revision(spec.desired_revision, status.candidate_revision)
    return is_desired and spec.inference_server.name == candidate_server(deployment)


def describe_candidate(deployment: v2.Deployment) -> str:
    """Name the candidate for people; the server is named only when it is another one."""
    where = f" on server {candidate_server(deployment)}" if is_moving(deployment) else ""
    return f"{candidate(deployment)}{where}"


def known_servers(deployment: v2.Deployment) -> tuple[str, ...]:
    """Return every server that may hold something of the Deployment, in the order of its coming.

    With none recorded it is the one it is placed on, or would be.
    """
    try:
        recorded = json.loads(deployment.metadata.annotations.get(KNOWN_SERVERS, "[]"))
    except ValueError:
        recorded = []
    names = [str(name) for name in recorded] if isinstance(recorded, list) else []
    return tuple(name for name in dict.fromkeys((*names, server_name(deployment))) if name)


def other_servers(deployment: v2.Deployment, kept: str) -> tuple[str, ...]:
    """Return the known servers besides `kept`."""
    return tuple(name for name in known_servers(deployment) if name != kept)


def record_known(deployment: v2.Deployment, servers: Iterable[str]) -> None:
    """Record exactly these servers in `deployment`, the caller's own copy."""
    names = list(dict.fromkeys(name for name in servers if name))
    set_annotation(deployment, KNOWN_SERVERS, json.dumps(names) if names else None)


def settle_candidate_place(deployment: v2.Deployment) -> None:
    """Make the candidate's place the Deployment's only one: nothing is left anywhere else."""
    annotations = deployment.metadata.annotations
    if is_moving(deployment):
        set_annotation(deployment, PLACED_ON, candidate_server(deployment))
        set_annotation(deployment, TARGET_CLUSTERS, annotations.get(CANDIDATE_CLUSTERS))
        set_annotation(deployment, BACKEND_TYPE, annotations.get(CANDIDATE_BACKEND))
    leave_candidate_place(deployment)


def leave_candidate_place(deployment: v2.Deployment) -> None:
    """Keep the place where the Deployment is served alone; which server was tried stays known."""
    for name in (CANDIDATE_CLUSTERS, CANDIDATE_BACKEND):
        set_annotation(deployment, name, None)
    record_known(deployment, (deployment.metadata.annotations.get(PLACED_ON, ""),))


def forget_places(deployment: v2.Deployment) -> None:
    """Record that nothing is placed anywhere."""
    for name in (*PLACEMENT, *CANDIDATE_PLACEMENT, KNOWN_SERVERS):
        set_annotation(deployment, name, None)
