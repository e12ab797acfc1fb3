"""Reading and copying resource metadata."""

from datetime import UTC, datetime

from maserve.base.keys import Key
from maserve.resource.kinds import R, Resource


def key_of(resource: Resource) -> Key:
    return Key(resource.metadata.namespace, resource.metadata.name)


def clone(resource: R) -> R:
    """Return a deep copy that may be changed; everything cached is read-only."""
    copy = type(resource)()
    copy.CopyFrom(resource)  # type: ignore[arg-type]  # same class by construction
    return copy


def decode(kind: type[R], data: bytes) -> R:
    """Return the resource whose message bytes are `data`; protobuf's DecodeError if none."""
    resource = kind()
    resource.MergeFromString(data)
    return resource


def is_deleting(resource: Resource) -> bool:
    """Tell whether deletion was asked for and finalizers hold the object."""
    return resource.metadata.HasField("deletionTimestamp")


def deletion_time(resource: Resource) -> datetime | None:
    """Return when deletion was asked for, None when it was not."""
    if not is_deleting(resource):
        return None
    return datetime.fromtimestamp(resource.metadata.deletionTimestamp.seconds, UTC)


def has_finalizer(resource: Resource, finalizer: str) -> bool:
    return finalizer in resource.metadata.finalizers


def add_finalizer(resource: Resource, finalizer: str) -> None:
    """Add it at the end, once. Changes `resource`, which must be the caller's own copy."""
    if not has_finalizer(resource, finalizer):
        resource.metadata.finalizers.append(finalizer)


def remove_finalizer(resource: Resource, finalizer: str) -> None:
    """Remove it if it is there. Changes `resource`, which must be the caller's own copy."""
    kept = [name for name in resource.metadata.finalizers if name != finalizer]
    del resource.metadata.finalizers[:]
    resource.metadata.finalizers.extend(kept)


def set_annotation(resource: Resource, name: str, value: str | None) -> None:
    """Set or, with None, remove an annotation. Changes `resource`, the caller's own copy."""
    if value is None:
        resource.metadata.annotations.pop(name, None)
    else:
        resource.metadata.annotations[name] = value
