"""What the runtime measures, as Prometheus metrics without unbounded labels."""

from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from maserve.base.keys import Key
from maserve.runtime.queue import WorkQueue

PASS_RESULTS = ("done", "again", "after", "stop", "conflict", "retry", "refused", "timeout", "bug")
"""How a pass can end: the four outcomes, then the five ways of failing."""

_PASS_BUCKETS_S = (0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0)


class Metrics:
    """Metrics of all controllers of one process, registered in the registry given."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._passes = Counter(
            "maserve_controller_passes",
            "Reconcile passes by how they ended.",
            ("controller", "result"),
            registry=registry,
        )
        self._duration = Histogram(
            "maserve_controller_pass_seconds",
            "Duration of reconcile passes.",
            ("controller",),
            buckets=_PASS_BUCKETS_S,
            registry=registry,
        )
        self._queues = QueueCollector()
        registry.register(self._queues)

    def of_controller(self, name: str, queue: WorkQueue[Key]) -> "ControllerMetrics":
        """Return the metrics of one controller, each at zero."""
        self._queues.queues[name] = queue
        passes = {result: self._passes.labels(name, result) for result in PASS_RESULTS}
        return ControllerMetrics(passes=passes, duration=self._duration.labels(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerMetrics:
    """One controller's part: passes by result, and their duration in seconds."""

    passes: dict[str, Counter]
    duration: Histogram


class QueueCollector(Collector):
    """Reads the queues' own counters when Prometheus asks; `queues` by controller."""

    def __init__(self) -> None:
        self.queues: dict[str, WorkQueue[Key]] = {}

    def collect(self) -> Iterable[Metric]:
        depth = GaugeMetricFamily(
            "maserve_queue_depth", "Keys ready for a worker.", labels=("controller",)
        )
        delayed = GaugeMetricFamily(
            "maserve_queue_delayed", "Keys to be looked at later.", labels=("controller",)
        )
        working = GaugeMetricFamily(
            "maserve_queue_working", "Keys being worked on.", labels=("controller",)
        )
        adds = CounterMetricFamily(
            "maserve_queue_adds", "Keys that became ready.", labels=("controller",)
        )
        retries = CounterMetricFamily(
            "maserve_queue_retries", "Keys put back after a failure.", labels=("controller",)
        )
        waited = CounterMetricFamily(
            "maserve_queue_wait_seconds",
            "Time between ready and handed out.",
            labels=("controller",),
        )
        for name, queue in self.queues.items():
            depth.add_metric((name,), queue.depth)
            delayed.add_metric((name,), queue.delayed)
            working.add_metric((name,), queue.working)
            adds.add_metric((name,), queue.stats.adds)
            retries.add_metric((name,), queue.stats.retries)
            waited.add_metric((name,), queue.stats.waited_s)
        return (depth, delayed, working, adds, retries, waited)
