"""Triton from the `nvidia-pytriton` wheel, made ready to start on this machine.

The wheel is never imported. A private copy of its backends folder gets the stub for this
interpreter's version and numpy, because the stub ignores virtual environments and PYTHONPATH.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from maserve.backends.triton.local.engine import Command, EngineLaunch
from maserve.backends.triton.settings import TritonSettings
from maserve.base.errors import Unavailable, Unsupported
from maserve.host import LOOPBACK, Worker, remove_tree, run_command

WHEEL = "nvidia-pytriton"
HOW_TO_INSTALL = f"install it with: pip install --no-deps {WHEEL}"
STUB = "triton_python_backend_stub"
LOADER = "/lib64/ld-linux-x86-64.so.2"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
CHECK_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """The Python that models run in; `version` is major.minor.

    `library` is the file name of its shared library, empty when it was built without.
    """

    version: str
    prefix: Path
    library: str
    library_folders: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """Where the parts are installed. `numpy` is the package's folder."""

    version: str
    root: Path
    libraries: Path
    numpy: Path
    numpy_version: str

    @property
    def server(self) -> Path:
        return self.root / "bin" / "tritonserver"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTriton:
    """What starting needs. `version` is the wheel's and the interpreter's."""

    version: str
    server: Path
    backends: Path
    env: dict[str, str]


class TritonWheel:
    """The engine of the embedded mode. `folder` holds one prepared copy per version."""

    def __init__(self, folder: Path, settings: TritonSettings, *, interpreter: Interpreter) -> None:
        self._folder = folder
        self._settings = settings
        self._interpreter = interpreter
        self._worker = Worker("triton-wheel")
        self._prepared: PreparedTriton | None = None

    async def prepare(self) -> str:
        """Copy what is needed and see that a stub can start. See `Engine.prepare`."""
        if self._prepared is None:
            self._prepared = await self._worker.call(
                prepare_triton, self._folder, self._interpreter
            )
        return self._prepared.version

    def command(self, launch: EngineLaunch) -> Command:
        if self._prepared is None:
            raise RuntimeError("TritonWheel.command before prepare")
        return build_command(self._prepared, launch, self._settings)


def build_command(
    prepared: PreparedTriton, launch: EngineLaunch, settings: TritonSettings
) -> Command:
    """Return Triton's command line (behaviour 4.1), everything bound to loopback."""
    flags = {
        "model-store": launch.repository,
        "backend-directory": prepared.backends,
        "http-address": LOOPBACK,
        "grpc-address": LOOPBACK,
        "metrics-address": LOOPBACK,
        "grpc-port": launch.grpc_port,
        "http-port": launch.http_port,
        "allow-grpc": "true",
        "allow-http": "true",
        "allow-metrics": "true",
        "metrics-port": launch.metrics_port,
        "model-control-mode": "explicit",
        "strict-readiness": "false",
        "exit-on-error": "true",
        "exit-timeout-secs": max(1, round(settings.drain.exit_timeout_s)),
        "log-error": "true",
        "log-warning": "true",
        "log-verbose": "0",
        "backend-config": f"python,shm-region-prefix-name={launch.shm_prefix}",
    }
    completion = () if settings.auto_complete_config else ("--disable-auto-complete-config",)
    argv = (str(prepared.server), *(f"--{k}={v}" for k, v in flags.items()), *completion)
    return Command(argv=argv, env=prepared.env)


def this_interpreter() -> Interpreter:
    """Return the interpreter we run in, without its virtual environment."""
    shared = bool(sysconfig.get_config_var("Py_ENABLE_SHARED"))
    folder = sysconfig.get_config_var("LIBDIR") or ""
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    prefix = Path(sys.base_prefix)
    folders = (Path(folder), Path(folder) / multiarch, prefix / "lib")
    return Interpreter(
        version=f"{sys.version_info.major}.{sys.version_info.minor}",
        prefix=prefix,
        library=str(sysconfig.get_config_var("INSTSONAME") or "") if shared else "",
        library_folders=folders,
    )


def find_wheel() -> Wheel:
    """Return where the wheel and numpy are. Raises `Unsupported` saying what to install."""
    package = _package_folder("pytriton")
    if package is None:
        raise Unsupported(f"Triton is not installed; {HOW_TO_INSTALL}")
    numpy = _package_folder("numpy")
    numpy_version = _version("numpy")
    if numpy is None or int(numpy_version.split(".")[0] or 0) >= 2:
        has = f"numpy {numpy_version} is installed" if numpy else "numpy is not installed"
        raise Unsupported(
            f'Triton\'s Python models need numpy below 2, {has}: pip install "numpy<2"'
        )
    return Wheel(
        version=_version(WHEEL),
        root=package / "tritonserver",
        libraries=package.parent / "nvidia_pytriton.libs",
        numpy=numpy,
        numpy_version=numpy_version,
    )


def prepare_triton(folder: Path, interpreter: Interpreter) -> PreparedTriton:
    """Make the private copy for this wheel and interpreter, once, and check it. Blocks.

    Raises `Unsupported` when a person has to act, `Unavailable` when the disk fails.
    """
    wheel = find_wheel()
    library_folder = find_library_folder(interpreter)
    version = f"{wheel.version}-py{interpreter.version}"
    parts = (version, wheel.root, wheel.numpy, wheel.numpy_version, interpreter.prefix)
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:12]
    home = folder / f"triton-{version}-{digest}"
    if not home.is_dir():
        make_home(home, wheel, interpreter)
    copied = home / "bin" / "tritonserver"
    prepared = PreparedTriton(
        version=version,
        server=copied if copied.exists() else wheel.server,
        backends=home / "backends",
        env={
            "LD_LIBRARY_PATH": f"{library_folder}:{wheel.libraries}",
            # The stub takes the first python3 on the path for its own home.
            "PATH": f"{interpreter.prefix / 'bin'}:{SYSTEM_PATH}",
        },
    )
    check_loadable(prepared.server, prepared.env)
    check_loadable(home / "backends" / "python" / STUB, prepared.env)
    return prepared


def find_library_folder(interpreter: Interpreter) -> Path:
    """Return the folder of the interpreter's shared library. Raises `Unsupported` without one."""
    if interpreter.library:
        for folder in interpreter.library_folders:
            if (folder / interpreter.library).exists():
                return folder
    raise Unsupported(
        f"Triton's Python models need an interpreter built with --enable-shared, and"
        f" Python {interpreter.version} in {interpreter.prefix} has no shared library"
    )


def check_loadable(program: Path, env: dict[str, str]) -> None:
    """See that every library of a program is found. Raises `Unsupported` naming what is missing.

    Without this a stub that cannot start makes every load call hang, and nothing says why.
    """
    listing = run_command((LOADER, "--list", str(program)), env=env, timeout_s=CHECK_TIMEOUT_S)
    problem = parse_loader_problem(listing.output)
    if problem or listing.code:
        raise Unsupported(f"{program.name} cannot start: {problem or listing.output.strip()}")


def parse_loader_problem(output: str) -> str:
    """Return what the loader's listing complains about, empty when it is content."""
    lines = [line.strip() for line in output.splitlines()]
    missing = [line.split(" ")[0] for line in lines if line.endswith("=> not found")]
    old = [line for line in lines if "version `GLIBC" in line]
    if old:
        needed = old[0].split("version `")[1].split("'")[0].replace("_", " ")
        return f"this system's C library is too old, {needed} is needed"
    return f"missing libraries: {', '.join(missing)}" if missing else ""


def make_home(home: Path, wheel: Wheel, interpreter: Interpreter) -> None:
    """Make the private copy in one step; what a crash left half made is removed first. Blocks."""
    stub = wheel.root / "python_backend_stubs" / interpreter.version / STUB
    if not stub.exists():
        raise Unsupported(f"{WHEEL} {wheel.version} has no stub for Python {interpreter.version}")
    building = home.with_name(f".{home.name}")
    remove_tree(building)
    try:
        _copy_parts(building, wheel, stub)
        building.rename(home)
    except OSError as error:
        shutil.rmtree(building, ignore_errors=True)
        raise Unavailable(f"cannot prepare {home}: {error}") from error


def _copy_parts(home: Path, wheel: Wheel, stub: Path) -> None:
    python = home / "backends" / "python"
    shutil.copytree(wheel.root / "backends", home / "backends")
    shutil.copy2(stub, python / STUB)
    (python / STUB).chmod(0o755)
    (python / "numpy").symlink_to(wheel.numpy)
    bundled = wheel.numpy.parent / "numpy.libs"
    if bundled.is_dir():
        (python / "numpy.libs").symlink_to(bundled)
    if not os.access(wheel.server, os.X_OK):
        (home / "bin").mkdir()
        shutil.copy2(wheel.server, home / "bin" / "tritonserver")
        (home / "bin" / "tritonserver").chmod(0o755)


def _package_folder(name: str) -> Path | None:
    importlib.invalidate_caches()
    spec = importlib.util.find_spec(name)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return Path(folders[0]) if folders else None


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "0"
