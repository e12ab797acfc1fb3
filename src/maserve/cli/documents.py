"""Reading manifests: files, folders or stdin, each with any number of documents."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from maserve.base.errors import Invalid
from maserve.cli.fields import title
from maserve.cli.session import CommandError
from maserve.resource import Manifest, Resource, from_yaml, kind_of
from maserve.wire import v2

SUFFIXES = (".yaml", ".yml", ".json")

_ORDER = ("Project", "ModelFamily", "Model", "Cluster", "RayCluster", "InferenceServer")
"""What others refer to comes first; kinds that are not listed come last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One object and where it was read, as `file:line`."""

    origin: str
    resource: Resource


def read_documents(files: Sequence[str], namespace: str) -> tuple[Document, ...]:
    """Read every document of `files` (`-` is stdin), in the order they can be created in.

    Documents without a namespace get `namespace`; a Project without one gets its own name. Raises
    `CommandError` with one line for everything that is wrong, naming field, file and line.
    """
    found: list[Document] = []
    problems: list[str] = []
    for source, text in _texts(files):
        try:
            manifests = from_yaml(text, source=source)
        except Invalid as error:
            problems += map(str, error.problems)
            continue
        found += (_document(manifest, namespace) for manifest in manifests)
    problems += _naming_problems(found)
    if problems:
        raise CommandError("\n".join((*problems, "nothing was changed")))
    if not found:
        raise CommandError(f"no documents in {', '.join(map(called, files))}")
    return tuple(sorted(found, key=_rank))


def _naming_problems(documents: Iterable[Document]) -> Iterator[str]:
    """Yield what has no name, and what is there twice, so that nobody knows which is meant."""
    seen: dict[str, str] = {}
    for document in documents:
        name = title(document.resource)
        if not document.resource.metadata.name:
            yield f"metadata.name cannot be empty ({document.origin})"
        elif name in seen:
            yield f"{name} is there twice ({seen[name]}, {document.origin}): keep one of them"
        seen.setdefault(name, document.origin)


def _rank(document: Document) -> int:
    name = kind_of(document.resource).name
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def _document(manifest: Manifest, namespace: str) -> Document:
    resource = manifest.resource
    meta = resource.metadata
    if not meta.namespace:
        meta.namespace = meta.name if isinstance(resource, v2.Project) else namespace
    return Document(origin=f"{manifest.source}:{manifest.line}", resource=resource)


def _texts(files: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in files:
        if name == "-":
            yield called(name), read_text(name)
            continue
        for path in _paths(Path(name)):
            yield str(path), read_text(str(path))


def read_text(file: str) -> str:
    """Return the content of a file or, for `-`, of stdin. Raises `CommandError`.

    It is UTF-8 whatever the locale says, with or without a mark at its start.
    """
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"cannot read {called(file)}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"cannot read {called(file)}: it is no text ({error})") from error


def called(file: str) -> str:
    return "stdin" if file == "-" else file


def _paths(path: Path) -> Iterable[Path]:
    if not path.is_dir():
        return (path,)
    inside = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES)
    if not inside:
        raise CommandError(f"no {', '.join(SUFFIXES)} files in {path}")
    return inside
