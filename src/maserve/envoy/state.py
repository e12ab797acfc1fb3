"""What the data plane shall serve: one immutable value, its changes and its JSON form.

Pure. The order in which routes were first made decides who owns a path that two routes claim.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from maserve.base.errors import Invalid, Problem
from maserve.base.keys import ClusterId
from maserve.envoy.types import LOOPBACK, Address, RouteRef, RouteRule, ServiceRef

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteState:
    """A route's rules and its place in the order of creation (smaller is older)."""

    order: int
    rules: tuple[RouteRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything the data plane is configured from; `listeners` has each local cluster's port."""

    routes: Mapping[RouteRef, RouteState] = field(default_factory=dict)
    services: Mapping[ServiceRef, tuple[Address, ...]] = field(default_factory=dict)
    listeners: Mapping[ClusterId, int] = field(default_factory=dict)
    next_order: int = 1


def with_route(state: State, ref: RouteRef, rules: Sequence[RouteRule]) -> State:
    """Replace the rules of a route; one that is not there is made, as the youngest."""
    old = state.routes.get(ref)
    order = old.order if old else state.next_order
    route = RouteState(order=order, rules=tuple(rules))
    return replace(
        state,
        routes={**state.routes, ref: route},
        next_order=state.next_order if old else order + 1,
    )


def without_route(state: State, ref: RouteRef) -> State:
    return replace(state, routes={r: route for r, route in state.routes.items() if r != ref})


def with_service(state: State, ref: ServiceRef, addresses: Sequence[Address]) -> State:
    """Set the addresses of a service, sorted and each once; there may be none."""
    return replace(state, services={**state.services, ref: tuple(sorted(set(addresses)))})


def without_service(state: State, ref: ServiceRef) -> State:
    return replace(state, services={s: known for s, known in state.services.items() if s != ref})


def with_listener(state: State, cluster: ClusterId, port: int) -> State:
    return replace(state, listeners={**state.listeners, cluster: port})


def without_idle_listeners(state: State, *, keep: Collection[ClusterId] = ()) -> State:
    """Close the listeners of clusters that nothing here is about, except those in `keep`."""
    used = frozenset(keep) | _used_clusters(state)
    return replace(state, listeners={c: p for c, p in state.listeners.items() if c in used})


def with_moved_listener(state: State, cluster: ClusterId, port: int) -> State:
    """Give a cluster another port and follow it in the control plane's services."""
    old = (LOOPBACK, state.listeners[cluster])

    def follow(address: Address) -> Address:
        return replace(address, port=port) if (address.host, address.port) == old else address

    services = {
        ref: tuple(sorted(map(follow, known))) if ref.cluster is None else known
        for ref, known in state.services.items()
    }
    return with_listener(replace(state, services=services), cluster, port)


def render_state(state: State) -> str:
    """Render as JSON, in a defined order."""
    document = {
        "format": FORMAT,
        "nextOrder": state.next_order,
        "listeners": dict(sorted(state.listeners.items())),
        "services": [
            {**_render_ref(ref), "addresses": [[a.host, a.port, a.label] for a in addresses]}
            for ref, addresses in sorted(state.services.items(), key=lambda item: str(item[0]))
        ],
        "routes": [
            {
                **_render_ref(ref),
                "order": route.order,
                "rules": [_render_rule(r) for r in route.rules],
            }
            for ref, route in sorted(state.routes.items(), key=lambda item: item[1].order)
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def parse_state(text: str | bytes, *, source: str) -> State:
    """Parse what `render_state` wrote. Raises `Invalid` naming `source` for anything else."""
    try:
        return _parse(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Invalid(Problem(source, f"is no data plane state: {error!r}")) from error


def _used_clusters(state: State) -> frozenset[str]:
    """Return the clusters that routes, services or ingresses are about."""
    used = {ref.cluster or "" for ref in state.routes} | {s.cluster or "" for s in state.services}
    for service, known in state.services.items():
        used |= {address.label for address in known if service.cluster is None}
    return frozenset(used)


def _parse(document: dict[str, Any]) -> State:
    if document["format"] != FORMAT:
        raise ValueError(f"format {document['format']} is not {FORMAT}")
    return State(
        routes={
            RouteRef(**_parse_ref(row)): RouteState(
                order=int(row["order"]), rules=tuple(_parse_rule(rule) for rule in row["rules"])
            )
            for row in document["routes"]
        },
        services={
            ServiceRef(**_parse_ref(row)): tuple(
                Address(host=str(host), port=int(port), label=str(label))
                for host, port, label in row["addresses"]
            )
            for row in document["services"]
        },
        listeners={ClusterId(c): int(port) for c, port in document["listeners"].items()},
        next_order=int(document["nextOrder"]),
    )


def _render_ref(ref: RouteRef | ServiceRef) -> dict[str, Any]:
    return {"cluster": ref.cluster, "namespace": ref.namespace, "name": ref.name}


def _parse_ref(row: dict[str, Any]) -> dict[str, Any]:
    cluster = row["cluster"]
    return {
        "cluster": None if cluster is None else ClusterId(str(cluster)),
        "namespace": str(row["namespace"]),
        "name": str(row["name"]),
    }


def _render_rule(rule: RouteRule) -> dict[str, Any]:
    return {
        "matchPath": rule.match_path,
        "isExact": rule.is_exact,
        "rewritePath": rule.rewrite_path,
        "isFullRewrite": rule.is_full_rewrite,
        "service": rule.service,
        "servicePort": rule.service_port,
    }


def _parse_rule(row: dict[str, Any]) -> RouteRule:
    return RouteRule(
        match_path=str(row["matchPath"]),
        is_exact=bool(row["isExact"]),
        rewrite_path=str(row["rewritePath"]),
        is_full_rewrite=bool(row["isFullRewrite"]),
        service=str(row["service"]),
        service_port=int(row["servicePort"]),
    )
