"""What the data plane refuses before Envoy could: one bad rule would spoil a whole table. Pure."""

import ipaddress
import re
from collections.abc import Iterable, Sequence

from maserve.base.errors import Invalid, Problem
from maserve.envoy.types import Address, RouteRef, RouteRule, ServiceRef

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SEGMENT = re.compile(r"[A-Za-z0-9._~-]{1,128}")


def check_name(ref: RouteRef | ServiceRef) -> None:
    """Raise `Invalid` unless cluster, namespace and name are DNS labels."""
    parts = {"cluster": ref.cluster or "x", "namespace": ref.namespace, "name": ref.name}
    _raise(
        Problem(field, f"is not a DNS label: {value!r}")
        for field, value in parts.items()
        if not _NAME.fullmatch(value)
    )


def check_rules(rules: Sequence[RouteRule]) -> None:
    """Raise `Invalid` with every path that is not plain, and every path given twice."""
    problems = [
        Problem(f"rules[{index}].{field}", f"is not a plain path: {path!r}")
        for index, rule in enumerate(rules)
        for field, path in (("match_path", rule.match_path), ("rewrite_path", rule.rewrite_path))
        if not _is_plain(path)
    ]
    problems += [
        Problem(f"rules[{index}].service", f"is not a DNS label: {rule.service!r}")
        for index, rule in enumerate(rules)
        if not _NAME.fullmatch(rule.service)
    ]
    paths = [rule.match_path for rule in rules]
    problems += [
        Problem(f"rules[{index}].match_path", f"is given twice: {path!r}")
        for index, path in enumerate(paths)
        if path in paths[:index]
    ]
    _raise(problems)


def check_addresses(addresses: Sequence[Address]) -> None:
    """Raise `Invalid` with every address that is not an IP address and a port."""
    problems = [
        Problem(f"addresses[{index}]", f"is not an IP address and a port: {address}")
        for index, address in enumerate(addresses)
        if not (_is_ip(address.host) and 0 < address.port < 65536)
    ]
    _raise(problems)


def _is_plain(path: str) -> bool:
    segments = path.split("/")
    return (
        len(segments) > 1
        and segments[0] == ""
        and all(_SEGMENT.fullmatch(one) and one not in (".", "..") for one in segments[1:])
    )


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _raise(problems: Iterable[Problem]) -> None:
    found = tuple(problems)
    if found:
        raise Invalid(*found)
