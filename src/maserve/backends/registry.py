"""Which backend serves which backend type (behaviour 9.1)."""

from collections.abc import Mapping

from maserve.backends.protocol import Backend
from maserve.base.errors import Unsupported
from maserve.wire import v2


class BackendRegistry:
    """A fixed mapping from `v2.BackendType` numbers to backends."""

    def __init__(self, backends: Mapping[int, Backend]) -> None:
        self._backends = dict(backends)

    def get(self, backend_type: int) -> Backend:
        """Return the backend. Raises `Unsupported` naming the type when there is none."""
        found = self._backends.get(backend_type)
        if found is None:
            raise Unsupported(f"backend not found for type: {_type_name(backend_type)}")
        return found

    def is_known(self, backend_type: int) -> bool:
        """Tell whether `get` would return a backend."""
        return backend_type in self._backends

    def types(self) -> tuple[int, ...]:
        """Return the known type numbers in order."""
        return tuple(sorted(self._backends))


def _type_name(number: int) -> str:
    names = v2.BackendType.DESCRIPTOR.values_by_number
    return names[number].name if number in names else str(number)
