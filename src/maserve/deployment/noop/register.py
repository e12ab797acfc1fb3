"""Registering the no-op plugin, for whoever wants offline and mobile Deployments accepted."""

from maserve.deployment.noop.plugin import NoopPlugin
from maserve.deployment.registrar import Registrar
from maserve.wire import v2

TARGET_TYPES = (v2.TARGET_TYPE_OFFLINE, v2.TARGET_TYPE_MOBILE)


def register_noop_plugins(registrar: Registrar) -> None:
    """Register it for both types without a subtype. Replaces what is registered there."""
    plugin = NoopPlugin()
    for target_type in TARGET_TYPES:
        registrar.register_plugin(v2.TargetType.Name(target_type), "", plugin)
