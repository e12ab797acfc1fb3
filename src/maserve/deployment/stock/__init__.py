"""The stock plugin.

One model on an InferenceServer, rolled out cluster by cluster (serving guide).
"""

from maserve.deployment.stock.plugin import StockPlugin
from maserve.deployment.stock.ports import ArtifactCheck, Ports
from maserve.deployment.stock.settings import RolloutSettings

__all__ = ["ArtifactCheck", "Ports", "RolloutSettings", "StockPlugin"]
