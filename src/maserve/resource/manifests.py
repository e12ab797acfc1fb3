"""Manifests: resources as YAML that people write, several documents to a file.

YAML here means JSON's types only: `yes` and `on` are words, dates are text, keys are unique. Every
problem is told with its file and line.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from maserve.base.errors import Invalid, Problem
from maserve.resource.codec import from_shown_json, kind_of_json, to_shown_json
from maserve.resource.jsonform import list_unknown
from maserve.resource.kinds import Resource
from maserve.resource.yamlform import add_scalar_forms, read_documents

_BREAKS = frozenset("\x85\u2028\u2029\ufeff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One resource and where it was written: `source` names the file, `line` counts from 1."""

    resource: Resource
    source: str
    line: int


def to_yaml(resources: Iterable[Resource]) -> str:
    """Return one document per resource. What YAML cannot show is named in a comment above it."""
    return "---\n".join(_document(resource) for resource in resources)


def from_yaml(text: str, *, source: str = "input") -> tuple[Manifest, ...]:
    """Return the resources of every document that is not empty, in order.

    Raises `Invalid` with every problem of every document; each ends in `(source:line)`.
    """
    found: list[Manifest] = []
    problems: list[Problem] = []
    for document in read_documents(text, source=source):
        try:
            found.append(_manifest(document.data, source=source, line=document.line))
        except Invalid as error:
            problems += (
                Problem(each.field, f"{each.text} ({source}:{document.line_of(each.field)})")
                for each in error.problems
            )
    if problems:
        raise Invalid(*problems)
    return tuple(found)


def _manifest(data: Any, *, source: str, line: int) -> Manifest:
    if not isinstance(data, Mapping):
        raise Invalid(Problem("", "a manifest must be an object with apiVersion and kind"))
    resource = from_shown_json(kind_of_json(data), data)
    return Manifest(resource=resource, source=source, line=line)


def _document(resource: Resource) -> str:
    body = yaml.dump(
        to_shown_json(resource),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=100,
    )
    unknown = list_unknown(resource)
    head = f"# not shown, of a newer version: {', '.join(unknown)}\n" if unknown else ""
    return head + body


class _Dumper(yaml.SafeDumper):
    """Writes lists indented below their key, and never aliases."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        del indentless
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    # YAML takes these for line breaks and folds them, unless they are escaped in double quotes.
    style = '"' if _BREAKS.intersection(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


add_scalar_forms(_Dumper)
_Dumper.add_representer(str, _represent_text)
