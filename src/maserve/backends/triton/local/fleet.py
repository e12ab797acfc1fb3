"""All replicas of one server in one cluster: steered towards what is wished for."""

import asyncio
import contextlib
import math
from collections.abc import Iterable

import structlog

from maserve.backends.triton.local.admission import Address, Admission
from maserve.backends.triton.local.decide import Life, decide
from maserve.backends.triton.local.parts import LocalTritonParts
from maserve.backends.triton.local.replacing import BY_HAND, choose
from maserve.backends.triton.local.replica import LocalReplica
from maserve.backends.triton.local.requirements import Requirements
from maserve.backends.triton.local.state import DESIRED_FILE, ReplicaRecord, Wish
from maserve.backends.triton.settings import ReadinessProbe
from maserve.backends.types import LoadReport, ReplicaLoad, ReplicaStatus, ServerState, ServerStatus
from maserve.base.backoff import Backoff
from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId, Key, ModelName
from maserve.base.tasks import run_until
from maserve.host import remove_file, remove_tree, write_json

RETRY_S = 1.0

HEAL_BACKOFF = Backoff(initial_s=60.0, limit_s=3600.0)
"""Between two replacements that nobody asked for: what no new replica helps is not hurried."""

log = structlog.get_logger()


class Fleet:
    """Runs until its wish is deletion and nothing is left, or is cancelled.

    `saved` tells whether the wish was read from the disk, with the `records` beside it.

    Invariant: a wish is on disk before it is acted on, and so is a replica before it starts.
    """

    def __init__(
        self,
        cluster: ClusterId,
        key: Key,
        wish: Wish,
        *,
        parts: LocalTritonParts,
        saved: bool,
        records: Iterable[ReplicaRecord] = (),
    ) -> None:
        self.cluster = cluster
        self.key = key
        self.wish = wish
        self._parts = parts
        self._embedded = parts.settings.embedded
        self._home = parts.folder.inference_server(cluster, key)
        self._admission = Admission(
            cluster,
            key,
            endpoints=parts.endpoints,
            clock=parts.clock,
            on_settled=lambda: parts.changed.announce(key),
        )
        self._requirements = Requirements(
            parts.folder.lifted_requirements(cluster, key),
            clock=parts.clock,
            files=parts.files,
            hold_s=self._embedded.requirement_hold_s,
        )
        self._healed = 0
        self._heal_at_s = -math.inf
        self._wake = asyncio.Event()
        self.finished = asyncio.Event()
        """Set once a deleted server has left nothing behind."""
        self.idle = asyncio.Event()
        """Set while `stop` is asked for and no replica is left."""
        self._stopping = False
        self._saved = saved
        self._problem = ""
        self._replicas = {record.ordinal: self._replica(record) for record in records}
        self._admit()

    async def set_wish(self, wish: Wish) -> None:
        """Save the wish and act on it. Raises `Unavailable` when it cannot be saved."""
        if wish == self.wish and self._saved:
            return
        await self._parts.files.call(write_json, self._home / DESIRED_FILE, wish.row())
        log.info("server wish changed", key=str(self.key), cluster=self.cluster, **wish.row())
        self.wish, self._saved = wish, True
        self._notice()

    def stop(self) -> None:
        """Drain every replica but keep the wish, so that the next start makes them again."""
        self._stopping = True
        self._wake.set()

    def invalidate(self) -> None:
        """Make readings of load states that have begun already too old."""
        for replica in self._replicas.values():
            replica.invalidate()

    async def run(self) -> None:
        """Keep the replicas as wished."""
        await run_until(self.finished, self._admission.run(), self._steer())

    def replicas(self) -> tuple[ReplicaStatus, ...]:
        """Return every replica, draining ones included, by ordinal."""
        return tuple(one.status() for one in self._ordered())

    def is_healthy(self) -> bool:
        live = self._live()
        return len(live) >= self.wish.replicas > 0 and all(one.admits_traffic for one in live)

    def status(self, asked: Wish) -> ServerStatus:
        """Return the state compared with `asked`, which may not have become the wish yet."""
        if self.wish.deleted:
            return self._status(ServerState.DELETING, f"{len(self._replicas)} replicas left")
        if asked != self.wish:
            return self._status(ServerState.CREATING, "change not applied yet", up_to_date=False)
        return self._judge()

    async def load_report(self, model: ModelName) -> LoadReport:
        """Return the load state of a model on every replica that is not leaving.

        Raises `Unavailable` when a replica that runs does not answer.
        """
        wanted = 0 if self.wish.deleted else self.wish.replicas
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(_ask(one, model)) for one in self._live()]
        answers = [one.result() for one in asked]
        rows = [answer for answer in answers if isinstance(answer, ReplicaLoad)]
        silent = next((answer for answer in answers if isinstance(answer, Unavailable)), None)
        if silent is not None:
            raise silent
        report = sorted(rows, key=lambda row: row.replica)
        return LoadReport(model=model, wanted=wanted, rows=tuple(report))

    def _judge(self) -> ServerStatus:
        live = self._live()
        current = [one for one in live if one.record.template == self.wish.template]
        ready = [one for one in current if one.admits_traffic]
        up_to_date = len(current) == len(live)
        told = f"{len(ready)}/{self.wish.replicas} replicas ready"
        waiting = [one.status() for one in current if not one.admits_traffic]
        reasons = "; ".join(f"{one.name}: {one.reason}" for one in waiting)
        message = f"{told} ({reasons})" if reasons else told
        if len(ready) == len(live) == self.wish.replicas and self._admission.is_settled:
            return self._status(ServerState.SERVING, self._with_warnings(told))
        if self._problem:
            return self._status(ServerState.CREATING, self._problem, up_to_date=up_to_date)
        if ready and not waiting and not self._admission.is_settled:
            why = f": {self._admission.problem}" if self._admission.problem else ""
            message = f"{told}, data plane has not taken them yet{why}"
        failed = any(one.life is Life.FAILED for one in current)
        state = ServerState.FAILED if failed else ServerState.CREATING
        return self._status(state, message, up_to_date=up_to_date)

    def _with_warnings(self, told: str) -> str:
        """Add what is not as it should be though requests are served."""
        lifted = self._requirements.lifted
        warnings = [f"{one.name}: {one.warning}" for one in self._live() if one.warning]
        if lifted:
            names = ", ".join(sorted(lifted))
            warnings.append(f"not required while no replica can have it: {names}")
        return "; ".join((told, *warnings))

    def _status(self, state: ServerState, message: str, *, up_to_date: bool = True) -> ServerStatus:
        return ServerStatus(
            state=state, message=message, up_to_date=up_to_date, replicas=self.replicas()
        )

    async def _steer(self) -> None:
        async with asyncio.TaskGroup() as group:
            for replica in self._ordered():
                group.create_task(self._keep(replica))
            while not self.finished.is_set():
                self._wake.clear()
                pause_s = await self._try_step(group)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await self._wake.wait()

    async def _try_step(self, group: asyncio.TaskGroup) -> float | None:
        """Take one step; return how long to wait for a wake-up, None for as long as it takes."""
        try:
            due_s = await self._step(group)
        except Unavailable as error:
            self._problem = str(error)
            log.warning("server step failed", key=str(self.key), error=self._problem)
            self._parts.changed.announce(self.key)
            return RETRY_S
        self._problem = ""
        return due_s

    async def _step(self, group: asyncio.TaskGroup) -> float | None:
        wanted = 0 if self._is_leaving else self.wish.replicas
        heal_in_s = await self._choose_replacement()
        standing = [replica.standing() for replica in self._ordered()]
        plan = decide(wanted, self.wish.template, standing)
        for ordinal in plan.start:
            await self._start(ordinal, group)
        for replica in self._ordered():
            if replica.name in plan.drain:
                replica.ask_drain(self._pre_stop_s())
        self._admit()
        if self._is_leaving and not self._replicas:
            self.idle.set()
            if self.wish.deleted:
                await self._forget()
            return None
        dues = [heal_in_s]
        if self._is_model_aware:
            dues.append(await self._requirements.settle(self._live()))
        return min((due for due in dues if due is not None), default=None)

    async def _choose_replacement(self) -> float | None:
        """Begin to replace a replica that has to be; return when the next one may be, if later."""
        if self._is_leaving or len(self._live()) < len(self._replicas):
            return None
        now_s = self._parts.clock.monotonic()
        candidates = [one.candidate() for one in self._live()]
        chosen = choose(candidates, dict(self.wish.restarts), may_heal=now_s >= self._heal_at_s)
        if chosen is None:
            is_ill = any(each.trouble for each in candidates)
            return max(0.0, self._heal_at_s - now_s) or None if is_ill else None
        name, why = chosen
        if why != BY_HAND:
            is_calm = now_s - self._heal_at_s > HEAL_BACKOFF.limit_s
            self._healed = 1 if is_calm else self._healed + 1
            self._heal_at_s = now_s + HEAL_BACKOFF.delay_s(self._healed)
        (replica,) = (one for one in self._live() if one.name == name)
        await replica.replace_for(why)
        return None

    async def _start(self, ordinal: int, group: asyncio.TaskGroup) -> None:
        record = ReplicaRecord(
            cluster=self.cluster,
            key=self.key,
            ordinal=ordinal,
            template=self.wish.template,
            created=self._parts.clock.now(),
        )
        replica = self._replica(record)
        await self._parts.files.call(write_json, replica.paths.state, record.row())
        self._replicas[ordinal] = replica
        group.create_task(self._keep(replica))
        log.info("replica starts", replica=replica.name, cluster=self.cluster)

    async def _keep(self, replica: LocalReplica) -> None:
        await replica.run()
        self._replicas.pop(replica.record.ordinal, None)
        self._notice()

    async def _forget(self) -> None:
        """Remove what is ours of a deleted server; the model config is somebody else's."""
        await self._admission.remove(timeout_s=self._embedded.endpoints_timeout_s)
        files, folder = self._parts.files, self._parts.folder
        await files.call(remove_tree, folder.model_cache(self.cluster, self.key))
        await self._requirements.forget()
        await files.call(remove_file, self._home / DESIRED_FILE)
        await files.call(folder.remove_empty, folder.replicas(self.cluster, self.key))
        log.info("server removed", key=str(self.key), cluster=self.cluster)
        self.finished.set()
        self._parts.changed.announce(self.key)

    def _replica(self, record: ReplicaRecord) -> LocalReplica:
        return LocalReplica(
            record, self._parts, on_change=self._notice, left_endpoints=self._left_endpoints
        )

    def _notice(self) -> None:
        """Something changed: publish at once, take a step soon, tell whoever listens."""
        self._admit()
        self._wake.set()
        self._parts.changed.announce(self.key)

    def _admit(self) -> None:
        ready = [one for one in self._replicas.values() if one.admits_traffic]
        sound = [one for one in ready if not one.has_dead_model]  # never none (ADR 0019)
        addresses = (one.address for one in sound or ready)
        self._admission.want(tuple(address for address in addresses if address is not None))

    async def _left_endpoints(self, address: Address) -> None:
        """Return once the data plane does not use the address.

        The end of a server waits for that no longer than its limit: the server's routes are gone by
        then, or everything is being stopped.
        """
        self._admit()
        timeout_s = self._embedded.endpoints_timeout_s
        has_left = False
        while not has_left:
            has_left = await self._admission.left(address, timeout_s=timeout_s) or self._is_leaving

    def _pre_stop_s(self) -> float:
        configured_s = self._parts.settings.drain.pre_stop_s
        if self._stopping:
            return min(configured_s, self._embedded.shutdown_pre_stop_s)
        return configured_s

    @property
    def _is_leaving(self) -> bool:
        """Tell whether no replica shall be left."""
        return self.wish.deleted or self._stopping

    @property
    def _is_model_aware(self) -> bool:
        return self._parts.settings.readiness_probe is ReadinessProbe.MODEL_AWARE

    def _ordered(self) -> tuple[LocalReplica, ...]:
        return tuple(self._replicas[ordinal] for ordinal in sorted(self._replicas))

    def _live(self) -> tuple[LocalReplica, ...]:
        return tuple(one for one in self._ordered() if one.life is not Life.DRAINING)


async def _ask(replica: LocalReplica, model: ModelName) -> ReplicaLoad | Unavailable:
    """Return the answer or the error: all replicas are heard before one of them counts."""
    try:
        return await replica.load(model)
    except Unavailable as error:
        return error
