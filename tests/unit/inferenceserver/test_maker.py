"""Which backend may have made replicas of a server, as it is remembered."""

import pytest

from maserve.inferenceserver.maker import (
    MADE_BY,
    backend_name,
    find_maker,
    forget_maker,
    is_maker_remembered,
    remember_maker,
)
from maserve.testing.builders import an_inference_server
from maserve.wire import v2

TRITON, DYNAMO = v2.BACKEND_TYPE_TRITON, v2.BACKEND_TYPE_DYNAMO


@pytest.mark.parametrize("kind", [TRITON, DYNAMO, 99])
def test_what_is_remembered_is_found_again(kind: int) -> None:
    server = an_inference_server()
    server.spec.backend_type = v2.BackendType(kind)
    remember_maker(server)
    assert is_maker_remembered(server)
    server.spec.backend_type = v2.BACKEND_TYPE_LLM_D

    assert find_maker(server) == kind
    assert not is_maker_remembered(server)


def test_nothing_was_made_by_anybody_at_first() -> None:
    assert find_maker(an_inference_server()) is None


def test_without_a_record_the_status_tells() -> None:
    server = an_inference_server(serving=["c1"])
    server.metadata.annotations.clear()

    assert find_maker(server) == TRITON


def test_what_is_forgotten_stays_so_whatever_the_status_has_seen() -> None:
    server = an_inference_server(serving=["c1"])
    forget_maker(server)

    assert find_maker(server) is None
    assert not is_maker_remembered(server)


@pytest.mark.parametrize("text", ["", "BACKEND_TYPE_INVALID", "0", "nobody"])
def test_a_damaged_record_names_nobody(text: str) -> None:
    server = an_inference_server()
    server.metadata.annotations[MADE_BY] = text

    assert find_maker(server) is None


def test_a_type_that_the_contract_does_not_name_is_a_number() -> None:
    assert [backend_name(number) for number in (1, 99)] == ["BACKEND_TYPE_TRITON", "99"]
