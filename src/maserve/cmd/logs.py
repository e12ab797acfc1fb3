"""Where the control plane's own log goes: one file in the data folder, bounded at each start."""

from pathlib import Path
from typing import BinaryIO

import structlog

from maserve.base.errors import Unavailable
from maserve.cmd.settings import LogSettings
from maserve.host import cap_log, lossy

LOG_FILE = "maserve.log"
LIMIT_BYTES = 32 * 1024 * 1024


_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def open_log(folder: Path, settings: LogSettings) -> BinaryIO:
    """Send all logs to the data folder's file. Raises `Unavailable` when it cannot be written."""
    path = folder / LOG_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            cap_log(path, LIMIT_BYTES)
        file = path.open("ab", buffering=0)
    except OSError as error:
        text = f"--data-dir: cannot write {path}: {error.strerror}; name a folder of your own"
        raise Unavailable(text) from error
    renderer: structlog.types.Processor = (
        structlog.processors.JSONRenderer()
        if settings.encoding == "json"
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[settings.level]),
        logger_factory=structlog.WriteLoggerFactory(file=lossy(file.fileno())),
        cache_logger_on_first_use=False,
    )
    return file
