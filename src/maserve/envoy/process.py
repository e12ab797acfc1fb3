"""The one Envoy process: started detached, adopted, restarted when it dies, drained at the end."""

import errno
import ipaddress
import os
import random
import socket
import stat
from contextlib import suppress
from pathlib import Path

import structlog

from maserve.base.backoff import Backoff
from maserve.base.clock import Clock
from maserve.base.errors import Denied, Invalid, Problem, Unavailable
from maserve.envoy.admin import Admin
from maserve.envoy.bootstrap import build_argv, find_binary, render_bootstrap
from maserve.envoy.layout import Layout
from maserve.envoy.types import Address, EnvoySettings
from maserve.host import Process, Program, Supervisor, Worker, tail_log, write_atomically

PROGRAM = "envoy"
_BACKOFF = Backoff(initial_s=0.02, limit_s=5.0, jitter=0.2)
_STEADY_S = 10.0
"""One that ran this long starts with a fresh backoff."""

_KILL_AFTER_S = 5.0
_POLL_S = 0.02

log = structlog.get_logger()


class EnvoyProcess:
    """Owns the process of one data folder.

    `epoch` grows whenever the process is another one than before: what was known of the old one's
    configuration says nothing any more.
    """

    def __init__(
        self,
        settings: EnvoySettings,
        *,
        admin_socket: Path,
        supervisor: Supervisor,
        admin: Admin,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._settings = settings
        self._layout = Layout(settings.folder)
        self._admin_socket = admin_socket
        self._supervisor = supervisor
        self._admin = admin
        self._clock = clock
        self._rng = rng
        self._process: Process | None = None
        self._is_ending = False
        self.epoch = 0

    @property
    def pid(self) -> int | None:
        """Return the process id, None while it does not run."""
        running = self._process is not None and not self._process.exited.is_set()
        return self._process.pid if self._process is not None and running else None

    def adopt(self) -> bool:
        """Take over an Envoy that an earlier life of the control plane has started."""
        self._process = self._supervisor.find(PROGRAM)
        self.epoch += 1
        return self._process is not None

    async def start(self, worker: Worker) -> None:
        """Start Envoy on the discovery files and wait until it serves.

        Raises `Unavailable` with the end of its log when it does not come up.
        """
        await worker.call(ensure_socket_folder, self._admin_socket.parent)
        text = render_bootstrap(self._layout, self._admin_socket)
        await worker.call(write_atomically, self._layout.bootstrap, text.encode())
        await self._spawn()
        deadline = self._clock.monotonic() + self._settings.start_timeout_s
        while not await self._is_ready():
            if self.pid is None or self._clock.monotonic() > deadline:
                raise Unavailable(f"Envoy did not start: {self._last_words()}")
            await self._clock.sleep(_POLL_S)

    async def run(self) -> None:
        """Start Envoy again whenever it ends, until cancelled or stopped. Envoy itself runs on."""
        failures = 0
        while not self._is_ending:
            started = self._clock.monotonic()
            if self._process is not None:
                await self._process.exited.wait()
                self.epoch += 1
                if self._is_ending:
                    return
                log.warning("envoy ended", exit=str(self._process.exit))
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
        except Unavailable as error:
            log.warning("envoy cannot be started", error=str(error), attempt=attempt)

    async def _spawn(self) -> None:
        program = Program(
            name=PROGRAM,
            argv=build_argv(find_binary(), self._layout, self._settings),
            cwd=self._layout.folder,
            log=self._layout.log,
        )
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
        state = "no answer from its admin endpoint" if self.pid else "it ended"
        lines = " ".join(tail_log(self._layout.log, 5))
        return f"{state}; see {self._layout.log}: {lines[-800:]}"


def check_address_free(address: Address, setting: str) -> None:
    """Raise `Invalid` naming the address and its setting when nobody could listen there now."""
    family = socket.AF_INET6 if ipaddress.ip_address(address.host).version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address.host, address.port))
            probe.listen(1)
        except OSError as error:
            what = "is in use" if error.errno == errno.EADDRINUSE else f"fails: {error.strerror}"
            raise Invalid(Problem(setting, f"{address} {what}; choose another one")) from error


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
