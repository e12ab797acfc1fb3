"""What applying a manifest makes of the object that is there. Pure."""

from maserve.resource import R, clone


def merged(stored: R, wanted: R) -> R:
    """Return `stored` with the spec of `wanted`, and its labels and annotations on top.

    The spec is replaced as a whole: a field that is left out is emptied. Labels and annotations of
    others, finalizers and owners stay.
    """
    new = clone(stored)
    new.ClearField("spec")
    new.spec.MergeFrom(wanted.spec)  # type: ignore[arg-type]  # same kind, same spec
    new.metadata.labels.update(wanted.metadata.labels)
    new.metadata.annotations.update(wanted.metadata.annotations)
    return new


def fresh(wanted: R) -> R:
    """Return `wanted` as a new object: a manifest may be what was once read of an older one."""
    new = clone(wanted)
    new.metadata.ClearField("resourceVersion")
    return new


def is_same(stored: R, new: R) -> bool:
    """Tell whether an update to `new` would change nothing."""
    return stored.SerializeToString(deterministic=True) == new.SerializeToString(deterministic=True)
