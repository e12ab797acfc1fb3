"""Run the demo. Exit codes: 0 every claim held, 1 one did not, 130 interrupted."""

import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

from examples.demo.claims import Claims, DemoError
from examples.demo.commands import Commands
from examples.demo.plane import Addresses, ControlPlane, free_addresses
from examples.demo.preflight import find_obstacle
from examples.demo.screen import Screen
from examples.demo.story import Story

INTERRUPTED = 130


def main() -> int:
    """Tell the story in a temporary folder, and leave nothing behind but logs of what failed."""
    screen = Screen()
    obstacle = find_obstacle()
    if obstacle:
        screen.fail(obstacle)
        return 1
    signal.signal(signal.SIGTERM, _interrupt)
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="maserve-demo-"))
    claims = Claims(screen)
    plane = _plane(folder, free_addresses(), screen)
    try:
        _tell(plane, screen, claims)
    except DemoError as error:
        claims.broken(str(error))
    except KeyboardInterrupt:
        screen.fail("interrupted")
        return INTERRUPTED
    finally:
        clean_up(plane, folder, screen, claims)
    return _close(screen, claims, time.monotonic() - started)


def _plane(folder: Path, addresses: Addresses, screen: Screen) -> ControlPlane:
    environment = {
        **os.environ,
        "MASERVE_API_ADDRESS": addresses.api,
        "MASERVE_GATEWAY_ADDRESS": addresses.gateway,
    }
    commands = Commands(folder, environment, screen)
    return ControlPlane(folder, addresses, commands, screen)


def _tell(plane: ControlPlane, screen: Screen, claims: Claims) -> None:
    story = Story(plane, screen, claims)
    story.start()
    story.serve_first_version()
    story.roll_second_version_under_load()
    story.refuse_third_version()
    story.delete_everything()
    story.stop()


def clean_up(plane: ControlPlane, folder: Path, screen: Screen, claims: Claims) -> None:
    """End what still runs and remove the folder; a second Ctrl-C does not stop this.

    After a claim that did not hold the folder stays: its logs are what there is to look at.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        plane.stop()
    except DemoError as error:
        screen.fail(f"{error}; the data folder {folder} is kept")
        return
    if claims.failed and folder.exists():
        screen.fail(f"the logs are kept: maserve.log and others below {plane.data}")
        return
    shutil.rmtree(folder, ignore_errors=True)


def _close(screen: Screen, claims: Claims, seconds: float) -> int:
    if claims.all_held:
        screen.title(f"All {len(claims.told)} claims held, in {seconds:.0f} s")
        return 0
    screen.title(f"Not everything held, after {seconds:.0f} s")
    for text in claims.failed:
        screen.fail(text)
    return 1


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
