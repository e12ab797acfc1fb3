"""The InferenceServer controller and its plugin protocol.

Invariant: nothing is made in a cluster before the object remembers the cluster and the backend, and
holds the finalizer.
"""

from maserve.inferenceserver.clusters import FINALIZER, KNOWN_CLUSTERS, known_targets
from maserve.inferenceserver.controller import InferenceServerController
from maserve.inferenceserver.events import record_local_meaning
from maserve.inferenceserver.plugin import Conditions, Plugin

__all__ = [
    "FINALIZER",
    "KNOWN_CLUSTERS",
    "Conditions",
    "InferenceServerController",
    "Plugin",
    "known_targets",
    "record_local_meaning",
]
