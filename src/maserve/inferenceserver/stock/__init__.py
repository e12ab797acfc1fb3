"""The stock plugin: delegates to Backend, endpoints, routing and model config."""

from maserve.inferenceserver.stock.plugin import StockPlugin
from maserve.inferenceserver.stock.ports import Ports

__all__ = ["Ports", "StockPlugin"]
