"""`ModelConfigProvision`: every cluster has the server's model config, one cluster at a time."""

from maserve.base.errors import Unavailable
from maserve.conditions import true_condition, unknown_condition
from maserve.inferenceserver.stock.ports import Ports
from maserve.resource.metadata import key_of
from maserve.wire import api, v2


class ModelConfigProvision:
    """Creates the empty config; entries belong to Deployments and are never touched here."""

    type = "ModelConfigProvision"

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def retrieve(
        self, resource: v2.InferenceServer, previous: api.Condition
    ) -> api.Condition:
        now_s = self._ports.now_s()
        try:
            missing = await self._find_missing(resource)
        except Unavailable as error:
            return unknown_condition(previous, str(error), "StatusCheckFailed", now_s)
        if missing is None:
            return true_condition(previous, now_s)
        text = f"not created yet in {missing.cluster_id}"
        return unknown_condition(previous, text, "ModelConfigNotFound", now_s)

    async def run(self, resource: v2.InferenceServer, previous: api.Condition) -> api.Condition:
        now_s = self._ports.now_s()
        try:
            missing = await self._find_missing(resource)
            if missing is not None:
                await self._ports.model_config.create_model_config(
                    key_of(resource), missing, labels=_labels(resource), annotations={}
                )
            following = await self._find_missing(resource)
        except Unavailable as error:
            return unknown_condition(previous, str(error), "ProvisionFailed", now_s)
        if following is None:
            return true_condition(previous, now_s)
        text = f"provisioning cluster {following.cluster_id}"
        return unknown_condition(previous, text, "RollingInProgress", now_s)

    async def _find_missing(self, server: v2.InferenceServer) -> v2.ClusterTarget | None:
        for target in server.spec.cluster_targets:
            provider = self._ports.model_config
            if not await provider.check_model_config_exists(key_of(server), target):
                return target
        return None


def _labels(server: v2.InferenceServer) -> dict[str, str]:
    """Return the labels of a model config (behaviour 1.4)."""
    return {
        "app.kubernetes.io/component": "model-config",
        "app.kubernetes.io/part-of": "michelangelo",
        "michelangelo.ai/inference-server": server.metadata.name,
    }
