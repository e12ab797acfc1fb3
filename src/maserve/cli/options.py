"""The arguments and options of the commands, and what is refused of them at once."""

import re
from typing import Annotated, Any

import typer

from maserve.base.durations import parse_duration
from maserve.base.errors import Invalid
from maserve.cli.api import DEFAULT_API_ADDRESS, DEFAULT_GATEWAY_ADDRESS

__all__ = [
    "DEFAULT_API_ADDRESS",
    "DEFAULT_GATEWAY_ADDRESS",
    "DEFAULT_TIMEOUT",
    "ApiAddress",
    "DeploymentName",
    "Files",
    "GatewayAddress",
    "InferenceServerName",
    "KindWord",
    "MaybeName",
    "Name",
    "Namespace",
    "Timeout",
]

DEFAULT_TIMEOUT: Any = "5m"
"""Of an option that is a number of seconds: typer parses it as if it had been typed."""


def _check_not_empty(text: str) -> str:
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


KindWord = Annotated[
    str, typer.Argument(metavar="KIND", help="Such as Deployment, inference_server or models.")
]

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The object's name.", callback=_check_not_empty)
]

ReplicaName = Annotated[
    str,
    typer.Argument(
        metavar="REPLICA", help="As `maserve describe` shows it.", callback=_check_not_empty
    ),
]
MaybeName = Annotated[
    str, typer.Argument(metavar="NAME", help="The object's name; all when it is left out.")
]

DeploymentName = Annotated[
    str,
    typer.Argument(metavar="DEPLOYMENT", help="The Deployment's name.", callback=_check_not_empty),
]

InferenceServerName = Annotated[
    str,
    typer.Argument(
        metavar="INFERENCE_SERVER", help="The InferenceServer's name.", callback=_check_not_empty
    ),
]

Files = Annotated[
    list[str],
    typer.Option(
        "--filename", "-f", metavar="FILE|DIR|-", help="Manifests; `-` is stdin. May be repeated."
    ),
]

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
"""Seconds; its default is `DEFAULT_TIMEOUT`."""
