"""The ordered list of modules that makes a control plane.

To extend it, copy this file, edit the list, end it with a call of `maserve.cmd.main.main(options)`
and run your copy (extension guide, How these plugins are wired): add a module that registers a
Deployment plugin, replace the InferenceServer plugin's module, or decorate a port's value.
"""

from collections.abc import Sequence

from maserve.cmd import embedded, serving
from maserve.cmd.wiring import Module


def options() -> Sequence[Module]:
    """Return the stock wiring of the embedded mode; invokes run in this order."""
    return (
        embedded.MACHINE,
        embedded.STORE,
        embedded.DATA_PLANE,
        embedded.PROCESSES,
        serving.RUNTIME,
        serving.DEPLOYMENT_STOCK_PLUGIN,
        serving.DEPLOYMENT,
        embedded.BACKENDS,
        embedded.MODEL_CONFIG,
        embedded.ROUTING,
        embedded.ENDPOINTS,
        embedded.ARTIFACTS,
        serving.INFERENCE_SERVER_STOCK_PLUGIN,
        serving.INFERENCE_SERVER,
        embedded.INSPECTION,
        embedded.API_SERVER,
    )
