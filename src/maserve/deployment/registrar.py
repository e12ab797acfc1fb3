"""Maps `<targetType>:<subType>` to a Deployment plugin.

Source: extension guide, section 2, Registration.
"""

from typing import Protocol

from maserve.base.errors import Unsupported
from maserve.deployment.keys import has_other_target
from maserve.deployment.plugin import Plugin
from maserve.resource.metadata import is_deleting
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

    One that is placed on an inference server and wanted on another type of target is cleaned up
    there first, by the plugin that placed it. Raises `Unsupported` as the registrar does, also for
    a new target that nobody serves: then nothing is taken away, unless it is being deleted.
    """
    if has_other_target(deployment):
        if not is_deleting(deployment):
            _get_wanted(registrar, deployment)
        return _get_default(registrar, deployment)
    return _get_wanted(registrar, deployment)


def _get_wanted(registrar: Registrar, deployment: v2.Deployment) -> Plugin:
    if not deployment.spec.HasField("definition"):
        return _get_default(registrar, deployment)
    definition = deployment.spec.definition
    return registrar.get_plugin(
        v2.TargetType.Name(definition.type), definition.sub_type, deployment
    )


def _get_default(registrar: Registrar, deployment: v2.Deployment) -> Plugin:
    return registrar.get_plugin(v2.TargetType.Name(_DEFAULT_TYPE), "", deployment)
