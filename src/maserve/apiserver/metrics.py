"""What the API server counts; the labels are bounded: methods and codes, no names."""

from collections.abc import Iterable

import grpc
from prometheus_client import CollectorRegistry, Counter, Histogram

_BUCKETS_S = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0)


class ApiMetrics:
    """Calls by method and code, and how long unary ones took; registered in the registry given."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            "maserve_api_calls",
            "Finished API calls by method and code.",
            ("method", "code"),
            registry=registry,
        )
        self._duration = Histogram(
            "maserve_api_call_seconds",
            "Duration of unary API calls.",
            ("method",),
            buckets=_BUCKETS_S,
            registry=registry,
        )

    def prepare(self, methods: Iterable[str]) -> None:
        """Let every method exist at zero."""
        for method in methods:
            self._calls.labels(method, grpc.StatusCode.OK.name)
            self._duration.labels(method)

    def finished(self, method: str, code: grpc.StatusCode, *, duration_s: float | None) -> None:
        """Count one call; `duration_s` is None for streams."""
        self._calls.labels(method, code.name).inc()
        if duration_s is not None:
            self._duration.labels(method).observe(duration_s)
