"""The Deployment controller, its plugin protocol and the registrar (extension guide, section 2).

Invariant: the controller never reaches a COMPLETE stage on its own; the plugin's `parse_stage` says
so.
"""

from maserve.deployment.controller import DeploymentController
from maserve.deployment.keys import FINALIZER, server_name
from maserve.deployment.places import known_servers, working_server
from maserve.deployment.plugin import Conditions, ObservabilityContext, Plugin, RequestContext
from maserve.deployment.registrar import Registrar, SimpleRegistrar

__all__ = [
    "FINALIZER",
    "Conditions",
    "DeploymentController",
    "ObservabilityContext",
    "Plugin",
    "Registrar",
    "RequestContext",
    "SimpleRegistrar",
    "known_servers",
    "server_name",
    "working_server",
]
