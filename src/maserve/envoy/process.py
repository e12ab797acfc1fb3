"""The one Envoy process: started detached, adopted, restarted when it dies, drained at the end."""

import os
import random
import resource
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from maserve.base.backoff import Backoff
from maserve.base.clock import Clock
from maserve.base.errors import Denied, Unavailable
from maserve.base.tasks import run_until
from maserve.envoy.admin import Admin
from maserve.envoy.bootstrap import build_argv, find_binary, render_bootstrap
from maserve.envoy.layout import Layout
from maserve.envoy.types import EnvoySettings
from maserve.host import (
    Process,
    Program,
    Supervisor,
    Worker,
    log_size_bytes,
    read_log_from,
    write_atomically,
)

PROGRAM = "envoy"
_BACKOFF = Backoff(initial_s=0.02, limit_s=5.0, jitter=0.2)
_STEADY_S = 10.0
"""One that ran this long starts with a fresh backoff."""

_KILL_AFTER_S = 5.0
_POLL_S = 0.02
_FATAL = "[critical]"

log = structlog.get_logger()


class EnvoyProcess:
    """Owns the process of one data folder.

    `epoch` grows whenever the process is another one than before: what was known of the old one's
    configuration says nothing any more. `last_end` says how the last one ended, until the next one
    is seen to serve. `on_restart` is called whenever `run` has started one.
    """

    def __init__(
        self,
        settings: EnvoySettings,
        *,
        admin_socket: Path,
        supervisor: Supervisor,
        admin: Admin,
        worker: Worker,
        clock: Clock,
        rng: random.Random,
        on_restart: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._layout = Layout(settings.folder)
        self._admin_socket = admin_socket
        self._supervisor = supervisor
        self._admin = admin
        self._worker = worker
        self._clock = clock
        self._rng = rng
        self._on_restart = on_restart
        self._process: Process | None = None
        self._log_offset = 0
        self._is_ending = False
        self.epoch = 0
        self.last_end = ""

    @property
    def pid(self) -> int | None:
        """Return the process id, None while it does not run."""
        running = self._process is not None and not self._process.exited.is_set()
        return self._process.pid if self._process is not None and running else None

    def adopt(self) -> bool:
        """Take over an Envoy that an earlier life of the control plane has started."""
        self._process = self._supervisor.find(PROGRAM)
        self._log_offset = log_size_bytes(self._layout.log)
        self.epoch += 1
        return self._process is not None

    async def start(self) -> None:
        """Start Envoy on the discovery files and wait until it serves.

        Raises `Unavailable` with what its log says when it does not come up; it is ended then.
        """
        await self._spawn()
        deadline = self._clock.monotonic() + self._settings.start_timeout_s
        while not await self._is_ready():
            if self.pid is None or self._clock.monotonic() > deadline:
                problem = f"Envoy did not start: {self._last_words()}"
                await self._supervisor.terminate(PROGRAM, grace_s=0)
                raise Unavailable(problem)
            await self._clock.sleep(_POLL_S)

    async def run(self) -> None:
        """Start Envoy again whenever it ends or no longer answers, until cancelled or stopped.

        Envoy itself runs on.
        """
        failures = 0
        while not self._is_ending:
            started = self._clock.monotonic()
            if self._process is not None:
                await run_until(self._process.exited, self._end_if_hung())
                self.epoch += 1
                if self._is_ending:
                    return
                self.last_end = f"{self._process.exit}; {self._last_words()}"
                log.warning("envoy ended", why=self.last_end)
                self._process = None
            failures = 1 if self._clock.monotonic() - started > _STEADY_S else failures + 1
            await self._clock.sleep(_BACKOFF.delay_s(failures, self._rng) if failures > 1 else 0)
            await self._restart(failures)

    async def stop(self) -> None:
        """Drain and end Envoy: requests in flight end, up to the drain time. Absent is success."""
        self._is_ending = True
        if self.pid is not None:
            await self._drain()
        await self._supervisor.terminate(PROGRAM, grace_s=_KILL_AFTER_S)
        remove_socket(self._admin_socket, keep=self._settings.folder)
        self._process = None
        self.epoch += 1

    async def _restart(self, attempt: int) -> None:
        try:
            await self._spawn()
        except (Denied, Unavailable) as error:
            log.warning("envoy cannot be started", error=str(error), attempt=attempt)
        else:
            self._on_restart()

    async def _end_if_hung(self) -> None:
        """Kill a process that runs but has not answered several times in a row."""
        silent = 0
        while silent < self._settings.liveness_failures:
            await self._clock.sleep(self._settings.liveness_period_s)
            silent = 0 if await self._answers() else silent + 1
            self.last_end = self.last_end if silent else ""
        log.warning("envoy does not answer", pid=self.pid)
        await self._supervisor.terminate(PROGRAM, grace_s=0)

    async def _answers(self) -> bool:
        try:
            await self._admin.is_ready()
        except Unavailable:
            return False
        return True

    async def _spawn(self) -> None:
        await self._worker.call(ensure_socket_folder, self._admin_socket.parent)
        _, files = resource.getrlimit(resource.RLIMIT_NOFILE)  # Envoy takes all it may have
        text = render_bootstrap(self._layout, self._admin_socket, open_files=files)
        await self._worker.call(write_atomically, self._layout.bootstrap, text.encode())
        program = Program(
            name=PROGRAM,
            argv=build_argv(find_binary(), self._layout, self._settings),
            cwd=self._layout.folder,
            log=self._layout.log,
        )
        self._log_offset = log_size_bytes(self._layout.log)
        self._process = await self._supervisor.start(program)
        self.epoch += 1

    async def _drain(self) -> None:
        deadline = self._clock.monotonic() + self._settings.drain_s
        try:
            await self._admin.drain()
            while await self._admin.active_requests() and self._clock.monotonic() < deadline:
                await self._clock.sleep(_POLL_S)
        except Unavailable as error:
            log.warning("envoy ends without drain", error=str(error))

    async def _is_ready(self) -> bool:
        try:
            return await self._admin.is_ready()
        except Unavailable:
            return False

    def _last_words(self) -> str:
        """Return what the log says since the start: the first fatal line, else the last lines."""
        state = "no answer from its admin endpoint" if self.pid else "it ended"
        lines = read_log_from(self._layout.log, self._log_offset).splitlines()
        fatal = [line for line in lines if _FATAL in line]
        said = " ".join(fatal[:1] or lines[-5:])
        return f"{state}; see {self._layout.log}: {said[-800:]}"


def remove_socket(path: Path, *, keep: Path) -> None:
    """Remove the admin socket of an Envoy that has ended, and its folder unless that is `keep`."""
    path.unlink(missing_ok=True)
    if path.parent != keep:
        with suppress(OSError):
            path.parent.rmdir()


def ensure_socket_folder(folder: Path) -> None:
    """Make the folder of the admin socket; one that somebody else owns or may write is refused."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if not is_ours or found.st_mode & stat.S_IWOTH:
        raise Denied(f"{folder} is not safe for Envoy's admin socket: it is not ours alone")
