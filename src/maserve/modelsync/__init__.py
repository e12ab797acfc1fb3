"""The loop beside each replica: brings what the model config wants into the serving framework.

Invariant: never talks to the control plane. A folder is loaded only whole and verified; a model is
unloaded only when no entry of a readable list wants it here and after it has left the readiness
list for the grace; whether a model is loaded is known from the engine's index and nowhere else.
"""

from maserve.modelsync.cache import Cache
from maserve.modelsync.engine import Engine, LoadAnswer, TritonEngine, parse_index
from maserve.modelsync.loop import ModelSync
from maserve.modelsync.settings import SyncSettings
from maserve.modelsync.types import EngineModel, EngineState, ModelState

__all__ = [
    "Cache",
    "Engine",
    "EngineModel",
    "EngineState",
    "LoadAnswer",
    "ModelState",
    "ModelSync",
    "SyncSettings",
    "TritonEngine",
    "parse_index",
]
