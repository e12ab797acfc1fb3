"""Which backend may have made replicas of an InferenceServer. Pure.

Its type is remembered in an annotation before it makes anything: neither a backend that is no
longer registered nor a changed `spec.backend_type` then hides what is still there (ADR 0024).
"""

from maserve.inferenceserver.clusters import holds_something
from maserve.resource.metadata import set_annotation
from maserve.wire import v2

MADE_BY = "inferenceserver.michelangelo.ai/backend-type"
"""The backend type, by enum name, that may have made replicas; empty once all of it is gone."""


def find_maker(server: v2.InferenceServer) -> int | None:
    """Return the type of the backend that may have made replicas, None when nothing is there.

    Without a record the spec's type counts once the status has seen something: a client that
    replaces the annotations must not make replicas forgotten.
    """
    name = server.metadata.annotations.get(MADE_BY)
    if name is None:
        return server.spec.backend_type if holds_something(server) else None
    number = int(name) if name.isdecimal() else dict(v2.BackendType.items()).get(name)
    return number or None


def is_maker_remembered(server: v2.InferenceServer) -> bool:
    """Tell whether the spec's type is the one on record."""
    return server.metadata.annotations.get(MADE_BY) == backend_name(server.spec.backend_type)


def remember_maker(server: v2.InferenceServer) -> None:
    """Put the spec's type on record."""
    set_annotation(server, MADE_BY, backend_name(server.spec.backend_type))


def forget_maker(server: v2.InferenceServer) -> None:
    """Put on record that nothing of the server is left anywhere."""
    set_annotation(server, MADE_BY, "")


def backend_name(number: int) -> str:
    """Return a backend type as people write it; one that the contract does not name as a number."""
    names = (name for name, known in v2.BackendType.items() if known == number)
    return next(names, str(number))
