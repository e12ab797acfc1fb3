"""The command line of model-sync, as `cmd/modelsync.py` reads it."""

import os
import sys

from maserve.backends.triton.local import Command, ModelSyncLaunch
from maserve.cmd.settings import Settings
from maserve.host import clean_environment

_VARIABLES = (
    "PATH",
    "HOME",
    "LANG",
    "TMPDIR",
    "PYTHONPATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
"""What model-sync inherits of our environment besides the storage variables."""


def build_modelsync_command(settings: Settings, launch: ModelSyncLaunch) -> Command:
    """Build the command line of the model-sync process beside one replica."""
    argv = (
        sys.executable,
        "-m",
        "maserve.cmd.modelsync",
        f"--replica={launch.replica}",
        f"--config={launch.config}",
        f"--repository={launch.repository}",
        f"--cache={launch.cache}",
        f"--engine-url={launch.triton_url}",
        f"--engine-grpc={launch.triton_grpc}",
        f"--readiness={launch.readiness}",
        f"--status-file={launch.status}",
        f"--unload-grace={settings.model_sync.unload_grace_s:g}",
        f"--load-timeout={settings.model_sync.load_timeout_s:g}",
    )
    return Command(
        argv=argv,
        env={**clean_environment(os.environ, _VARIABLES), **settings.storage_variables},
    )
