"""The smallest complete Deployment plugin: every step is done at once and touches nothing.

The place to start from when writing a plugin (extension guide, section 2). No stock wiring
registers it: an offline or mobile Deployment says "no plugin found" until somebody does.
"""

from maserve.deployment.noop.actor import NoopActor
from maserve.deployment.noop.plugin import NoopPlugin
from maserve.deployment.noop.register import register_noop_plugins

__all__ = ["NoopActor", "NoopPlugin", "register_noop_plugins"]
