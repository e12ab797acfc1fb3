"""What keeps the demo from running on this machine, found before anything is started."""

import platform

from maserve.backends.triton.local.wheel import find_library_folder, find_wheel, this_interpreter
from maserve.base.errors import Error

LEAST_GLIBC = (2, 35)


def find_obstacle() -> str:
    """Return what is wrong and what to do, empty when nothing is."""
    system = find_system_obstacle(platform.system(), platform.machine(), platform.libc_ver()[1])
    if system:
        return system
    try:
        find_library_folder(this_interpreter())
    except Error as error:
        return (
            f"{error}. Use another one: rm -rf .venv && make demo PYTHON=/path/to/python3.11 "
            "(README, Requirements)"
        )
    try:
        find_wheel()
    except Error as error:
        return str(error)
    return ""


def find_system_obstacle(system: str, machine: str, glibc: str) -> str:
    """Return why Triton and Envoy cannot run on such a system, empty when they can."""
    if (system, machine) != ("Linux", "x86_64"):
        return f"Triton and Envoy come for Linux on x86-64, this is {system} on {machine}"
    numbers = tuple(int(part) for part in glibc.split(".")[:2] if part.isdecimal())
    if numbers < LEAST_GLIBC:
        return f"Triton needs glibc 2.35 or newer, this system has {glibc or 'another C library'}"
    return ""
