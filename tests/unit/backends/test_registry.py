import pytest

from maserve.backends.registry import BackendRegistry
from maserve.base.clock import SystemClock
from maserve.base.errors import Unsupported
from maserve.base.keys import Key
from maserve.base.signals import Signal
from maserve.testing.backend_fake import FakeBackend
from maserve.testing.world import FakeWorld
from maserve.wire import v2


def a_world() -> FakeWorld:
    return FakeWorld(clock=SystemClock(), changed=Signal[Key](), read_entries=lambda *_: ())


def a_registry() -> tuple[BackendRegistry, FakeBackend]:
    backend = FakeBackend(a_world())
    return BackendRegistry({v2.BACKEND_TYPE_TRITON: backend}), backend


def test_known_type_gives_its_backend() -> None:
    registry, backend = a_registry()

    assert registry.get(v2.BACKEND_TYPE_TRITON) is backend
    assert registry.is_known(v2.BACKEND_TYPE_TRITON)
    assert registry.types() == (v2.BACKEND_TYPE_TRITON,)


@pytest.mark.parametrize(
    ("number", "name"),
    [
        pytest.param(v2.BACKEND_TYPE_LLM_D, "BACKEND_TYPE_LLM_D", id="known to the wire"),
        pytest.param(v2.BACKEND_TYPE_INVALID, "BACKEND_TYPE_INVALID", id="unset"),
        pytest.param(77, "77", id="from a newer client"),
    ],
)
def test_unknown_type_is_named(number: int, name: str) -> None:
    registry, _ = a_registry()
    assert not registry.is_known(number)
    with pytest.raises(Unsupported, match=f"^backend not found for type: {name}$"):
        registry.get(number)
