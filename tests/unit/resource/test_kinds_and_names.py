import pytest

from maserve.base.errors import Unsupported
from maserve.base.keys import ClusterId
from maserve.resource import KINDS, get_kind, kind_of, names
from maserve.wire import v2

CLUSTER = ClusterId("c1")


@pytest.mark.parametrize(
    "word",
    [
        "InferenceServer",
        "inferenceserver",
        "inference_server",
        "inference-servers",
        "inferenceservers.michelangelo.api",
    ],
)
def test_a_kind_goes_by_many_names(word: str) -> None:
    kind = get_kind(word)
    assert kind is kind_of(v2.InferenceServer)
    assert kind.service == "michelangelo.api.v2.InferenceServerService"
    assert (kind.plural, kind.list_field) == ("inferenceservers", "inference_server_list")


def test_an_unknown_kind_is_told_with_the_known_ones() -> None:
    with pytest.raises(Unsupported, match="known kinds: Project"):
        get_kind("pod")


def test_every_kind_has_a_list_of_its_own() -> None:
    assert [kind.list_message.DESCRIPTOR.name for kind in KINDS] == [
        f"{kind.name}List" for kind in KINDS
    ]


def test_derived_names_are_those_of_the_guides() -> None:
    assert [
        names.inference_service("is"),
        names.endpoints_service("is"),
        names.endpoint_slice("is", CLUSTER),
        names.model_config("is"),
        names.traffic_route("is"),
        names.discovery_route("is"),
        names.backend_workload("is"),
        names.local_replica("is", CLUSTER, 2),
        names.discovery_path("is"),
        names.discovery_path("is", "d"),
        names.traffic_path("is", "d"),
        names.model_path("m"),
        names.condition("ModelLoaded", CLUSTER),
    ] == [
        "is-inference-service",
        "is-endpoints",
        "is-endpoints-c1",
        "is-model-config",
        "is-traffic",
        "is-discovery",
        "triton-is",
        "triton-is-c1-2",
        "/is",
        "/is/d",
        "/cluster/is/d",
        "/v2/models/m",
        "ModelLoaded-c1",
    ]


def test_the_longest_server_name_fits_its_service_name() -> None:
    longest = "s" * names.MAX_INFERENCE_SERVER_NAME
    assert len(names.inference_service(longest)) <= names.MAX_NAME
