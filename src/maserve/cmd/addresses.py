"""Where to listen: loopback addresses only, until callers are authenticated."""

import errno
import os
from ipaddress import ip_address

from maserve.base.errors import Invalid, Problem, Unavailable
from maserve.host import try_listen

MAX_PORT = 65535


def parse_address(text: str, setting: str) -> tuple[str, int]:
    """Split `host:port`; only loopback hosts are allowed. Raises `Invalid` naming the setting."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal()) or int(port) > MAX_PORT:
        raise Invalid(Problem(setting, f"is not host:port: {text!r}"))
    try:
        address = ip_address("127.0.0.1" if host == "localhost" else host.strip("[]"))
    except ValueError as error:
        raise Invalid(Problem(setting, f"is not an IP address and a port: {text!r}")) from error
    if not address.is_loopback:
        raise Invalid(
            Problem(setting, f"must be a loopback address until there is authentication: {text!r}")
        )
    return str(address), int(port)


def settle_address(text: str, setting: str) -> str:
    """Return the address with its host as a number, and with a free port for port 0."""
    host, port = parse_address(text, setting)
    if port == 0:
        port = check_free(host, 0, setting)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_different(**settings: tuple[str, int]) -> None:
    """Raise `Invalid` naming both settings when two of them are one address."""
    known: dict[tuple[str, int], str] = {}
    for name, address in settings.items():
        setting = f"--{name.replace('_', '-')}"
        if address in known and address[1] != 0:
            raise Invalid(Problem(setting, f"is the same as {known[address]}; choose another one"))
        known[address] = setting


def check_free(host: str, port: int, setting: str) -> int:
    """Return the port, or raise `Unavailable` naming the setting when nobody could listen there.

    So that a start that must fail fails before anything was started. Port 0 is any free one.
    """
    try:
        return try_listen(host, port)
    except OSError as error:
        raise cannot_listen(f"{host}:{port}", setting, error) from error


def cannot_listen(address: str, setting: str, error: OSError) -> Unavailable:
    """Return what is said of an address that cannot be used."""
    if error.errno == errno.EADDRINUSE:
        why = "is in use by another program; end that one or choose another address"
    else:
        why = f"cannot be used ({os.strerror(error.errno or 0)}); choose another address"
    return Unavailable(f"{setting} {address} {why}")
