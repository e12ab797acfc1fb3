"""`Validated`: the Deployment names a model that can be served and an inference server."""

from maserve.base.errors import Error
from maserve.base.keys import Key
from maserve.conditions import read_progress
from maserve.deployment.keys import desired
from maserve.deployment.places import candidate_server, is_moving
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.site import Trouble
from maserve.deployment.stock.source import model_key, resolve_source
from maserve.deployment.stock.step import Step
from maserve.wire import api, v2


class Validated(Step):
    """Missing names and a model that is missing, or cannot be served, fail at once.

    A server that is not there yet is waited for within the budget. The model is looked at after it,
    so that both may be applied in any order, and once: what was rolled out goes on without it.
    Whether its files are there is for `AssetsPrepared`.
    """

    timeout_reason = "InferenceServerNotFound"

    def __init__(self, ports: Ports) -> None:
        super().__init__("Validated", ports)
        self.budget_s = ports.settings.model_load_timeout_s

    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        spec = resource.spec
        if spec.WhichOneof("target") != "inference_server" or not spec.inference_server.name:
            text = "spec.inference_server.name must name an InferenceServer"
            return self.failed(previous, text, "NoInferenceServer")
        if not desired(resource):
            text = "spec.desired_revision.name must name a Model"
            return self.failed(previous, text, "NoDesiredRevision")
        if "/" in desired(resource):
            text = f"spec.desired_revision.name {desired(resource)!r} is not a Model's name"
            return self.failed(previous, text, "InvalidModelName")
        if namesake := _describe_namesake(resource):
            return self.failed(previous, namesake, "ModelNameTaken")
        key = Key(resource.metadata.namespace, candidate_server(resource))
        if not await self._is_there(key):
            text = f"spec.inference_server: InferenceServer {key} not found; create it"
            return self.waiting(previous, text, "InferenceServerNotFound")
        if read_progress(previous).done:
            return self.done(previous)
        await resolve_source(self.ports, resource, resource.status.candidate_revision)
        return self.latch(previous)

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        return await self.look(resource, previous)

    async def _is_there(self, key: Key) -> bool:
        try:
            return await self.ports.store.find(v2.InferenceServer, key) is not None
        except Error as error:
            raise Trouble("InferenceServerReadFailed", str(error)) from error


def _describe_namesake(deployment: v2.Deployment) -> str:
    """Say when the candidate is another model of the current one's name; empty when it is not."""
    new = model_key(deployment, deployment.status.candidate_revision)
    old = model_key(deployment, deployment.status.current_revision)
    if new == old or new.name != old.name or is_moving(deployment):
        return ""
    return (
        f"spec.desired_revision: Model {new} has the name of the current model {old}, and a "
        "replica holds one model of a name: give it another name"
    )
