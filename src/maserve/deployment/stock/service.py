"""Looks whether a Deployment's requests would be answered, in every cluster it is placed on."""

from functools import partial

from maserve.base.errors import Error
from maserve.base.keys import Key
from maserve.deployment.keys import candidate, current, server_name
from maserve.deployment.stock.discovery import discovery_of
from maserve.deployment.stock.health import ClusterSeen, Grade, Health, judge, worst
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.site import Site, Trouble
from maserve.deployment.stock.sites import list_placed
from maserve.wire import v2


async def look_at_service(ports: Ports, deployment: v2.Deployment) -> Health:
    """Return how well the current model, or the candidate where traffic has moved, is served.

    Raises `Trouble` when that cannot be told, unless what was seen is bad enough already.
    """
    key = Key(deployment.metadata.namespace, server_name(deployment))
    server = await _find_server(ports, key)
    if server is None:
        return Health(grade=Grade.OUT, text=f"InferenceServer {key} is gone")
    sites = await list_placed(ports, deployment)
    if not sites:
        return Health(grade=Grade.OUT, text=f"it is placed in no cluster of InferenceServer {key}")
    looks = [partial(_look_at_gateway, ports), *(partial(_look, site, server) for site in sites)]
    found: list[Health] = []
    troubles: list[Trouble] = []
    for look in looks:
        try:
            found.append(await look(deployment))
        except Trouble as trouble:
            troubles.append(trouble)
    health = worst(found)
    if troubles and health.grade is not Grade.OUT:
        raise troubles[0]
    return health


async def _look_at_gateway(ports: Ports, deployment: v2.Deployment) -> Health:
    rule = discovery_of(ports, deployment)
    if not await rule.is_there():
        return Health(grade=Grade.OUT, text=f"the gateway does not lead to {current(deployment)}")
    if not await rule.is_live():  # of the whole table: another's change may be under way
        raise Trouble("DiscoveryRouteNotReady", "the gateway has not taken up its routes yet")
    return Health(grade=Grade.SERVING)


async def _look(site: Site, server: v2.InferenceServer, deployment: v2.Deployment) -> Health:
    models = [model for model in (current(deployment), candidate(deployment)) if model]
    model = await site.find_routed(models)
    if model is None:
        text = f"cluster {site.cluster}: no traffic goes to {current(deployment)}"
        return Health(grade=Grade.OUT, text=text)
    seen = ClusterSeen(
        cluster=site.cluster, report=await site.load(model), replicas=await site.replicas(server)
    )
    return judge(seen, site.ports.clock.now(), site.ports.settings.model_load_timeout_s)


async def _find_server(ports: Ports, key: Key) -> v2.InferenceServer | None:
    try:
        return await ports.store.find(v2.InferenceServer, key)
    except Error as error:
        raise Trouble("InferenceServerReadFailed", str(error)) from error
