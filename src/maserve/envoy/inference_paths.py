"""What passes below a Deployment's path: short forms, and the serving protocol's own paths. Pure.

A client of the protocol that is given `HOST/{server}/{deployment}` as its base asks below it for
`v2/...`. The model may be called by its own name or by the Deployment's. Repository, shared memory,
logging and trace are not among the paths, however they are spelled.
"""

import re

READ_METHODS = "GET|HEAD"
POST_METHODS = "POST"

_NAME = "[A-Za-z0-9._-]+"
_VERSION = "(/versions/[0-9]+)?"
_QUERY = r"(\?.*)?"
_INFER = f"{_VERSION}/(infer|generate|generate_stream)"
_READ = f"{_VERSION}(/ready)?"
_READ_IN_PROTOCOL = f"{_VERSION}(/ready|/config|/stats)?"

SERVER_BASE = "/v2"
"""The protocol's path of the serving program itself."""

_SERVER = f"{SERVER_BASE}(/health/(live|ready))?"


def gateway_reads(path: str) -> str:
    """Return the pattern of what may be read below a Deployment's `path` at the gateway.

    Which model there is, a cluster knows.
    """
    model = f"{SERVER_BASE}/models/{_NAME}{_READ_IN_PROTOCOL}"
    return f"{re.escape(path)}({_READ}|{_SERVER}|{model}){_QUERY}"


def gateway_posts(path: str) -> str:
    """Return the pattern of what may be posted below a Deployment's `path` at the gateway."""
    return f"{re.escape(path)}({SERVER_BASE}/models/{_NAME})?{_INFER}{_QUERY}"


def model_base(path: str, names: tuple[str, ...]) -> str:
    """Return the pattern of what stands for the routed model itself, called by one of `names`."""
    return f"{re.escape(path)}({_models_path(names)})?"


def model_reads(path: str, names: tuple[str, ...]) -> str:
    """Return the pattern of what may be read of the routed model in a cluster."""
    in_protocol = f"{_models_path(names)}{_READ_IN_PROTOCOL}"
    return f"{re.escape(path)}({_READ}|{in_protocol}){_QUERY}"


def model_posts(path: str, names: tuple[str, ...]) -> str:
    """Return the pattern of what may be posted to the routed model in a cluster."""
    return f"{model_base(path, names)}{_INFER}{_QUERY}"


def server_reads(path: str) -> str:
    """Return the pattern of what may be asked of the serving program in a cluster."""
    return f"{re.escape(path)}{_SERVER}{_QUERY}"


def _models_path(names: tuple[str, ...]) -> str:
    # The longest first: of m and m1, m must not be found in m1 when it is rewritten.
    ordered = sorted(dict.fromkeys(names), key=lambda name: (-len(name), name))
    called = "|".join(re.escape(name) for name in ordered)
    return f"{SERVER_BASE}/models/({called})"
