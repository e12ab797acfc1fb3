"""The Backend port for one machine: Triton replicas as supervised processes."""

import asyncio
from contextvars import Context
from dataclasses import replace
from pathlib import Path

import structlog

from maserve.backends.triton.local.fleet import Fleet
from maserve.backends.triton.local.parts import LocalTritonParts
from maserve.backends.triton.local.programs import PROGRAMS, program_names
from maserve.backends.triton.local.state import (
    DESIRED_FILE,
    REPLICA_FILE,
    ReplicaRecord,
    Wish,
    build_wish,
    parse_replica,
    parse_wish,
)
from maserve.backends.types import LoadReport, ReplicaStatus, ServerState, ServerStatus
from maserve.base.errors import Unsupported
from maserve.base.keys import ClusterId, Key, ModelName
from maserve.base.tasks import run_until
from maserve.host import DataFolder, find_json, remove_file, remove_tree
from maserve.resource.metadata import key_of
from maserve.wire import v2

STRAY_GRACE_S = 5.0

Place = tuple[ClusterId, Key]

log = structlog.get_logger()


class LocalTritonBackend:
    """A target's `cluster_id` names a group of processes here; its connection is not looked at.

    `run` does the work; the other methods note wishes and read what it sees. State on disk makes a
    later process go on where this one stopped.
    """

    def __init__(self, parts: LocalTritonParts) -> None:
        self._parts = parts
        self._fleets: dict[Place, Fleet] = {}
        self._loading = asyncio.Lock()
        self._changing = asyncio.Lock()
        self._loaded = False
        self._group: asyncio.TaskGroup | None = None
        self._stopping = False

    async def run(self) -> None:
        """Supervise all replicas of all servers until cancelled. Ends no replica."""
        await self._load()
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for fleet in tuple(self._fleets.values()):
                    group.create_task(self._keep(fleet))
                await asyncio.Event().wait()
        finally:
            self._group = None

    async def stop_all(self) -> None:
        """Drain every replica of every server and return once they are gone; wishes are kept.

        Works beside a running `run` and without one.
        """
        await self._load()
        self._stopping = True
        for fleet in self._fleets.values():
            fleet.stop()
        if self._group is not None:
            await self._all_idle()
            return
        done = asyncio.Event()
        await run_until(done, self.run(), self._all_idle(done))

    async def create_server(
        self, server: v2.InferenceServer, target: v2.ClusterTarget
    ) -> ServerStatus:
        """Note what the server should be. See `Backend.create_server`."""
        await self._load()
        key, cluster = key_of(server), ClusterId(target.cluster_id)
        asked = await self._find_wish(server)
        if isinstance(asked, ServerStatus):
            return asked
        async with self._changing:
            fleet = self._find(key, cluster)
            if fleet is None:
                fleet = await self._add(Fleet(cluster, key, asked, parts=self._parts, saved=False))
            elif not fleet.wish.deleted:
                await fleet.set_wish(asked)
        return fleet.status(asked)

    async def get_server_status(
        self, server: v2.InferenceServer, target: v2.ClusterTarget
    ) -> ServerStatus:
        await self._load()
        fleet = self._find(key_of(server), ClusterId(target.cluster_id))
        if fleet is None:
            return ServerStatus(state=ServerState.CREATE_PENDING, message="not created yet")
        asked = await self._find_wish(server)
        return asked if isinstance(asked, ServerStatus) else fleet.status(asked)

    async def delete_server(self, server: Key, target: v2.ClusterTarget) -> bool:
        """Drain and remove everything. See `Backend.delete_server`."""
        await self._load()
        async with self._changing:
            fleet = self._find(server, ClusterId(target.cluster_id))
            if fleet is None:
                return True
            await fleet.set_wish(replace(fleet.wish, deleted=True))
        return False

    async def is_healthy(self, server: Key, target: v2.ClusterTarget) -> bool:
        await self._load()
        fleet = self._find(server, ClusterId(target.cluster_id))
        return fleet is not None and not fleet.wish.deleted and fleet.is_healthy()

    async def get_model_status(
        self, server: Key, target: v2.ClusterTarget, model: ModelName
    ) -> LoadReport:
        """Return the load states. See `Backend.get_model_status`."""
        await self._load()
        fleet = self._find(server, ClusterId(target.cluster_id))
        if fleet is None:
            return LoadReport(model=model, wanted=0)
        return await fleet.load_report(model)

    def views(self, server: Key, cluster: ClusterId) -> tuple[ReplicaStatus, ...]:
        """Return every replica for people, draining ones included; empty when there is none."""
        fleet = self._find(server, cluster)
        return fleet.replicas() if fleet is not None else ()

    def config_changed(self, server: Key, cluster: ClusterId) -> None:
        """Take note that this process changed the server's model config: read load states anew."""
        fleet = self._find(server, cluster)
        if fleet is not None:
            fleet.invalidate()

    async def _find_wish(self, server: v2.InferenceServer) -> Wish | ServerStatus:
        """Return what the resource asks for, or a status that says why nothing can run here."""
        try:
            version = await self._parts.engine.prepare()
        except Unsupported as error:
            return ServerStatus(state=ServerState.FAILED, message=str(error), up_to_date=False)
        return build_wish(server, self._parts.settings, version)

    async def _add(self, fleet: Fleet) -> Fleet:
        """Save a new server's wish, and only then let it run."""
        await fleet.set_wish(fleet.wish)
        if self._stopping:
            fleet.stop()
        self._fleets[fleet.cluster, fleet.key] = fleet
        if self._group is not None:  # else `run` starts it with all others
            # It outlives the pass that asked for it: nothing bound to that pass's log lines stays.
            self._group.create_task(self._keep(fleet), context=Context())
        return fleet

    async def _keep(self, fleet: Fleet) -> None:
        await fleet.run()
        place = (fleet.cluster, fleet.key)
        if self._fleets.get(place) is fleet:
            self._fleets.pop(place)

    def _find(self, server: Key, cluster: ClusterId) -> Fleet | None:
        """Return the fleet; one that has finished is not there any more."""
        fleet = self._fleets.get((cluster, server))
        return None if fleet is None or fleet.finished.is_set() else fleet

    async def _all_idle(self, done: asyncio.Event | None = None) -> None:
        for fleet in tuple(self._fleets.values()):
            await fleet.idle.wait()
        if done is not None:
            done.set()

    async def _load(self) -> None:
        """Read, once, what an earlier life has left on disk."""
        async with self._loading:
            if self._loaded:
                return
            await self._parts.files.call(_remove_empty, self._parts.folder)
            found = await self._parts.files.call(_read_state, self._parts.folder.clusters)
            for (cluster, key), (wish, records) in found.items():
                self._fleets[cluster, key] = Fleet(
                    cluster, key, wish, parts=self._parts, saved=True, records=records
                )
            await self._end_strays([record for _, records in found.values() for record in records])
            self._loaded = True
            log.info("servers found", servers=len(found))

    async def _end_strays(self, records: list[ReplicaRecord]) -> None:
        """End programs and free ports whose replica is not on disk any more."""
        known = {name for record in records for name in program_names(record)}
        running = [process.name for process in self._parts.supervisor.list_running()]
        for name in [name for name in running if name.startswith(PROGRAMS) and name not in known]:
            log.warning("stray program ended", program=name)
            await self._parts.supervisor.terminate(name, grace_s=STRAY_GRACE_S)
        owners = await self._parts.files.call(self._parts.ports.owners)
        for owner in [
            owner for owner in owners if owner.startswith(PROGRAMS) and owner not in known
        ]:
            await self._parts.files.call(self._parts.ports.release, owner)


def _remove_empty(folder: DataFolder) -> None:
    """Remove the folders of servers that were not begun, or were removed to the last file."""
    for home in folder.clusters.glob("*/*/*/"):
        if not (home / DESIRED_FILE).exists():
            remove_file(home / DESIRED_FILE)  # and with it what a killed writer left
            folder.remove_empty(home / "replicas")


def _read_state(clusters: Path) -> dict[Place, tuple[Wish, tuple[ReplicaRecord, ...]]]:
    """Read all servers below the folder; a replica without a record has never started anything."""
    found = {}
    for path in sorted(clusters.glob(f"*/*/*/{DESIRED_FILE}")):
        home = path.parent
        place = ClusterId(home.parents[1].name), Key(home.parent.name, home.name)
        found[place] = parse_wish(path, find_json(path)), _read_replicas(home / "replicas")
    return found


def _read_replicas(folder: Path) -> tuple[ReplicaRecord, ...]:
    records = []
    for home in sorted(folder.glob("*/")):
        row = find_json(home / REPLICA_FILE)
        if row is None:
            remove_tree(home)
        else:
            records.append(parse_replica(home / REPLICA_FILE, row))
    return tuple(records)
