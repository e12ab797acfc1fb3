"""The options that several commands share."""

import re
from typing import Annotated

import typer

from maserve.base.durations import parse_duration
from maserve.base.errors import Invalid
from maserve.cli.api import DEFAULT_API_ADDRESS, DEFAULT_GATEWAY_ADDRESS

__all__ = [
    "DEFAULT_API_ADDRESS",
    "DEFAULT_GATEWAY_ADDRESS",
    "ApiAddress",
    "GatewayAddress",
    "Namespace",
    "Timeout",
    "DEFAULT_TIMEOUT",
    "check_not_empty",
]

DEFAULT_TIMEOUT = "5m"


def check_not_empty(text: str) -> str:
    """Refuse an empty name, such as that of an unset variable: a watch would take it for all."""
    if not text:
        raise typer.BadParameter("cannot be empty")
    return text


_HOST_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):[0-9]{1,5}")


def _check_host_port(text: str) -> str:
    if not _HOST_PORT.fullmatch(text):
        raise typer.BadParameter(f"must be HOST:PORT, such as 127.0.0.1:8880, not {text!r}")
    return text


def _check_api_address(text: str) -> str:
    if text.startswith("unix:") or _HOST_PORT.fullmatch(text):
        return text
    what = "HOST:PORT, such as 127.0.0.1:15566, or unix:PATH"
    raise typer.BadParameter(f"must be {what}, not {text!r}")


ApiAddress = Annotated[
    str,
    typer.Option(
        envvar="MASERVE_API_ADDRESS",
        metavar="HOST:PORT",
        help="The API server.",
        callback=_check_api_address,
    ),
]

GatewayAddress = Annotated[
    str,
    typer.Option(
        envvar="MASERVE_GATEWAY_ADDRESS",
        metavar="HOST:PORT",
        help="The gateway.",
        callback=_check_host_port,
    ),
]

Namespace = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAME", help="The namespace, or project.")
]


def _seconds(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except Invalid as error:
        raise typer.BadParameter(str(error)) from error
    if seconds <= 0:
        raise typer.BadParameter("must be more than 0")
    return seconds


Timeout = Annotated[
    float,
    typer.Option(parser=_seconds, metavar="DURATION", help="How long to wait, such as 90s or 5m."),
]
"""Seconds; give it the default `DEFAULT_TIMEOUT`, which typer parses as if it had been typed."""
