"""What a model folder looks like: `config.pbtxt`, and version folders named by numbers."""

import os
import re
from pathlib import Path

from maserve.artifacts.pbtxt import parse_config_text
from maserve.base.errors import Invalid, Problem

CONFIG_FILE = "config.pbtxt"

_VERSION = re.compile(r"[1-9][0-9]*")
_MAX_PROBLEMS = 20


def verify_model_folder(path: Path, model_name: str) -> None:
    """Check that `path` can be loaded as `model_name`; reads the tree, blocks.

    Wanted: a folder with at least one version folder (a number without leading zeros) that is not
    empty; a `config.pbtxt`, if there, that is well-formed and names this model or none; no file
    that cannot be read and no link out of the folder. Raises `Invalid` with every problem (the
    first 20), fields relative to the folder.
    """
    if not path.is_dir():
        raise Invalid(Problem(model_name, "is no folder"))
    problems = (
        *_version_problems(path),
        *_config_problems(path, model_name),
        *_file_problems(path),
    )
    if problems:
        raise Invalid(*problems[:_MAX_PROBLEMS])


def strip_single_folder(path: Path) -> None:
    """Move the content of a lone top-level folder up, if it holds the version folders; blocks.

    `path` is replaced by a rename; `<path>.inner` exists meanwhile.
    """
    entries = list(path.iterdir())
    if len(entries) != 1 or entries[0].is_symlink() or not entries[0].is_dir():
        return
    if _is_version(entries[0]) or not any(_is_version(child) for child in entries[0].iterdir()):
        return
    inner = path.with_name(f"{path.name}.inner")
    entries[0].rename(inner)
    path.rmdir()
    inner.rename(path)


def _is_version(path: Path) -> bool:
    return bool(_VERSION.fullmatch(path.name)) and path.is_dir()


def _version_problems(path: Path) -> tuple[Problem, ...]:
    versions = sorted(child for child in path.iterdir() if _is_version(child))
    if not versions:
        found = ", ".join(sorted(child.name for child in path.iterdir())[:5]) or "nothing"
        return (Problem("", f"needs a version folder named by a number, like 1/; holds {found}"),)
    return tuple(
        Problem(f"{version.name}/", "is an empty version folder")
        for version in versions
        if not any(version.iterdir())
    )


def _config_problems(path: Path, model_name: str) -> tuple[Problem, ...]:
    config = path / CONFIG_FILE
    if not config.exists():
        return ()
    try:
        parsed = parse_config_text(config.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        return (Problem(CONFIG_FILE, "is not UTF-8 text"),)
    except OSError:
        return ()  # reported once, with all unreadable files
    if parsed.fault:
        return (Problem(CONFIG_FILE, f"is malformed: {parsed.fault}"),)
    if parsed.name not in ("", model_name):
        return (Problem(CONFIG_FILE, f"names model {parsed.name!r}, not {model_name!r}"),)
    return ()


def _file_problems(path: Path) -> tuple[Problem, ...]:
    root = path.resolve()
    problems: list[Problem] = []
    for folder, folders, files in os.walk(
        path, onerror=lambda e: problems.append(_unreadable(path, e))
    ):
        problems.extend(
            Problem(str((Path(folder) / name).relative_to(path)), fault)
            for name in (*folders, *files)
            if (fault := _fault(Path(folder) / name, root))
        )
    return tuple(sorted(problems, key=lambda problem: problem.field))


def _fault(path: Path, root: Path) -> str:
    if path.is_symlink():
        if not path.resolve().is_relative_to(root):
            return "is a link out of the model folder"
        if not path.exists():
            return "is a link to nothing"
    if not path.is_file() and not path.is_dir():
        return "is neither file nor folder"
    return "" if os.access(path, os.R_OK) else "cannot be read"


def _unreadable(path: Path, error: OSError) -> Problem:
    where = Path(error.filename or path)
    return Problem(str(where.relative_to(path)), f"cannot be read: {error.strerror}")
