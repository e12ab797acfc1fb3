"""What shall be served, written down, and the queue of its changes: many asked for, few swaps.

Invariant: what is on disk is what will be served after any crash; a change that Envoy has refused
is taken back, so that it can never block a later one.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from maserve.base.clock import Clock
from maserve.base.errors import Error, Unavailable
from maserve.envoy.layout import Layout
from maserve.envoy.render import Renderer
from maserve.envoy.snapshot import Snapshot, watched
from maserve.envoy.state import State, parse_state, render_state
from maserve.envoy.swap import Rejected, Swapper
from maserve.host import Worker, find_bytes, watch_limit, write_atomically

_REPAIR_S = 1.0
"""How long after a swap that got no answer it is tried again by itself."""

_SPARE_WATCHES = 4
"""What is left to others of this user: who needs one of the last must not end Envoy."""

_COMMON_FILES = 2
"""The lists of clusters and of listeners."""

Change = Callable[[State], State]
"""Changes what shall be served. May be applied more than once; raises what its caller gets."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Request:
    change: Change
    done: asyncio.Future[None]


class Ledger:
    """Holds the state; every change of it goes through `submit` while `run` runs."""

    def __init__(
        self,
        layout: Layout,
        *,
        renderer: Renderer,
        swapper: Swapper,
        worker: Worker,
        clock: Clock,
        can_watch: Callable[[int], bool],
    ) -> None:
        self._can_watch = can_watch
        self._renderer = renderer
        self._layout = layout
        self._swapper = swapper
        self._worker = worker
        self._clock = clock
        self._requests: list[_Request] = []
        self._wake = asyncio.Event()
        self._behind = asyncio.Event()
        self._is_to_mend = False
        self._told = ""
        self.state = State()

    async def load(self) -> None:
        """Read the state. Raises `Invalid` naming a file that is broken, which stays as it is."""
        data = await self._worker.call(find_bytes, self._layout.state)
        if data is not None:
            self.state = parse_state(data, source=str(self._layout.state))

    async def save(self, state: State) -> None:
        """Make `state` what shall be served; on disk first. Raises `Unavailable` on a full disk."""
        if state != self.state:
            text = render_state(state)
            await self._worker.call(write_atomically, self._layout.state, text.encode())
            self.state = state

    async def prepare(self) -> None:
        """Write the discovery files for an Envoy that does not run yet.

        Raises `Unavailable` when it could not watch them.
        """
        await self._check_room(len(watched(self.state)) + _COMMON_FILES)
        await self._swapper.write(await self._snapshot())

    async def catch_up(self) -> bool:
        """Bring the running Envoy to the state; what it does not take now is tried again later.

        Returns False for what it has refused, not for what it may still take.
        """
        try:
            await self._swapper.publish(await self._snapshot())
        except Unavailable as error:
            self._warn("envoy is behind", error)
            self._behind.set()
            return not isinstance(error, Rejected)
        self._told = ""
        return True

    def look_again(self) -> None:
        """Have Envoy compared with the state soon, as after its start."""
        self._is_to_mend = True
        self._wake.set()

    async def submit(self, change: Change) -> None:
        """Apply a change and return once Envoy runs it; what `change` raises is raised here."""
        request = _Request(change, asyncio.get_running_loop().create_future())
        self._requests.append(request)
        self._wake.set()
        await request.done

    async def run(self) -> None:
        """Serve changes until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._serve())
                group.create_task(self._repair())
        finally:
            _fail(self._requests, Unavailable("the data plane's control has ended"))
            self._requests = []

    async def _serve(self) -> None:
        """Mend what is behind, then take all that has been asked for meanwhile into one swap."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._is_to_mend:
                await self._mend()
            batch, self._requests = self._requests, []
            try:
                await self._settle(batch)
            finally:
                _fail(batch, Unavailable("the change was not finished"))

    async def _repair(self) -> None:
        while True:
            await self._behind.wait()
            self._behind.clear()
            await self._clock.sleep(_REPAIR_S)
            self.look_again()

    async def _mend(self) -> None:
        self._is_to_mend = False
        self._swapper.forget_refusals()
        await self.catch_up()

    async def _settle(self, batch: Sequence[_Request]) -> None:
        before = self.state
        state, applied = _apply(before, batch)
        if not applied or (state == before and self._swapper.is_current()):
            _finish(applied)
            return
        try:
            await self._check_room(len(watched(state) - watched(before)))
        except Unavailable as error:
            await self._split(applied, error)
            return
        try:
            await self.save(state)
            await self._swapper.publish(await self._snapshot())
        except Rejected as error:
            await self._take_back(before, applied, error)
        except Unavailable as error:
            self._behind.set()
            _fail(applied, error)
        else:
            _finish(applied)

    async def _take_back(self, before: State, applied: Sequence[_Request], error: Rejected) -> None:
        """Undo what was refused."""
        try:
            await self.save(before)
        except Unavailable as full:
            self._behind.set()
            _fail(applied, full)
            return
        await self.catch_up()
        await self._split(applied, error)

    async def _split(self, applied: Sequence[_Request], error: Unavailable) -> None:
        """Of several changes that cannot be made together, try each by itself."""
        if len(applied) > 1:
            for request in applied:
                await self._settle([request])
            return
        self._warn("envoy cannot take a change", error)
        _fail(applied, error)

    async def _check_room(self, more_files: int) -> None:
        """Raise `Unavailable` for more files than can be watched: Envoy would die of them."""
        if more_files <= 0 or await self._worker.call(self._can_watch, more_files + _SPARE_WATCHES):
            return
        text = f"Envoy cannot watch {more_files} more files: raise {watch_limit()} with sysctl"
        raise Unavailable(text)

    def _warn(self, event: str, error: Unavailable) -> None:
        """Log what is not the same as last time: what fails is tried again and again."""
        if str(error) != self._told:
            log.warning(event, error=str(error))
        self._told = str(error)

    async def _snapshot(self) -> Snapshot:
        return await self._worker.call(self._renderer.snapshot, self.state)


def _apply(state: State, batch: Sequence[_Request]) -> tuple[State, list[_Request]]:
    applied: list[_Request] = []
    for request in batch:
        try:
            state = request.change(state)
        except Error as error:
            _fail([request], error)
        else:
            applied.append(request)
    return state, applied


def _finish(requests: Sequence[_Request]) -> None:
    for request in requests:
        if not request.done.done():
            request.done.set_result(None)


def _fail(requests: Sequence[_Request], error: Error) -> None:
    for request in requests:
        if not request.done.done():
            request.done.set_exception(error)
