"""Where to listen: loopback addresses only, until callers are authenticated."""

from ipaddress import ip_address

from maserve.base.errors import Invalid, Problem

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
