"""Identities: what one string names, told apart by type."""

from dataclasses import dataclass
from typing import NewType

ClusterId = NewType("ClusterId", str)
"""The id of a target cluster, as in `spec.cluster_targets[].cluster_id`."""

ModelName = NewType("ModelName", str)
"""The name of a Model, which is also its folder and its name in the serving framework."""

ReplicaName = NewType("ReplicaName", str)
"""The name of one replica of an inference server (a pod's name in Kubernetes)."""


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Namespace and name of an object; the kind is known from the place it is used in."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
