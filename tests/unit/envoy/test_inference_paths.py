"""What passes below a Deployment's path, and what becomes of it."""

import re

import pytest

from maserve.envoy.inference_paths import (
    gateway_posts,
    gateway_reads,
    model_base,
    model_posts,
    model_reads,
    server_reads,
)

PATH = "/cluster/is/d"
NAMES = ("d", "digits-v1")


@pytest.mark.parametrize("version", ["", "/versions/3"])
@pytest.mark.parametrize("base", ["", "/v2/models/d", "/v2/models/digits-v1"])
@pytest.mark.parametrize("verb", ["infer", "generate", "generate_stream"])
def test_every_way_to_call_the_model_may_be_posted(base: str, version: str, verb: str) -> None:
    below = f"{base}{version}/{verb}"
    assert re.fullmatch(model_posts(PATH, NAMES), PATH + below)
    assert re.fullmatch(gateway_posts("/is/d"), f"/is/d{below}")


@pytest.mark.parametrize("below", ["", "/ready", "/config", "/stats", "/versions/1/stats"])
@pytest.mark.parametrize("name", NAMES)
def test_the_protocol_s_reads_of_the_model_pass(name: str, below: str) -> None:
    path = f"/v2/models/{name}{below}"
    assert re.fullmatch(model_reads(PATH, NAMES), PATH + path)
    assert re.fullmatch(gateway_reads("/is/d"), f"/is/d{path}")


@pytest.mark.parametrize("below", ["/v2", "/v2/health/live", "/v2/health/ready"])
def test_the_serving_program_may_be_asked_how_it_is(below: str) -> None:
    assert re.fullmatch(server_reads(PATH), PATH + below)
    assert re.fullmatch(gateway_reads("/is/d"), f"/is/d{below}")


@pytest.mark.parametrize(
    "below",
    [
        "/v2/",
        "/v2/models",
        "/v2/models/other",
        "/v2/models/d/infer",
        "/v2/models/d/versions/x",
        "/v2/repository/index",
        "/v2/health",
        "/v2/logging",
        "/v2/trace/setting",
        "/v2/systemsharedmemory/status",
        "/v2/models/d/trace/setting",
        "/v2/models/d/../x",
        "/config",
        "/stats",
    ],
)
def test_nothing_else_may_be_read_in_a_cluster(below: str) -> None:
    assert not re.fullmatch(model_reads(PATH, NAMES), PATH + below)
    assert not re.fullmatch(server_reads(PATH), PATH + below)


@pytest.mark.parametrize("below", ["", "/v2", "/v2/models/other/infer", "/v2/models/d/load"])
def test_nothing_else_may_be_posted_in_a_cluster(below: str) -> None:
    assert not re.fullmatch(model_posts(PATH, NAMES), PATH + below)


@pytest.mark.parametrize("names", [("m", "m1"), ("m1", "m"), ("m", "m"), ("m.1", "m")])
def test_a_name_that_begins_another_is_not_found_in_it(names: tuple[str, str]) -> None:
    pattern = f"^{model_base(PATH, names)}"
    for name in names:
        rewritten = re.sub(pattern, "/v2/models/X", f"{PATH}/v2/models/{name}/infer")
        assert rewritten == "/v2/models/X/infer"
    assert re.sub(pattern, "/v2/models/X", f"{PATH}/infer") == "/v2/models/X/infer"
