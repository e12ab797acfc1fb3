"""What must be true of the world after every write (ARCHITECTURE, Order is safety).

Each check returns what is wrong as sentences; an empty list means all is well.
"""

from maserve.backends import LoadState, is_loaded
from maserve.base.keys import ClusterId, Key, ModelName
from maserve.deployment.keys import (
    candidate,
    current,
    is_cleanup,
    server_name,
)
from maserve.deployment.stock.placement import (
    Place,
    candidate_place,
    serving_place,
    still_wanted,
)
from maserve.modelconfig import Entry, Phase, find_entry
from maserve.resource import names
from maserve.resource.metadata import is_deleting
from maserve.routing import RouteId, Rule
from maserve.testing.simulation import Simulation
from maserve.wire import v2

_MODEL_PREFIX = "/v2/models/"


class Violation(BaseException):
    """A safety rule is broken.

    No `Exception`: a controller's worker must not take it for trouble of its own and go on.
    """


def find_violations(sim: Simulation) -> list[str]:
    """Return every broken safety rule."""
    return [*routed_but_not_loaded(sim), *served_but_not_routed(sim)]


def check(sim: Simulation, when: str) -> None:
    """Raise `Violation` naming every broken rule and when it was found; called at every write."""
    violations = [*find_violations(sim), *begun_out_of_turn(sim), *gone_back_too_early(sim)]
    if violations:
        raise Violation(f"after {when}: {'; '.join(violations)}")


def routed_but_not_loaded(sim: Simulation) -> list[str]:
    """Traffic must only go to a model that every replica admitting traffic has READY.

    And its entry must require it, so that no replica becomes ready without it.
    """
    wrong: list[str] = []
    now = sim.clock.now()
    for (server, cluster), replicas in sim.world.groups.items():
        entries = sim.model_config.find_entries(server, cluster) or ()
        for rule in traffic_rules(sim, server, cluster):
            deployment, model = rule.match_path.split("/")[-1], _model_of(rule)
            where = f"{server}/{deployment} in {cluster}"
            if not _is_required(find_entry(entries, deployment, model)):
                wrong.append(f"{where} is routed to {model}, which is not required")
            if model in sim.world.lifted.get((server, cluster), ()):
                continue  # it answers nobody wherever traffic goes; the others must (ADR 0017)
            for replica in replicas:
                found = replica.models.get(ModelName(model))
                is_loaded = found is not None and found.state is LoadState.READY
                if replica.is_ready(now) and not is_loaded:
                    wrong.append(f"{where} is routed to {model}, {replica.name} lacks it")
    return wrong


def served_but_not_routed(sim: Simulation) -> list[str]:
    """Find Deployments with a current model that nothing leads to.

    One that moves is served as long as one of its two places is whole (ADR 0016).
    """
    wrong: list[str] = []
    for deployment in sim.deployments():
        if not current(deployment) or _is_leaving(sim, deployment):
            continue
        places = (serving_place(deployment), candidate_place(deployment))
        missing = [_missing_rules(sim, deployment, place) for place in places]
        if all(missing):
            wrong += missing[0]
    return wrong


def _missing_rules(sim: Simulation, deployment: v2.Deployment, place: Place) -> list[str]:
    """Return what of the gateway and the clusters does not lead to a Deployment's model."""
    name, server = deployment.metadata.name, place.server
    where = f"{name} serves {current(deployment)}"
    missing: list[str] = []
    if not _has_rule(discovery_rules(sim, server), names.discovery_path(server.name, name)):
        missing.append(f"{where} but the gateway has no rule")
    missing += [
        f"{where} but {target.cluster_id} has no rule"
        for target in still_wanted(place.targets, sim.server(server))
        if not _has_rule(
            traffic_rules(sim, server, ClusterId(target.cluster_id)),
            names.traffic_path(server.name, name),
        )
    ]
    return missing


def begun_out_of_turn(sim: Simulation) -> list[str]:
    """Find clusters that a candidate has been listed in since the last call, too early.

    Every earlier cluster of the placement must serve it then: required, routed and READY on every
    replica. `sim.listed` keeps what was listed at the last call.
    """
    wrong: list[str] = []
    listed: set[tuple[Key, ClusterId, str, str]] = set()
    for server, cluster in sim.world.groups:
        for entry in sim.model_config.find_entries(server, cluster) or ():
            listed.add((server, cluster, entry.deployment_name, str(entry.name)))
    for server, cluster, name, model in sorted(listed - sim.listed, key=str):
        for deployment in sim.deployments():
            if deployment.metadata.name == name and candidate(deployment) == model:
                wrong += _not_serving_before(sim, deployment, server, cluster)
    sim.listed = listed
    return wrong


def _not_serving_before(
    sim: Simulation, deployment: v2.Deployment, server: Key, cluster: ClusterId
) -> list[str]:
    model, name = candidate(deployment), deployment.metadata.name
    if model == current(deployment):
        return []  # it is repaired, or brought back, in any order
    order = _order(sim, deployment, server)
    earlier = order[: order.index(cluster)] if cluster in order else []
    return [
        f"{name} begins with {model} in {cluster} before {each} serves it"
        for each in earlier
        if not _serves(sim, server, each, deployment)
    ]


def _serves(sim: Simulation, server: Key, cluster: ClusterId, deployment: v2.Deployment) -> bool:
    model, name = candidate(deployment), deployment.metadata.name
    entries = sim.model_config.find_entries(server, cluster) or ()
    rules = [
        _model_of(rule)
        for rule in traffic_rules(sim, server, cluster)
        if rule.match_path == names.traffic_path(server.name, name)
    ]
    report = sim.world.report(server, cluster, model)
    return _is_required(find_entry(entries, name, model)) and rules == [model] and is_loaded(report)


def gone_back_too_early(sim: Simulation) -> list[str]:
    """Find routes that have gone back to a previous model since the last call, too early.

    Every other cluster of the placement must have it loaded then, or serve it. `sim.routed` keeps
    what was routed at the last call.
    """
    routed = {
        (server, cluster, rule.match_path, _model_of(rule))
        for server, cluster in sim.world.groups
        for rule in traffic_rules(sim, server, cluster)
    }
    wrong = [
        f"{deployment.metadata.name} goes back to {model} in {cluster} before {other} has it"
        for server, cluster, path, model in sorted(routed - sim.routed, key=str)
        for deployment in sim.deployments()
        if path == names.traffic_path(server.name, deployment.metadata.name)
        and candidate(deployment) != current(deployment) == model
        for other in _order(sim, deployment, server)
        if (server, other, path, model) not in routed
        and not is_loaded(sim.world.report(server, other, ModelName(model)))
    ]
    sim.routed = routed
    return wrong


def _order(sim: Simulation, deployment: v2.Deployment, server: Key) -> list[ClusterId]:
    places = (serving_place(deployment), candidate_place(deployment))
    targets = next((place.targets for place in places if place.server == server), ())
    placed = still_wanted(targets, sim.server(server))
    return [ClusterId(target.cluster_id) for target in placed]


def traffic_rules(sim: Simulation, server: Key, cluster: ClusterId) -> tuple[Rule, ...]:
    """Return what the data plane of a cluster serves of the Deployments on a server."""
    route = RouteId(cluster=cluster, key=Key(server.namespace, names.traffic_route(server.name)))
    rules = sim.routes.live_rules(cluster, route)
    return tuple(rule for rule in rules if rule.rewrite_path.startswith(_MODEL_PREFIX))


def discovery_rules(sim: Simulation, server: Key) -> tuple[Rule, ...]:
    """Return what the gateway serves of a server."""
    route = RouteId(cluster=None, key=Key(server.namespace, names.discovery_route(server.name)))
    return sim.routes.live_rules(None, route)


def _is_leaving(sim: Simulation, deployment: v2.Deployment) -> bool:
    spec = deployment.spec
    key = Key(deployment.metadata.namespace, server_name(deployment))
    server = sim.server(key)
    return (
        is_deleting(deployment)
        or is_cleanup(deployment.status.stage)
        or spec.deletion_spec.deleted
        or not spec.desired_revision.name
        or server is None
        or is_deleting(server)
    )


def _is_required(entry: Entry | None) -> bool:
    return entry is not None and entry.phase == Phase.SERVING


def _model_of(rule: Rule) -> str:
    return rule.rewrite_path.removeprefix(_MODEL_PREFIX)


def _has_rule(rules: tuple[Rule, ...], path: str) -> bool:
    return any(rule.match_path == path for rule in rules)
