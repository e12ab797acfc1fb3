"""What the map says of the code is so: sizes, doors between packages, exported names, freshness."""

import ast
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SRC = ROOT / "src"
LONGEST = 600

PUBLIC = (
    "resource",
    "conditions",
    "backends",
    "modelconfig",
    "routing",
    "endpoints",
    "gates",
    "inferenceserver",
    "deployment",
    "deployment.noop",
    "client",
)
"""What third parties may rely on (besides `cmd`'s `options()` and `testing`)."""

OPEN = ("base", "wire")
"""Packages whose modules are their surface."""

INSIDERS = ("wire", "testing")
"""Packages whose own imports are not looked at: generated, and the tests' companion."""


def expect_golden(name: str, lines: list[str]) -> None:
    """Compare with the golden file; `UPDATE_GOLDEN=1` rewrites it, to be read in review."""
    path = HERE / name
    text = "".join(f"{line}\n" for line in lines)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert path.read_text() == text, f"if this is meant: UPDATE_GOLDEN=1 pytest {HERE}"


def written_modules() -> list[Path]:
    """Return every module a person wrote."""
    folders = ("src", "tests", "examples", "benchmarks", "tools")
    generated = SRC / "maserve" / "wire"
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if generated not in path.parents)


def test_no_module_is_longer_than_600_lines() -> None:
    sizes = {path.relative_to(ROOT): path.read_text().count("\n") for path in written_modules()}
    assert {str(path): size for path, size in sizes.items() if size > LONGEST} == {}


def test_exported_names_are_the_ones_that_were_agreed_on() -> None:
    names = [
        f"maserve.{package}.{name}"
        for package in PUBLIC
        for name in sorted(importlib.import_module(f"maserve.{package}").__all__)
    ]
    expect_golden("exported_names.txt", names)


@pytest.mark.parametrize("package", PUBLIC)
def test_every_exported_name_is_there(package: str) -> None:
    module = importlib.import_module(f"maserve.{package}")
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_packages_are_entered_by_their_doors() -> None:
    """`__init__` and `types` are the doors; other modules that are imported are listed by name."""
    expect_golden("side_doors.txt", sorted(set(_side_doors())))


def _side_doors() -> Iterator[str]:
    for path in sorted((SRC / "maserve").rglob("*.py")):
        own = path.relative_to(SRC).with_suffix("").parts[1]
        imported = (node for node in ast.walk(ast.parse(path.read_text())) if own not in INSIDERS)
        modules = (node.module or "" for node in imported if isinstance(node, ast.ImportFrom))
        yield from (module for module in modules if _is_side_door(own, module))


def _is_side_door(own: str, module: str) -> bool:
    parts = module.split(".")
    if parts[0] != "maserve" or len(parts) < 3 or parts[1] in (own, *OPEN):
        return False
    is_package = (SRC.joinpath(*parts) / "__init__.py").is_file()
    return not is_package and parts[-1] != "types"


@pytest.mark.timeout(60)  # runs protoc in a process of its own
def test_generated_code_is_fresh() -> None:
    argv = [sys.executable, str(ROOT / "tools" / "gen_wire.py"), "--check"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
