"""Triton on one machine: replicas are supervised processes that outlive the control plane.

Invariant: a replica is ended after it has left the endpoints, and without the data plane's word for
it only together with its whole server; cancelling `run` ends none. Knows no store, no controller
and no gateway: what needs them comes in as a parameter.
"""

from maserve.backends.triton.local.backend import LocalTritonBackend
from maserve.backends.triton.local.engine import (
    Command,
    Engine,
    EngineLaunch,
    ModelSyncCommand,
    ModelSyncLaunch,
    ReplicaEndpoints,
)
from maserve.backends.triton.local.parts import LocalTritonParts
from maserve.backends.triton.local.wheel import Interpreter, TritonWheel, this_interpreter

__all__ = [
    "LocalTritonBackend",
    "LocalTritonParts",
    "ReplicaEndpoints",
    "ModelSyncCommand",
    "ModelSyncLaunch",
    "Command",
    "Engine",
    "EngineLaunch",
    "TritonWheel",
    "Interpreter",
    "this_interpreter",
]
