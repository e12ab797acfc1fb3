"""The two labels that tell when an object was last written. Pure. Source: behaviour 1.4 and 17."""

from datetime import datetime

from maserve.resource import R, Resource, clone

UPDATED = "michelangelo/UpdateTimestamp"
SPEC_UPDATED = "michelangelo/SpecUpdateTimestamp"

_STORES_OWN = (
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
)


def stamp_created(resource: Resource, now: datetime) -> None:
    """Set both labels, whatever the caller says. Changes `resource`."""
    _put(resource, _micros(now), _micros(now))


def stamp_updated(resource: R, stored: R, now: datetime) -> None:
    """Set the labels of an update, whatever the caller says. Changes `resource`.

    An update that changes nothing else keeps them, so that it makes no new version.
    """
    labels = stored.metadata.labels
    before = labels.get(UPDATED, _micros(now)), labels.get(SPEC_UPDATED, _micros(now))
    if _bytes(resource.spec) != _bytes(stored.spec):
        _put(resource, _micros(now), _micros(now))
    elif _without_stamps(resource) != _without_stamps(stored):
        _put(resource, _micros(now), before[1])
    else:
        _put(resource, *before)


def _put(resource: Resource, updated: str, spec_updated: str) -> None:
    resource.metadata.labels[UPDATED] = updated
    resource.metadata.labels[SPEC_UPDATED] = spec_updated


def _without_stamps(resource: R) -> bytes:
    """Return what users write of the metadata, to compare."""
    plain = clone(resource).metadata
    for label in (UPDATED, SPEC_UPDATED):
        plain.labels.pop(label, None)
    for field in _STORES_OWN:
        plain.ClearField(field)  # type: ignore[arg-type]  # each is a field of ObjectMeta
    return _bytes(plain)


def _micros(now: datetime) -> str:
    return str(int(now.timestamp()) * 1_000_000 + now.microsecond)


def _bytes(message: object) -> bytes:
    return message.SerializeToString(deterministic=True)  # type: ignore[attr-defined,no-any-return]
