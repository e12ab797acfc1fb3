"""Reads the parts that requests of all kinds share. Pure."""

from collections.abc import Sequence
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message

from maserve.base.errors import Invalid, Problem
from maserve.store import Preconditions
from maserve.wire import meta

M = TypeVar("M", bound=Message)

_PROPAGATION = ("", "Background", "Foreground")


def decode_request(kind: type[M], body: bytes) -> M:
    """Return the message. Raises `Invalid` for bytes that are none, such as text not in UTF-8."""
    try:
        return kind.FromString(body)
    except DecodeError as error:
        text = f"the request is no {kind.DESCRIPTOR.full_name}: {error}"
        raise Invalid(Problem("", text)) from error


def is_dry_run(options: Sequence[str]) -> bool:
    """Tell whether nothing is to be stored. Raises `Invalid` for anything but nothing or `All`."""
    if len(options) > 1:
        raise Invalid(Problem("dryRun", f"allows one strategy, not several: {list(options)}"))
    if options and options[0] != "All":
        raise Invalid(Problem("dryRun", f"is an unsupported strategy: {options[0]!r}; use 'All'"))
    return bool(options)


def preconditions_of(options: meta.DeleteOptions) -> Preconditions:
    """Return what must hold for a delete. A grace period means nothing here: nothing waits.

    Raises `Invalid` for a wish to keep what the object owns: it would be deleted all the same.
    """
    policy = options.propagationPolicy or ("Orphan" if options.orphanDependents else "")
    if policy not in _PROPAGATION:
        text = f"{policy!r} is not served: what an object owns goes with it; use 'Background'"
        raise Invalid(Problem("propagationPolicy", text))
    return Preconditions(
        uid=options.preconditions.uid, version=options.preconditions.resourceVersion
    )


def part(request: Message, field: str) -> Any:
    """Return a message field of a request. Raises `Invalid` if it is not set."""
    if not request.HasField(field):
        raise Invalid(Problem(field, "cannot be nil"))
    return getattr(request, field)
