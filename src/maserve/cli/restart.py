"""Replacing one replica: another is started and ready before the old one drains (ADR 0020)."""

import asyncio
import json
from dataclasses import dataclass

from maserve.base.durations import render_duration
from maserve.cli.api import Api, Outside
from maserve.cli.screen import Progress
from maserve.cli.session import CommandError, Exit
from maserve.resource import key_of
from maserve.resource.annotations import RESTART_REPLICAS
from maserve.wire import ext, v2

LOOK_S = 0.5
"""How often the replicas are looked at meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Which replica, and how long its replacement may take."""

    namespace: str
    replica: str
    timeout_s: float


async def restart_replica(api: Api, outside: Outside, restart: Restart, show: Progress) -> str:
    """Ask for the replacement, wait until it is done, and return what there is to say.

    Raises `CommandError` for a replica that is not there (exit 1), or when it takes too long.
    """
    server, before = await _find(api, restart)
    wanted = v2.InferenceServer()
    wanted.CopyFrom(server)
    asked = {**_asked(server), restart.replica: outside.clock.now().isoformat()}
    wanted.metadata.annotations[RESTART_REPLICAS] = json.dumps(asked, sort_keys=True)
    await api.apply(wanted, dry_run=False)
    last = ""
    try:
        async with asyncio.timeout(restart.timeout_s):
            while True:
                view = await api.describe(v2.InferenceServer, key_of(server))
                last = "; ".join(f"{each.cluster_id}: {each.message}" for each in view.clusters)
                if _is_done(view, restart.replica, before.pid):
                    return f"{restart.replica} was replaced; {last}"
                show(last)
                await outside.clock.sleep(LOOK_S)
    except TimeoutError:
        after = render_duration(restart.timeout_s)
        text = f"replica {restart.replica} is not replaced after {after}: {last}"
        raise CommandError(text, Exit.TIMEOUT) from None


async def _find(api: Api, restart: Restart) -> tuple[v2.InferenceServer, ext.ReplicaView]:
    """Return the server that has the replica, and the replica as it is."""
    names: list[str] = []
    for server in await api.list(v2.InferenceServer, restart.namespace):
        view = await api.describe(v2.InferenceServer, key_of(server))
        for replica in _replicas(view):
            if replica.name == restart.replica and isinstance(server, v2.InferenceServer):
                return server, replica
            names.append(replica.name)
    there = f"there are {', '.join(sorted(names))}" if names else "there are none"
    text = f"no replica {restart.replica} in namespace {restart.namespace}: {there}"
    raise CommandError(text)


def _asked(server: v2.InferenceServer) -> dict[str, str]:
    """Return what was asked for before; what cannot be read asks for nothing."""
    try:
        rows = json.loads(server.metadata.annotations.get(RESTART_REPLICAS, "{}"))
    except ValueError:
        return {}
    return {str(k): str(v) for k, v in rows.items()} if isinstance(rows, dict) else {}


def _is_done(view: ext.DescribeResponse, replica: str, old: int) -> bool:
    """Tell whether the old process is gone and every cluster serves."""
    left = [each for each in _replicas(view) if each.name == replica and each.pid in (0, old)]
    return not left and all(cluster.state == "SERVING" for cluster in view.clusters)


def _replicas(view: ext.DescribeResponse) -> list[ext.ReplicaView]:
    return [replica for cluster in view.clusters for replica in cluster.replicas]
