"""Where the API server may listen: on this machine only, as long as it does not know who calls."""

import asyncio
import ipaddress
import socket
from pathlib import Path

from maserve.base.errors import Invalid, Problem, Unavailable

_UNIX = "unix:"


async def resolve_address(address: str) -> tuple[str, ...]:
    """Return the addresses to bind for a `host:port` or `unix:path`, host names resolved.

    Raises `Invalid` for what cannot be read, does not resolve, or is more than this machine, and
    `Unavailable` for a socket that another program answers on.
    """
    if address.startswith(_UNIX):
        await _check_unused(Path(address.removeprefix(_UNIX)))
        return (address,)
    host, port = _split(address)
    found = await _resolve(address, host, port)
    for ip in found:
        if not ipaddress.ip_address(ip).is_loopback:
            text = (
                f"must be on this machine (127.0.0.1, ::1 or unix:path) while callers are not "
                f"authenticated: {address!r} is {ip}"
            )
            raise Invalid(Problem("api-address", text))
    return tuple(f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for ip in found)


def in_use(address: str) -> Unavailable:
    """Return the error for an address that cannot be bound."""
    return Unavailable(
        f"cannot listen on {address}: it is in use by another program (or not allowed); "
        "stop that program or choose another --api-address"
    )


def _split(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise Invalid(Problem("api-address", f"must be host:port or unix:path, not {address!r}"))
    return host, int(port)


async def _resolve(address: str, host: str, port: int) -> tuple[str, ...]:
    loop = asyncio.get_running_loop()
    try:
        rows = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Invalid(Problem("api-address", f"does not resolve: {address!r} ({error})")) from error
    return tuple(dict.fromkeys(str(row[4][0]) for row in rows))


async def _check_unused(path: Path) -> None:
    """Raise if something answers on the socket: gRPC would take its file away without asking."""
    if not path.parent.is_dir():
        raise Invalid(Problem("api-address", f"is in a folder that is not there: {path.parent}"))
    try:
        _, writer = await asyncio.open_unix_connection(path)
    except OSError:
        return
    writer.close()
    raise in_use(f"{_UNIX}{path}")
