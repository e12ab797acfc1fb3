"""`maserve restart-replica` asks for one replica and says what there is when it is not there."""

import json

from maserve.base.keys import Key
from maserve.resource.annotations import RESTART_REPLICAS
from maserve.testing.command_line import CommandLine
from maserve.testing.resources import an_inference_server
from maserve.wire import ext, v2

SERVER = Key("demo", "is1")


def a_view(*replicas: str, state: str = "SERVING") -> ext.DescribeResponse:
    cluster = ext.ClusterView(cluster_id="c1", state=state, message="1/1 replicas ready")
    cluster.replicas.extend(ext.ReplicaView(name=name, pid=7) for name in replicas)
    return ext.DescribeResponse(clusters=[cluster])


def test_a_replica_that_is_not_there_is_refused_with_those_that_are() -> None:
    line = CommandLine()
    line.api.put(an_inference_server())
    line.api.views[SERVER] = a_view("r-0", "r-1")
    result = line("restart-replica", "r-7", "-n", "demo")
    assert result.exit_code == 1
    assert "no replica r-7 in namespace demo: there are r-0, r-1" in result.output


def test_the_wish_is_written_beside_earlier_ones_and_waited_for() -> None:
    line = CommandLine()
    server = an_inference_server()
    server.metadata.annotations[RESTART_REPLICAS] = '{"r-9": "2030-01-01T00:00:00+00:00"}'
    line.api.put(server)
    views = [a_view("r-0"), a_view("r-1")]

    class Views(dict[Key, ext.DescribeResponse]):
        def get(self, key: Key, default: object = None) -> ext.DescribeResponse:
            return views.pop(0)

    line.api.views = Views()
    result = line("restart-replica", "r-0", "-n", "demo")
    assert (result.exit_code, "r-0 was replaced" in result.output) == (0, True)
    stored = line.api.objects[v2.InferenceServer, SERVER]
    assert sorted(json.loads(stored.metadata.annotations[RESTART_REPLICAS])) == ["r-0", "r-9"]
