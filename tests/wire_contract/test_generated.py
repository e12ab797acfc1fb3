"""What is generated is fresh, and the stubs say what is there at run time."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WIRE = ROOT / "src" / "maserve" / "wire"
MODULES = sorted(path.stem for path in WIRE.glob("*.pyi"))
MODULE_NAMES = {"lazy"}


@pytest.mark.timeout(120)
def test_generated_files_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "tools/gen_wire.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_module_has_a_stub() -> None:
    assert MODULES == ["api", "core", "ext", "intstr", "meta", "resource", "v2", "wkt"]


@pytest.mark.parametrize("module", MODULES)
def test_stub_and_module_offer_the_same_names(module: str) -> None:
    offered = {name for name in dir(_module(module)) if not name.startswith("_")} - MODULE_NAMES
    assert set(_names(_stub(module))) == offered


@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_a_stub_resolves(module: str) -> None:
    found = _module(module)
    missing = [path for path in _paths(_stub(module)) if not _has(found, path.split("."))]
    assert missing == []


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nope'"):
        getattr(_module("v2"), "Nope")  # noqa: B009 (the stub knows it too)


def _module(name: str) -> object:
    return import_module(f"maserve.wire.{name}")


def _stub(module: str) -> ast.Module:
    return ast.parse((WIRE / f"{module}.pyi").read_text())


def _names(node: ast.Module | ast.ClassDef) -> Iterator[str]:
    """The names a stub or a class in it declares; those with an underscore are the stub's own."""
    for child in node.body:
        match child:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) if name[0] != "_":
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case _:
                pass


def _paths(node: ast.Module | ast.ClassDef, scope: str = "") -> Iterator[str]:
    yield from (f"{scope}{name}" for name in _names(node))
    for child in node.body:
        if isinstance(child, ast.ClassDef) and child.name[0] != "_":
            yield from _paths(child, f"{scope}{child.name}.")


def _has(found: object, path: list[str]) -> bool:
    first, *rest = path
    # Fields are attributes of messages, not of their class.
    owner = found() if isinstance(found, type) and not hasattr(found, first) else found
    return hasattr(owner, first) and (not rest or _has(getattr(owner, first), rest))
