"""What an InferenceServer says of itself, where a Deployment cannot go on for its sake."""

from maserve.base.errors import Error
from maserve.base.keys import Key
from maserve.conditions import FALSE, first_unmet
from maserve.deployment.stock.ports import Ports
from maserve.resource.metadata import is_deleting, key_of
from maserve.wire import v2


async def explain_server(ports: Ports, key: Key) -> str:
    """Return why nothing can be placed on the server yet, in its own words."""
    try:
        server = await ports.store.find(v2.InferenceServer, key)
    except Error as error:
        return f"InferenceServer {key}: {error}"
    return f"InferenceServer {key} is gone" if server is None else describe_server(server)


def describe_server(server: v2.InferenceServer) -> str:
    """Return the server's failed condition, else its first one that is not TRUE yet."""
    name = f"InferenceServer {key_of(server)}"
    if is_deleting(server) or server.spec.decom_spec.decommission:
        return f"{name} is being removed"
    conditions = server.status.conditions
    failed = (each for each in conditions if each.status == FALSE)
    unmet = next(failed, None) or first_unmet(conditions)
    if unmet is None:
        return f"{name} is not provisioned yet"
    return f"{name}: {unmet.type}: {unmet.message or unmet.reason}"
