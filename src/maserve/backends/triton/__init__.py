"""Triton Inference Server as a backend: settings, and what its repository index means.

Invariant: pure; how replicas are run is a sub-package's business and is never imported from here.
"""

from maserve.backends.triton.index import IndexRow, is_moving, model_state, parse_index
from maserve.backends.triton.settings import (
    DrainSettings,
    ProbeSettings,
    ReadinessProbe,
    TritonSettings,
    parse_readiness_probe,
)

__all__ = [
    "TritonSettings",
    "ProbeSettings",
    "DrainSettings",
    "ReadinessProbe",
    "parse_readiness_probe",
    "IndexRow",
    "parse_index",
    "model_state",
    "is_moving",
]
