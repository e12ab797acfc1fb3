"""maserve shares an interpreter with a package that declares the same proto names."""

from __future__ import annotations

import subprocess
import sys

import pytest

DECLARE_ELSEWHERE = """
from google.protobuf import descriptor_pb2, descriptor_pool
for name in ("project", "deployment"):
    file = descriptor_pb2.FileDescriptorProto(
        name=f"michelangelo/api/v2/{name}.proto", package="michelangelo.api.v2", syntax="proto3"
    )
    file.message_type.add(name=name.title()).field.add(name="other", number=3, type=5, label=1)
    descriptor_pool.Default().Add(file)
"""

ROUND_TRIP = """
from maserve.wire import api, meta, v2, wkt
before = v2.Deployment(
    metadata=meta.ObjectMeta(name="a", labels={"k": "v"}),
    spec=v2.DeploymentSpec(inference_server=api.ResourceIdentifier(name="s")),
    status=v2.DeploymentStatus(stage=v2.DEPLOYMENT_STAGE_PLACEMENT),
)
packed = wkt.Any()
packed.Pack(before)
after = v2.Deployment()
assert packed.Unpack(after)
assert after == before == v2.Deployment.FromString(before.SerializeToString())
"""

NOT_DECLARED_ELSEWHERE = """
import sys
import maserve.wire
from google.protobuf import descriptor_pool
try:
    descriptor_pool.Default().FindMessageTypeByName("michelangelo.api.v2.Deployment")
except KeyError:
    sys.exit(0)
sys.exit("declared in the default pool")
"""

STILL_THEIRS = """
from google.protobuf import descriptor_pool
theirs = descriptor_pool.Default().FindMessageTypeByName("michelangelo.api.v2.Project")
assert [field.name for field in theirs.fields] == ["other"]
"""


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(DECLARE_ELSEWHERE + ROUND_TRIP + STILL_THEIRS, id="theirs first"),
        pytest.param(ROUND_TRIP + DECLARE_ELSEWHERE + ROUND_TRIP + STILL_THEIRS, id="ours first"),
    ],
)
def test_same_names_elsewhere_do_not_matter(program: str) -> None:
    _expect_success(program)


@pytest.mark.timeout(60)
def test_default_pool_is_left_alone() -> None:
    _expect_success(NOT_DECLARED_ELSEWHERE)


def _expect_success(program: str) -> None:
    path = f"import sys\nsys.path[:] = {sys.path!r}\n"
    command = [sys.executable, "-c", path + program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
