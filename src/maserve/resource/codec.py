"""Resources as JSON: `apiVersion`, `kind`, `metadata`, `spec`, `status` (behaviour 1.2, 17).

Two forms that differ only in how an Any looks: the stored one, shared with the reference's custom
resources, and the shown one, where Anys of known types are opened for people to read and write.
JSON has no place for unknown fields of a message: `list_unknown` names them.
"""

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import DecodeError

from maserve.base.errors import Invalid, Problem, Unsupported
from maserve.resource.jsonform import AnyForm, Form, read_message, write_message
from maserve.resource.kinds import API_VERSION, R, Resource, get_kind, kind_of
from maserve.resource.metadata import decode

_PARTS = ("spec", "status")


def to_json(resource: Resource) -> dict[str, Any]:
    """Return the stored form. Raises `Invalid` for values that JSON has no form for."""
    return _write(resource, AnyForm.STORED)


def to_shown_json(resource: Resource) -> dict[str, Any]:
    """Return the shown form. Raises `Invalid` for values that JSON has no form for."""
    return _write(resource, AnyForm.EXPANDED)


def from_json(kind: type[R], data: Mapping[str, Any]) -> R:
    """Return the resource of the stored form. Raises `Invalid` with every problem."""
    return _read(kind, data, AnyForm.STORED)


def from_shown_json(kind: type[R], data: Mapping[str, Any]) -> R:
    """Return the resource of the shown form. Raises `Invalid` with every problem."""
    return _read(kind, data, AnyForm.EXPANDED)


def kind_of_json(data: Mapping[str, Any]) -> type[Resource]:
    """Return the class `data` says it is of. Raises `Invalid` naming `apiVersion` or `kind`."""
    problems = _version_problems(data)
    word = data.get("kind")
    try:
        kind = get_kind(word) if isinstance(word, str) and word else None
    except Unsupported as error:
        problems.append(Problem("kind", f"is an {error}"))
        raise Invalid(*problems) from error
    if kind is None:
        problems.append(Problem("kind", "must name a kind"))
    elif kind.name != word:
        problems.append(Problem("kind", f"must be spelled {kind.name}, not {word!r}"))
    if problems or kind is None:
        raise Invalid(*problems)
    return kind.message


def check_readable(resource: Resource) -> None:
    """Raise `Invalid` if bytes or JSON of `resource` would not read back; never store such."""
    kind = kind_of(resource)
    written = to_json(resource)
    try:
        decode(kind.message, resource.SerializeToString())
    except DecodeError as error:
        raise Invalid(Problem(kind.name, "is nested too deeply to be read back")) from error
    again = from_json(type(resource), written)
    if to_json(again) != written:
        raise Invalid(Problem(kind.name, "does not read back as what was written"))


def _write(resource: Resource, any_form: AnyForm) -> dict[str, Any]:
    form = Form(any_form=any_form)
    data: dict[str, Any] = {"apiVersion": API_VERSION, "kind": kind_of(resource).name}
    data["metadata"] = write_message(resource.metadata, "metadata", form.for_metadata())
    for part in _PARTS:
        if resource.HasField(part):  # type: ignore[arg-type]  # every resource has both
            data[part] = write_message(getattr(resource, part), part, form)
    form.refuse()
    return data


def _read(kind: type[R], data: Mapping[str, Any], any_form: AnyForm) -> R:
    form = Form(any_form=any_form)
    form.problems.extend(_version_problems(data))
    name = kind.DESCRIPTOR.name
    if data.get("kind") != name:
        form.complain("kind", f"must be {name}, not {data.get('kind')!r}")
    resource = kind()
    body = {word: value for word, value in data.items() if word not in {"apiVersion", "kind"}}
    if "type_meta" in body or "typeMeta" in body:
        form.complain("typeMeta", "is given as apiVersion and kind")
    read_message(resource, body, "", form)
    form.refuse()
    resource.type_meta.kind = name
    resource.type_meta.apiVersion = API_VERSION
    return resource


def _version_problems(data: Mapping[str, Any]) -> list[Problem]:
    version = data.get("apiVersion")
    if version == API_VERSION:
        return []
    return [Problem("apiVersion", f"must be {API_VERSION}, not {version!r}")]
