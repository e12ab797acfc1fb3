"""May a rollout go on? The health gate, which judges the models that are served.

Invariant: a gate that cannot be answered never starts a rollback.
"""

from maserve.gates.model_health import ModelGate, is_acceptable
from maserve.gates.types import Answer, Verdict, combined

__all__ = ["Answer", "ModelGate", "Verdict", "combined", "is_acceptable"]
