"""What a write makes of an object: pure rules that hold for every store of our own.

Each function takes the stored object where there is one, and returns the object to store, a new
message whose version the store sets, or None where nothing is to change.
"""

from datetime import datetime

from maserve.base.errors import Conflict, Invalid, Problem
from maserve.resource import (
    API_VERSION,
    R,
    Resource,
    clone,
    is_deleting,
    key_of,
    kind_of,
    problems_of,
)

MAX_OBJECT_BYTES = 3 * 1024 * 1024 // 2
"""The limit of a Kubernetes API server on etcd: 1.5 MiB."""


def creation(resource: R, *, uid: str, now: datetime) -> R:
    """Return what is stored for a new object. Raises `Invalid` with everything that is wrong."""
    problems = list(problems_of(resource))
    if resource.metadata.resourceVersion not in {"", "0"}:
        problems.append(Problem("metadata.resourceVersion", "must not be set on a new object"))
    _refuse(problems)
    new = clone(resource)
    new.ClearField("status")
    _clear_ours(new)
    new.metadata.uid = uid
    new.metadata.generation = 1
    new.metadata.creationTimestamp.seconds = int(now.timestamp())
    return _sealed(new)


def replacement(stored: R, wanted: R) -> R | None:
    """Return `stored` with metadata and spec of `wanted`; None when that changes nothing.

    Raises `Conflict` for a stale version or another uid, `Invalid` for everything else.
    """
    check_fence(stored, wanted)
    _refuse([*problems_of(wanted), *_finalizer_problems(stored, wanted)])
    new = clone(wanted)
    _clear_ours(new)
    _copy_ours(stored, new)
    _copy_part("status", stored, new)
    if _bytes(new.spec) != _bytes(stored.spec):
        new.metadata.generation += 1
    return _unless_same(stored, _sealed(new))


def status_replacement(stored: R, wanted: R) -> R | None:
    """Return `stored` with the status of `wanted`; None if nothing changes. Raises `Conflict`."""
    check_fence(stored, wanted)
    new = clone(stored)
    _copy_part("status", wanted, new)
    return _unless_same(stored, _sealed(new))


def deletion(stored: R, *, now: datetime) -> R | None:
    """Return `stored` marked as deleted, for its finalizers; None when it is already."""
    if is_deleting(stored):
        return None
    new = clone(stored)
    new.metadata.deletionTimestamp.seconds = int(now.timestamp())
    new.metadata.deletionGracePeriodSeconds = 0
    new.metadata.generation += 1
    return new


def is_finished(resource: Resource) -> bool:
    """Tell whether nothing holds a deleted object any more."""
    return is_deleting(resource) and not resource.metadata.finalizers


def check_fence(stored: Resource, wanted: Resource) -> None:
    """Raise unless `wanted` was read at the stored version (`Conflict`) and says so (`Invalid`)."""
    kind = kind_of(stored).name
    given, version = wanted.metadata, wanted.metadata.resourceVersion
    if given.uid and given.uid != stored.metadata.uid:
        detail = f"uid {given.uid} was given, {stored.metadata.uid} is stored"
        raise Conflict(kind, key_of(stored), detail)
    if version in {"", "0"}:
        raise Invalid(Problem("metadata.resourceVersion", "must be given for an update"))
    if not version.isascii() or not version.isdigit():
        raise Invalid(Problem("metadata.resourceVersion", f"is no version: {version!r}"))
    if version != stored.metadata.resourceVersion:
        detail = f"version {version} was read, {stored.metadata.resourceVersion} is stored"
        raise Conflict(kind, key_of(stored), detail)


def _finalizer_problems(stored: Resource, wanted: Resource) -> list[Problem]:
    if not is_deleting(stored):
        return []
    added = [name for name in wanted.metadata.finalizers if name not in stored.metadata.finalizers]
    text = "cannot grow while the object is being deleted; new: "
    return [Problem("metadata.finalizers", text + ", ".join(added))] if added else []


def _clear_ours(resource: Resource) -> None:
    """Drop what only a store may say; unowned fields of Kubernetes' bookkeeping go too."""
    for field in (
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "managedFields",
    ):
        resource.metadata.ClearField(field)
    resource.type_meta.kind = kind_of(resource).name
    resource.type_meta.apiVersion = API_VERSION


def _copy_ours(source: Resource, target: Resource) -> None:
    target.metadata.uid = source.metadata.uid
    target.metadata.resourceVersion = source.metadata.resourceVersion
    target.metadata.generation = source.metadata.generation
    target.metadata.creationTimestamp.CopyFrom(source.metadata.creationTimestamp)
    if is_deleting(source):
        target.metadata.deletionTimestamp.CopyFrom(source.metadata.deletionTimestamp)
        target.metadata.deletionGracePeriodSeconds = source.metadata.deletionGracePeriodSeconds


def _copy_part(part: str, source: R, target: R) -> None:
    target.ClearField(part)  # type: ignore[arg-type]  # every resource has each part
    if source.HasField(part):  # type: ignore[arg-type]
        getattr(target, part).CopyFrom(getattr(source, part))


def _unless_same(stored: R, new: R) -> R | None:
    return None if _bytes(stored) == _bytes(new) else new


def _bytes(message: object) -> bytes:
    # Bytes rather than ==: a NaN equals itself, and unknown fields count.
    return message.SerializeToString(deterministic=True)  # type: ignore[attr-defined,no-any-return]


def _sealed(new: R) -> R:
    size = new.ByteSize()
    if size > MAX_OBJECT_BYTES:
        text = f"is too large: {size} bytes, at most {MAX_OBJECT_BYTES}"
        raise Invalid(Problem(kind_of(new).name, text))
    return new


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise Invalid(*problems)
