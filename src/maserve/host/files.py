"""Files that survive a crash: written whole or not at all, never half.

Every failure of the disk is `Unavailable` and names the path; a file that cannot be read as JSON is
`Invalid`, so that nobody takes it for empty.
"""

import glob
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from maserve.base.errors import Invalid, Problem, Unavailable

_FOLDER_TRIES = 10


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by `data`: after a crash it holds either the old or the new bytes.

    Makes missing parent folders. Raises `Unavailable` naming the path (a full disk, no permission).
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _make_folder(path.parent)
        _write_through(temporary, data)
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        _forget(temporary)
        raise Unavailable(f"cannot write {path}: {error.strerror or error}") from error


def write_json(path: Path, value: object) -> None:
    """Write `value` as JSON like `write_atomically`."""
    write_atomically(path, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode())


def find_json(path: Path) -> Any:
    """Return the parsed file, None when there is none. Raises `Invalid` for broken content."""
    data = find_bytes(path)
    if data is None:
        return None
    try:
        return json.loads(data)
    except ValueError as error:
        raise Invalid(Problem(str(path), f"is not JSON: {error}")) from error


def find_bytes(path: Path) -> bytes | None:
    """Return the content, None when there is no such file. Raises `Unavailable` otherwise."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unavailable(f"cannot read {path}: {error.strerror or error}") from error


def signature_of(path: Path) -> tuple[int, ...]:
    """Return what differs after every replacement of a file; nothing when it cannot be seen."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


def make_folder(path: Path) -> None:
    """Make a folder with its parents; there already is success. Raises `Unavailable`."""
    try:
        _make_folder(path)
    except OSError as error:
        raise Unavailable(f"cannot make {path}: {error.strerror or error}") from error


def remove_file(path: Path) -> None:
    """Remove a file, and what killed writers left of it; absent is success.

    Raises `Unavailable` naming the path.
    """
    try:
        path.unlink(missing_ok=True)
        for unfinished in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
            if unfinished.name.split(".")[-2].isdecimal():  # else of a file named alike
                unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise Unavailable(f"cannot remove {path}: {error.strerror or error}") from error


def remove_tree(path: Path) -> None:
    """Remove a folder and all below; absent is success. Raises `Unavailable` naming what stayed."""
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError as error:
        where = error.filename or path
        raise Unavailable(f"cannot remove {where}: {error.strerror or error}") from error


def remove_empty_folders(path: Path, *, stop: Path) -> None:
    """Remove `path` and its parents below `stop` as far as they are empty."""
    for folder in (path, *path.parents):
        if folder == stop or stop not in folder.parents:
            return
        try:
            folder.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            return


def _make_folder(path: Path) -> None:
    """Make the folder, also while somebody removes a parent that is empty at that moment."""
    for _ in range(_FOLDER_TRIES):
        with suppress(FileNotFoundError, FileExistsError):
            path.mkdir(parents=True, exist_ok=True)
            return
    path.mkdir(parents=True, exist_ok=True)


def _write_through(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _forget(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return
