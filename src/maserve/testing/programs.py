"""Programs of the machine that a test needs: one may be missing unless it was promised."""

import os
import shutil

import pytest

PROMISED = "MASERVE_TEST_PROGRAMS"
"""Names of programs that must be there, separated by spaces: what CI has installed."""


def find_program(name: str) -> str:
    """Return a program's path; skip the test where it is missing and was not promised."""
    found = shutil.which(name)
    if found is not None:
        return found
    if name in os.environ.get(PROMISED, "").split():
        pytest.fail(f"{name} was promised by {PROMISED} and is not there")
    pytest.skip(f"{name} is not installed")
