"""Model artifacts: storage URIs, download, safe unpacking, verification of a model folder.

Invariant: nothing is written outside the folder a caller names, whatever an artifact holds, and a
folder counts as a model only after `verify_model_folder`. Knows no serving framework's process, no
resource and no model config.
"""

from maserve.artifacts.download import Artifacts
from maserve.artifacts.layout import strip_single_folder, verify_model_folder
from maserve.artifacts.protocol import ArtifactSource, OnProgress, Progress
from maserve.artifacts.settings import (
    AzSettings,
    GsSettings,
    Limits,
    S3Settings,
    StorageSettings,
    parse_storage_settings,
    storage_environment,
)
from maserve.artifacts.unpack import unpack
from maserve.artifacts.uri import SCHEMES, ArtifactUri, content_id
from maserve.artifacts.worker import Cancel, CancelableWorker

__all__ = [
    "SCHEMES",
    "ArtifactSource",
    "ArtifactUri",
    "Artifacts",
    "AzSettings",
    "Cancel",
    "GsSettings",
    "Limits",
    "OnProgress",
    "Progress",
    "S3Settings",
    "StorageSettings",
    "CancelableWorker",
    "parse_storage_settings",
    "content_id",
    "storage_environment",
    "strip_single_folder",
    "unpack",
    "verify_model_folder",
]
