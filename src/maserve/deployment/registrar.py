"""Maps `<targetType>:<subType>` to a Deployment plugin (extension guide.

Section 2, Registration).
"""

from typing import Protocol

from maserve.base.errors import Unsupported
from maserve.deployment.plugin import Plugin
from maserve.wire import v2

_DEFAULT_TYPE = v2.TARGET_TYPE_INFERENCE_SERVER


class Registrar(Protocol):
    """Plugins by target type (the enum's name) and subtype."""

    def register_plugin(self, target_type: str, sub_type: str, plugin: Plugin) -> None:
        """Put the plugin under its key; the last registration of a key wins, silently."""
        ...

    def get_plugin(self, target_type: str, sub_type: str, deployment: v2.Deployment) -> Plugin:
        """Return the plugin. Raises `Unsupported` when nothing is registered under the key."""
        ...


class SimpleRegistrar:
    """A dictionary."""

    def __init__(self) -> None:
        self._plugins: dict[str, Plugin] = {}

    def register_plugin(self, target_type: str, sub_type: str, plugin: Plugin) -> None:
        self._plugins[f"{target_type}:{sub_type}"] = plugin

    def get_plugin(self, target_type: str, sub_type: str, _deployment: v2.Deployment) -> Plugin:
        plugin = self._plugins.get(f"{target_type}:{sub_type}")
        if plugin is None:
            raise Unsupported(f"no plugin found for targetType={target_type}, subType={sub_type}")
        return plugin


def find_plugin(registrar: Registrar, deployment: v2.Deployment) -> Plugin:
    """Return the plugin a Deployment selects by `spec.definition`; unset means an inference server.

    Raises `Unsupported` as the registrar does.
    """
    if not deployment.spec.HasField("definition"):
        name = v2.TargetType.Name(_DEFAULT_TYPE)
        return registrar.get_plugin(name, "", deployment)
    definition = deployment.spec.definition
    return registrar.get_plugin(
        v2.TargetType.Name(definition.type), definition.sub_type, deployment
    )
