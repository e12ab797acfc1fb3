"""What of a server's spec means something else on one machine is said once a spec."""

import random
from collections.abc import Iterator

from maserve.cmd.embedded import tell_local_meaning
from maserve.cmd.serving import ServerInformer
from maserve.runtime import InformerSettings
from maserve.testing.builders import an_inference_server
from maserve.testing.clock import FakeClock
from maserve.testing.recorder import FakeRecorder
from maserve.testing.store_fake import FakeStore
from maserve.wire import v2


def _versions(*servers: v2.InferenceServer) -> Iterator[v2.InferenceServer]:
    for version, server in enumerate(servers, start=1):
        server.metadata.uid, server.metadata.resourceVersion = "u", str(version)
        yield server


async def test_each_spec_is_told_once() -> None:
    clock, recorder = FakeClock(), FakeRecorder()
    rng = random.Random(0)
    servers = ServerInformer(
        v2.InferenceServer,
        FakeStore(clock=clock, rng=rng),
        clock=clock,
        rng=rng,
        settings=InformerSettings(),
    )
    tell_local_meaning(servers, recorder)
    first, again, changed, known = (an_inference_server(clusters=("c1", "c2")) for _ in range(4))
    for server in (first, again, changed, known):
        server.spec.cluster_targets[0].kubernetes.host = "https://elsewhere"
    first.metadata.generation = again.metadata.generation = 1
    changed.metadata.generation = 2
    known.metadata.generation = known.status.observed_generation = 3
    for server in _versions(first, again, changed, known):
        servers.observe(server)
    assert recorder.reasons == ["LocalClusters", "LocalClusters"]
    assert "cluster targets c1 are not used here" in recorder.events[0].message
