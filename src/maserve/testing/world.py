"""A world of fake replicas: engines that load models in virtual time, with faults on request.

It stands for Triton and model-sync together, so it keeps their promises: a model is wanted as its
entries say, loads after `load_s`, is required for readiness only once loaded, and is unloaded
`grace_s` after nobody wants it.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from maserve.backends import LoadReport, LoadState, ReplicaLoad, ReplicaStatus
from maserve.backends.triton.local.lifting import Holding, Models, decide_lifted
from maserve.base.clock import Clock
from maserve.base.keys import ClusterId, Key, ModelName, ReplicaName
from maserve.base.signals import Signal
from maserve.modelconfig import Entry, Phase
from maserve.resource import names

Group = tuple[Key, ClusterId]
"""One server in one cluster."""

_IDLE_S = 3600.0

ReadEntries = Callable[[Key, ClusterId], "tuple[Entry, ...] | None"]
"""Returns what a model config holds, None when there is none."""


@dataclass(slots=True)
class FakeModel:
    """One model in one engine. `due` is when a load ends, or when an unload begins."""

    state: LoadState
    due: datetime | None = None
    reason: str = ""


@dataclass(slots=True)
class FakeReplica:
    """One replica. It runs from `up_at` on; its models are gone whenever it restarts."""

    name: ReplicaName
    up_at: datetime
    template: str
    models: dict[ModelName, FakeModel] = field(default_factory=dict)
    required: set[ModelName] = field(default_factory=set)
    once_loaded: set[ModelName] = field(default_factory=set)
    synced: bool = False
    draining_until: datetime | None = None
    restarts: int = 0

    def is_ready(self, now: datetime) -> bool:
        """Tell whether it admits traffic: up, synced once, every required model READY."""
        return self.draining_until is None and not self.why_not_ready(now)

    def why_not_ready(self, now: datetime) -> str:
        """Say why it admits no traffic, as the readiness probe would; empty when it may."""
        if self.up_at > now:
            return "replica is starting"
        if not self.synced:
            return "model-sync has not reported yet"
        loaded = {name for name, model in self.models.items() if model.state is LoadState.READY}
        missing = sorted(self.required - loaded)
        return f"serving models not loaded: {', '.join(missing)}" if missing else ""


@dataclass(kw_only=True)
class FakeWorld:
    """All replicas. `broken` models fail to load with the given reason.

    `slow` ones take their time.
    """

    clock: Clock
    changed: Signal[Key]
    read_entries: ReadEntries
    start_s: float = 0.3
    load_s: float = 0.5
    grace_s: float = 2.0
    drain_s: float = 1.0
    broken: dict[str, str] = field(default_factory=dict)
    slow: dict[str, float] = field(default_factory=dict)
    groups: dict[Group, list[FakeReplica]] = field(default_factory=dict)
    wanted: dict[Group, tuple[int, str]] = field(default_factory=dict)
    lifted: dict[Group, Models] = field(default_factory=dict)
    """Serving models that are not required now, as no replica can have them (ADR 0017)."""
    _poked: asyncio.Event = field(default_factory=asyncio.Event)

    def __getstate__(self) -> dict[str, Any]:
        # What waits for a poke is no part of the world, and a copy runs on another loop.
        return {**vars(self), "_poked": asyncio.Event()}

    async def run(self) -> None:
        """Let time do its work until cancelled; announces every server whose replicas changed."""
        self._poked = asyncio.Event()
        while True:
            for server in self.settle():
                self.changed.announce(server)
            self._poked.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rest_s()):
                    await self._poked.wait()

    def poke(self) -> None:
        """Have `run` look at once: something was asked for."""
        self._poked.set()

    def settle(self) -> list[Key]:
        """Bring every replica to the present; return the servers that changed."""
        now = self.clock.now()
        moved: list[Key] = []
        for group in sorted(self.groups, key=str):
            before = self._picture(group)
            self._settle_group(group, now)
            if self._picture(group) != before:
                moved.append(group[0])
        return list(dict.fromkeys(moved))

    def scale(self, server: Key, cluster: ClusterId, count: int, template: str) -> None:
        """Ask for `count` replicas of a template."""
        self.wanted[server, cluster] = (count, template)
        self.groups.setdefault((server, cluster), [])
        self._settle_group((server, cluster), self.clock.now())
        self.poke()

    def remove(self, server: Key, cluster: ClusterId) -> bool:
        """Drain everything; tell whether nothing is left."""
        group = (server, cluster)
        if group not in self.groups:
            return True
        self.wanted[group] = (0, "")
        self._settle_group(group, self.clock.now())
        self.poke()
        if self.groups[group]:
            return False
        del self.groups[group], self.wanted[group]
        self.lifted.pop(group, None)
        return True

    def kill(self, server: Key, cluster: ClusterId, index: int) -> None:
        """Kill one replica's engine; it comes back empty after `start_s`."""
        replica = self.groups[server, cluster][index]
        replica.models.clear()
        replica.restarts += 1
        replica.up_at = self.clock.now() + timedelta(seconds=self.start_s)
        self.poke()

    def report(self, server: Key, cluster: ClusterId, model: ModelName) -> LoadReport:
        """Return one model's load state on every replica that is not draining."""
        now = self.clock.now()
        group = (server, cluster)
        if group in self.groups:
            self._settle_group(group, now)
        rows = tuple(
            self._row(replica, model, now)
            for replica in self.groups.get(group, [])
            if replica.draining_until is None
        )
        return LoadReport(model=model, wanted=self.wanted.get(group, (0, ""))[0], rows=rows)

    def statuses(self, server: Key, cluster: ClusterId) -> tuple[ReplicaStatus, ...]:
        """Return every replica, by name."""
        now = self.clock.now()
        return tuple(
            ReplicaStatus(
                name=replica.name,
                state="DRAINING" if replica.draining_until else "RUNNING",
                ready=replica.is_ready(now),
                reason=replica.why_not_ready(now),
                restarts=replica.restarts,
                started=replica.up_at,
            )
            for replica in self.groups.get((server, cluster), [])
        )

    def _settle_group(self, group: Group, now: datetime) -> None:
        self._keep_count(group, now)
        entries = self.read_entries(*group)
        self._sync_group(group, entries, now)
        if entries is not None and self._lift(group, entries, now):
            self._sync_group(group, entries, now)

    def _sync_group(self, group: Group, entries: "tuple[Entry, ...] | None", now: datetime) -> None:
        lifted = self.lifted.get(group, frozenset())
        for replica in self.groups[group]:
            # A list that was never there is empty; one that has vanished leaves all as it is.
            if replica.up_at <= now and (entries is not None or not replica.synced):
                self._sync(replica, entries or (), lifted, now)

    def _lift(self, group: Group, entries: tuple[Entry, ...], now: datetime) -> bool:
        """Decide what is not required any more, or again; tell whether that changed."""
        serving = frozenset(entry.name for entry in entries if entry.phase == Phase.SERVING)
        up = [r for r in self.groups[group] if r.up_at <= now and r.draining_until is None]
        before = self.lifted.get(group, frozenset())
        if up:
            self.lifted[group] = decide_lifted(before, serving, [_holding(each) for each in up])
        return self.lifted.get(group, frozenset()) != before

    def _keep_count(self, group: Group, now: datetime) -> None:
        """Start missing replicas, drain surplus or outdated ones, one outdated at a time."""
        replicas = self.groups[group]
        replicas[:] = [r for r in replicas if r.draining_until is None or r.draining_until > now]
        count, template = self.wanted[group]
        live = [r for r in replicas if r.draining_until is None]
        fresh = [r for r in live if r.template == template]
        old = [r for r in live if r.template != template]
        surge = 1 if old and count else 0
        if len(fresh) < count and len(live) < count + surge:
            replicas.append(self._start(group, template, now))
            replicas.sort(key=lambda replica: replica.name)
            self._keep_count(group, now)
        elif old and (count == 0 or len([r for r in fresh if r.is_ready(now)]) + len(old) > count):
            self._drain(old[0], now)
        elif len(fresh) > count:
            self._drain(fresh[-1], now)

    def _start(self, group: Group, template: str, now: datetime) -> FakeReplica:
        server, cluster = group
        taken = {replica.name for replica in self.groups[group]}
        ordinal = next(
            n for n in range(1000) if names.local_replica(server.name, cluster, n) not in taken
        )
        name = names.local_replica(server.name, cluster, ordinal)
        return FakeReplica(name, now + timedelta(seconds=self.start_s), template)

    def _drain(self, replica: FakeReplica, now: datetime) -> None:
        replica.draining_until = now + timedelta(seconds=self.drain_s)

    def _sync(
        self, replica: FakeReplica, entries: tuple[Entry, ...], lifted: Models, now: datetime
    ) -> None:
        wanted = {entry.name for entry in entries if entry.is_wanted_on(replica.name)}
        serving = {entry.name for entry in entries if entry.phase == Phase.SERVING} - lifted
        for name in sorted(wanted):
            self._want(replica, name, now)
        for name in sorted(replica.models.keys() - wanted):
            self._let_go(replica, name, now)
        loaded = {n for n, m in replica.models.items() if m.state is LoadState.READY}
        replica.synced = replica.synced or serving <= loaded
        if replica.synced:
            # What was loaded here once stays required when the engine restarts without it.
            replica.once_loaded = (replica.once_loaded | loaded) & wanted
            replica.required = (replica.required | replica.once_loaded) & serving

    def _want(self, replica: FakeReplica, name: ModelName, now: datetime) -> None:
        model = replica.models.get(name)
        if model is None:
            due = now + timedelta(seconds=self.slow.get(name, self.load_s))
            model = replica.models[name] = FakeModel(LoadState.LOADING, due)
        if model.state is LoadState.READY:
            model.due = None
        elif model.state is LoadState.LOADING and model.due is not None and model.due <= now:
            reason = self.broken.get(name, "")
            state = LoadState.FAILED if reason else LoadState.READY
            replica.models[name] = FakeModel(state, None, reason)

    def _let_go(self, replica: FakeReplica, name: ModelName, now: datetime) -> None:
        model = replica.models[name]
        replica.required.discard(name)
        if model.state is not LoadState.READY:
            del replica.models[name]
        elif model.due is None:
            model.due = now + timedelta(seconds=self.grace_s)
        elif model.due <= now:
            del replica.models[name]

    def _rest_s(self) -> float:
        """Return the seconds until something is due by itself."""
        now = self.clock.now()
        dues = [
            due
            for replicas in self.groups.values()
            for replica in replicas
            for due in _dues(replica)
            if due > now
        ]
        return min((due - now).total_seconds() for due in dues) if dues else _IDLE_S

    def _row(self, replica: FakeReplica, model: ModelName, now: datetime) -> ReplicaLoad:
        running = replica.up_at <= now
        found = replica.models.get(model) if running else None
        if found is None:
            reason = "model not in repository" if running else "replica is starting"
            state = LoadState.LOADING
        else:
            state, reason = found.state, found.reason
        return ReplicaLoad(
            replica=replica.name,
            running=running,
            state=state,
            reason=reason,
            started=replica.up_at,
        )

    def _picture(self, group: Group) -> list[object]:
        now = self.clock.now()
        return [
            (
                replica.name,
                replica.up_at <= now,
                replica.is_ready(now),
                replica.draining_until,
                [(name, model.state) for name, model in sorted(replica.models.items())],
            )
            for replica in self.groups.get(group, [])
        ]


def _holding(replica: FakeReplica) -> Holding:
    by_state = {
        state: frozenset(name for name, model in replica.models.items() if model.state is state)
        for state in (LoadState.READY, LoadState.FAILED)
    }
    return Holding(ready=by_state[LoadState.READY], hopeless=by_state[LoadState.FAILED])


def _dues(replica: FakeReplica) -> list[datetime]:
    models = [model.due for model in replica.models.values() if model.due is not None]
    draining = [] if replica.draining_until is None else [replica.draining_until]
    return [replica.up_at, *models, *draining]


async def let_run(world: FakeWorld, seconds: float) -> None:
    """Run the world alone for `seconds` of its clock."""
    try:
        async with asyncio.timeout(seconds):
            await world.run()
    except TimeoutError:
        return
