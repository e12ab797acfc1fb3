"""The model config of the embedded mode: one JSON file per server and cluster."""

from maserve.modelconfig.file.locked import locked_list
from maserve.modelconfig.file.provider import FileModelConfigProvider

__all__ = ["FileModelConfigProvider", "locked_list"]
