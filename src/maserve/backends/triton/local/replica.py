"""One replica: an engine process and its model-sync, from start to removal."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import structlog

from maserve.backends.triton.local.decide import Life, Standing
from maserve.backends.triton.local.keeper import Keeper
from maserve.backends.triton.local.loads import ReplicaLoads
from maserve.backends.triton.local.parts import LocalTritonParts, ReplicaPaths
from maserve.backends.triton.local.probing import Prober
from maserve.backends.triton.local.programs import (
    build_engine_program,
    build_modelsync_program,
    engine_url,
    program_names,
    shm_prefix,
)
from maserve.backends.triton.local.replacing import Candidate
from maserve.backends.triton.local.sidecar import Sidecar
from maserve.backends.triton.local.state import ReplicaRecord
from maserve.backends.types import LoadState, ReplicaLoad, ReplicaStatus
from maserve.base.backoff import Backoff
from maserve.base.errors import Unavailable
from maserve.base.keys import ModelName, ReplicaName
from maserve.base.tasks import run_until
from maserve.host import (
    LOOPBACK,
    HttpClient,
    Process,
    Program,
    make_folder,
    remove_shared_memory,
    remove_tree,
    write_json,
)

CRASHES_UNTIL_FAILED = 5
"""So many starts in a row that came to nothing make a replica FAILED; it is tried on."""

IN_USE = ("already in use", "Address in use", "address already in use")

log = structlog.get_logger()


class LocalReplica:
    """Runs until it was asked to drain and is gone; cancelling leaves its processes alone.

    `on_change` is called after every change of state; `left_endpoints` returns once the data plane
    has acknowledged that the replica's address gets no more traffic.
    """

    def __init__(
        self,
        record: ReplicaRecord,
        parts: LocalTritonParts,
        *,
        on_change: Callable[[], None],
        left_endpoints: Callable[[tuple[str, int]], Awaitable[None]],
    ) -> None:
        self._parts = parts
        self._on_change = on_change
        self._left_endpoints = left_endpoints
        self._embedded = parts.settings.embedded
        self.paths = ReplicaPaths(
            home=parts.folder.replica(record.cluster, record.key, record.name)
        )
        self._engine_name, sync_name = program_names(record)
        runs = parts.supervisor.find(self._engine_name) is not None
        self.record = replace(record, ready=record.ready and runs)
        self._life = Life.RUNNING if self.record.ready else Life.STARTING
        self._reason = ""
        self._drain_asked = asyncio.Event()
        self._has_ports = asyncio.Event()
        self._pre_stop_s = parts.settings.drain.pre_stop_s
        self._loads = ReplicaLoads(record.name, timeout_s=self._embedded.status_timeout_s)
        self._engine = Keeper(
            self._engine_name,
            supervisor=parts.supervisor,
            clock=parts.clock,
            settings=self._embedded,
            output=self.paths.engine_log,
            ensure=self._ensure_engine,
            observe=self._observe,
            on_exit=self._engine_exited,
            on_down=self._engine_down,
        )
        self._sync = Sidecar(
            sync_name,
            parts,
            output=self.paths.modelsync_log,
            program=self._sync_program,
            on_change=on_change,
        )

    @property
    def name(self) -> ReplicaName:
        return self.record.name

    @property
    def life(self) -> Life:
        return Life.DRAINING if self.record.draining else self._life

    @property
    def address(self) -> tuple[str, int] | None:
        """Return where it answers HTTP, None before it has ports."""
        return (LOOPBACK, self.record.ports[0]) if self.record.ports else None

    @property
    def admits_traffic(self) -> bool:
        return self.record.ready and not self.record.draining

    @property
    def warning(self) -> str:
        """Return what is not as it should be though requests may be served; empty for nothing."""
        troubles = self._loads.troubles()
        told = {**troubles.dead, **troubles.hopeless}
        replaced = f"it is being replaced: {self.record.replaced_for}"
        texts = (self._sync.warning, *told.values(), replaced if self.record.replaced_for else "")
        return ", ".join(text for text in texts if text)

    @property
    def has_dead_model(self) -> bool:
        """Tell whether a model here answers errors alone though the engine shows it READY."""
        return bool(self._loads.troubles().dead)

    def candidate(self) -> Candidate:
        """Return the replica as the choice of the next replacement sees it."""
        troubles = self._loads.troubles()
        trouble = next(iter(troubles.hopeless.values()), "")
        return Candidate(
            name=self.name,
            created=self.record.created,
            is_well=self.admits_traffic and not troubles.dead and not trouble,
            is_settled=self.life is not Life.STARTING and not self.record.replaced_for,
            trouble=trouble,
            is_dead=bool(troubles.dead),
        )

    async def replace_for(self, why: str) -> None:
        """Have another replica take this one's place; it drains when that one is ready."""
        log.warning("replica is replaced", replica=self.name, reason=why)
        self.record = replace(self.record, replaced_for=why)
        await self._save(self.record)
        self._on_change()

    def standing(self) -> Standing:
        record = self.record
        return Standing(
            name=self.name,
            ordinal=record.ordinal,
            # One that is to be replaced counts as having an earlier template.
            template="" if record.replaced_for else record.template,
            life=self.life,
            ready=record.ready,
        )

    def status(self) -> ReplicaStatus:
        """Return the replica as people see it."""
        process = self._parts.supervisor.find(self._engine_name)
        address = self.address
        return ReplicaStatus(
            name=self.name,
            state=self.life,
            ready=self.admits_traffic,
            reason=self.warning if self.admits_traffic else self._why(),
            pid=process.pid if process else 0,
            address=f"{address[0]}:{address[1]}" if address else "",
            restarts=self.record.restarts,
            started=process.started if process else None,
        )

    async def load(self, model: ModelName) -> ReplicaLoad:
        """Return the model's state here, from a reading younger than the last config change.

        Raises `Unavailable` when a replica that runs does not answer, or was not asked yet since it
        was adopted: what it has loaded is unknown then, and may be all that is asked about.
        """
        process = self._parts.supervisor.find(self._engine_name)
        started = process.started if process else None
        if process is None or self.life is not Life.RUNNING:
            reason = f"replica is {self.life}"
            return ReplicaLoad(
                replica=self.name, running=False, state=LoadState.LOADING, reason=reason
            )
        state, reason = await self._loads.state(model)
        if state is LoadState.LOADING:
            reason = self._with_sync(reason)
        return ReplicaLoad(
            replica=self.name, running=True, state=state, reason=reason, started=started
        )

    def serving_states(self) -> Mapping[ModelName, LoadState] | None:
        """See `HoldsModels.serving_states`."""
        is_up = self.life is Life.RUNNING
        return self._loads.latest() if is_up else None

    def ask_drain(self, pre_stop_s: float) -> None:
        """Begin to leave: out of the endpoints, `pre_stop_s` of quiet, SIGTERM, gone. Once."""
        if not self._drain_asked.is_set():
            self._pre_stop_s = pre_stop_s
            self._drain_asked.set()
            self.record = replace(self.record, draining=True)
            log.info("replica drains", replica=self.name, cluster=self.record.cluster)
            self._on_change()

    def invalidate(self) -> None:
        """Make readings of the index that have begun already too old."""
        self._loads.invalidate()

    async def run(self) -> None:
        """Keep both programs running; after `ask_drain` end them, remove everything and return."""
        await self._save(self.record)  # an engine that died while nobody looked is not ready
        if self.record.draining:
            self._drain_asked.set()
        await run_until(self._drain_asked, self._engine.run(), self._sync.run())
        await self._drain()
        await self._remove()

    async def _ensure_engine(self) -> Process:
        """Return the running engine, or start it; ports and record are on disk before that.

        For one that runs nothing is prepared: what it takes to start another must not be in the way
        of watching it.
        """
        parts = self._parts
        running = parts.supervisor.find(self._engine_name)
        if running is not None:
            self._has_ports.set()
            return running
        await parts.engine.prepare()
        if not self.record.ports:
            ports = await parts.files.call(parts.ports.allocate, self._engine_name, 3)
            self.record = replace(self.record, ports=ports)
        elif not await parts.files.call(parts.ports.are_free, self.record.ports):
            await self._move_ports()  # whoever has one now must not be taken for our engine
        await parts.files.call(write_json, self.paths.state, self.record.row())
        self._has_ports.set()
        await parts.files.call(remove_shared_memory, shm_prefix(self.paths))
        make_folder(self.paths.models)
        return await parts.supervisor.start(build_engine_program(self.record, self.paths, parts))

    async def _sync_program(self) -> Program:
        """Return model-sync's program, once it is known where the engine listens."""
        await self._has_ports.wait()
        make_folder(self.paths.models)
        return build_modelsync_program(self.record, self.paths, self._parts)

    async def _observe(self, _process: Process) -> None:
        """Probe a running engine until it has to be ended or ends by itself."""
        # A client of its own: a kept-alive connection would make Triton wait out its exit timeout.
        async with HttpClient() as http:
            problem = await self._probe(http)
        await self._engine.kill(problem, grace_s=self._embedded.kill_margin_s)

    async def _probe(self, http: HttpClient) -> str:
        """Probe until the engine has to be ended; return why."""
        prober = Prober(
            engine_url(self.record),
            self._parts,
            http=http,
            paths=self.paths,
            model_config=self._parts.folder.model_config(self.record.cluster, self.record.key),
            was_ready=self.record.ready,
            on_verdict=self._note_ready,
        )
        # One that was ready has started; only its liveness may end it now.
        problem = "" if self.record.ready else await prober.wait_started()
        if problem:
            self._reason = problem
            self._set_life(Life.FAILED)
            return problem
        self._set_life(Life.RUNNING)
        self._loads.open(prober.poller)
        return await prober.run()

    def _engine_exited(self) -> None:
        """Leave the endpoints in this moment; everything else about the end can wait."""
        self._loads.close()
        if self._life is Life.RUNNING:
            self._life = Life.STARTING
        self.record = replace(self.record, ready=False)
        self._on_change()

    async def _engine_down(self, reason: str, said: str, failures: int) -> bool:
        """Take note that the engine does not run; tells whether to start it again at once."""
        failed = self._life is Life.FAILED or failures >= CRASHES_UNTIL_FAILED
        self._reason = reason
        self._life = Life.FAILED if failed else Life.STARTING
        self.record = replace(self.record, restarts=self.record.restarts + 1)
        self._on_change()
        await self._forget_shared_memory()
        moved = any(text in said for text in IN_USE) and await self._move_ports()
        await self._save(self.record)
        return moved

    async def _forget_shared_memory(self) -> None:
        try:
            await self._parts.files.call(remove_shared_memory, shm_prefix(self.paths))
        except Unavailable as error:
            log.warning("shared memory is left", replica=self.name, error=str(error))

    async def _move_ports(self) -> bool:
        """Take other ports because somebody has one of ours; model-sync has to learn of them."""
        parts = self._parts
        try:
            ports = await parts.files.call(parts.ports.replace, self._engine_name, 3)
            self.record = replace(self.record, ports=ports)
            await self._sync.end()
        except Unavailable as error:
            log.warning("ports not moved", replica=self.name, error=str(error))
            return False
        return True

    async def _note_ready(self, ready: bool, reason: str) -> None:
        """Take note of a verdict on readiness; called when anything is new.

        Readiness is on disk before traffic can come, and traffic is gone before unreadiness is: a
        control plane that starts anew never takes out a replica that serves.
        """
        turned = ready != self.record.ready
        if turned and ready:
            await self._save(replace(self.record, ready=True, admitted=True))
        self._reason = reason
        self.record = replace(self.record, ready=ready, admitted=self.record.admitted or ready)
        self._on_change()
        if turned:
            event = "replica ready" if ready else "replica not ready"
            log.info(event, replica=self.name, cluster=self.record.cluster, reason=reason)
        if turned and not ready:
            await self._save(self.record)

    async def _drain(self) -> None:
        await self._save(self.record)
        address = self.address
        if address is not None:
            await self._left_endpoints(address)
        process = self._parts.supervisor.find(self._engine_name)
        if process is not None and self.record.admitted:
            await self._wait_quiet(process)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._until_done("engine does not end", self._end_engine))
            group.create_task(self._until_done("model-sync does not end", self._sync.end))

    async def _wait_quiet(self, process: Process) -> None:
        """Wait out the pre-stop time, from when the endpoints were left; a crash ends it."""
        now = self._parts.clock.now()
        left = self.record.left_endpoints or now
        self.record = replace(self.record, left_endpoints=left)
        await self._save(self.record)
        rest_s = self._pre_stop_s - (now - left).total_seconds()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(max(rest_s, 0.0), self._pre_stop_s)):
                await process.exited.wait()

    async def _end_engine(self) -> None:
        grace_s = self._parts.settings.drain.exit_timeout_s + self._embedded.kill_margin_s
        await self._parts.supervisor.terminate(self._engine_name, grace_s=grace_s)

    async def _remove(self) -> None:
        await self._until_done("replica cannot be removed", self._remove_files)
        log.info("replica removed", replica=self.name, cluster=self.record.cluster)

    async def _remove_files(self) -> None:
        files = self._parts.files
        await files.call(remove_shared_memory, shm_prefix(self.paths))
        await files.call(remove_tree, self.paths.home)
        await files.call(self._parts.ports.release, self._engine_name)

    async def _until_done(self, problem: str, work: Callable[[], Awaitable[None]]) -> None:
        backoff = Backoff(
            initial_s=self._embedded.restart_initial_s, limit_s=self._embedded.restart_limit_s
        )
        failures = 0
        while True:
            try:
                return await work()
            except Unavailable as error:
                failures += 1
                self._reason = str(error)
                log.warning(problem, replica=self.name, error=str(error), attempt=failures)
                await self._parts.clock.sleep(backoff.delay_s(failures))

    async def _save(self, record: ReplicaRecord) -> None:
        """Write the record. A disk that fails now costs at most a second probe after a restart."""
        try:
            await self._parts.files.call(write_json, self.paths.state, record.row())
        except Unavailable as error:
            log.warning("replica state not saved", replica=self.name, error=str(error))

    def _set_life(self, life: Life) -> None:
        if self._life is not life:
            self._life = life
            log.info("replica moved", replica=self.name, state=str(life))
            self._on_change()

    def _why(self) -> str:
        if self.record.draining:
            return "leaves"
        return self._with_sync(self._reason or f"replica is {self.life}")

    def _with_sync(self, reason: str) -> str:
        """Add why model-sync does not run, if it does not."""
        return f"{reason} (model-sync: {self._sync.reason})" if self._sync.reason else reason
