"""YAML text to plain values, strictly, remembering the line of every field."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml

from maserve.base.errors import Invalid, Problem

MAX_VALUES = 1_000_000
"""Aliases are copied when read; this bounds what a small file can unfold to."""

MAX_DEPTH = 100
"""Deeper messages could not be read back from their bytes: protobuf's own limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document's value; `lines` maps the path of a field, as problems spell it, to its line."""

    data: Any
    line: int
    lines: dict[str, int] = field(default_factory=dict)

    def line_of(self, path: str) -> int:
        """Return the line of a field or of the nearest one around it."""
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.lines.get(path, self.line)


def read_documents(text: str, *, source: str) -> tuple[Document, ...]:
    """Return every document that is not empty.

    Raises `Invalid` for bad syntax, duplicate keys, tags and what unfolds without bound.
    """
    try:
        nodes = list(yaml.compose_all(text, Loader=_Loader))
        return tuple(_Reader(source).document(node) for node in nodes if not _is_empty(node))
    except yaml.MarkedYAMLError as error:
        raise Invalid(_syntax_problem(error, source)) from error
    except yaml.YAMLError as error:
        text = " ".join(str(error).split())
        raise Invalid(Problem("", f"{source} cannot be read: {text}")) from error


def add_scalar_forms(to: Any) -> None:
    """Teach a YAML loader or dumper class which plain words are no text for `read_documents`."""
    for tag, pattern, first in _FORMS:
        to.add_implicit_resolver(f"{_CORE}{tag}", re.compile(pattern), first)


_CORE = "tag:yaml.org,2002:"
_FORMS: tuple[tuple[str, str, list[str]], ...] = (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?[0-9]+$", list("-+0123456789")),
    (
        "float",
        r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$",
        list("-+.0123456789"),
    ),
    ("merge", r"^<<$", ["<"]),
)
_MEANINGS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "merge": str,
    "null": lambda _: None,
    "bool": lambda text: text.lower() == "true",
    "int": int,
    "float": float,
}
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPELLINGS = {f"{_CORE}{tag}": pattern for tag, pattern, _ in _FORMS} | {f"{_CORE}str": ""}


class _Loader(yaml.SafeLoader):
    """Composes nodes with JSON's scalar types only (YAML 1.2, core schema)."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # stub says less
            raise yaml.MarkedYAMLError(problem="it is nested too deeply", problem_mark=mark)
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


add_scalar_forms(_Loader)


class _Reader:
    """Turns the nodes of one document into values."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lines: dict[str, int] = {}
        self._open: set[int] = set()
        self._count = 0

    def document(self, node: yaml.Node) -> Document:
        data = self._value(node, "")
        return Document(data=data, line=_line(node), lines=self._lines)

    def _value(self, node: yaml.Node, path: str) -> Any:
        self._count += 1
        if self._count > MAX_VALUES or id(node) in self._open:
            raise self._wrong(node, "unfolds without bound through its aliases")
        self._lines.setdefault(path, _line(node))
        self._check_tag(node)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self._value(item, f"{path}[{i}]") for i, item in enumerate(node.value)]
            return self._mapping(node, path)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.Node, path: str) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                merged |= self._merged(value_node, path)
                continue
            key = self._key(key_node)
            if key in own:
                raise self._wrong(key_node, f"has the key {key!r} a second time")
            place = f"{path}.{key}" if path else key
            self._lines[place] = self._lines[f"{path}[{key}]"] = _line(key_node)
            own[key] = self._value(value_node, place)
        return merged | own

    def _merged(self, node: yaml.Node, path: str) -> dict[str, Any]:
        self._check_tag(node)
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                raise self._wrong(node, "merges what is no object")
            merged = self._value(source, path) | merged  # the first of several wins
        return merged

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self._wrong(node, "has a key that is no text")
        self._check_tag(node)
        return self._text(node)

    def _check_tag(self, node: yaml.Node) -> None:
        """Refuse a tag that asks for more than JSON has, or that does not fit what it stands at."""
        match node:
            case yaml.ScalarNode():
                spelling = _SPELLINGS.get(node.tag)
                is_known = spelling is not None and re.search(spelling, node.value) is not None
            case yaml.SequenceNode():
                is_known = node.tag == f"{_CORE}seq"
            case _:
                is_known = node.tag == f"{_CORE}map"
        if not is_known:
            raise self._wrong(node, f"has a tag that is not known here: {node.tag}")

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text = self._text(node)
        try:
            return _MEANINGS[node.tag.removeprefix(_CORE)](text)
        except ValueError as error:
            raise self._wrong(node, f"has a number that cannot be read: {error}") from error

    def _text(self, node: yaml.ScalarNode) -> str:
        """Return what the node says; JSON spells a character beyond 16 bits as two escapes."""
        if not _SURROGATE.search(node.value):
            return str(node.value)
        try:
            return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            raise self._wrong(node, "has half a character: a lone surrogate") from error

    def _wrong(self, node: yaml.Node, text: str) -> Invalid:
        return Invalid(Problem("", f"{self._source}:{_line(node)} {text}"))


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _is_empty(node: yaml.Node | None) -> bool:
    return node is None or (isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null"))


def _syntax_problem(error: yaml.MarkedYAMLError, source: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
    return Problem("", f"{place} cannot be read: {error.problem or error.context}")
