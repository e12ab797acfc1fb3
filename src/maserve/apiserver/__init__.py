"""The gRPC API over a store: the kinds' services, our own, health and reflection.

Generic over kinds: services are bound from their descriptors, rules are read from proto options.

**Invariants:** nothing is stored that breaks a rule or cannot be read back; every error is one row
of `errors.CODES`; listens on this machine only until callers are authenticated. Knows no
controller and no port but the store.
"""

from maserve.apiserver.address import resolve_address
from maserve.apiserver.errors import CODES, status_of
from maserve.apiserver.extension import EXT_SERVICE, Inspector
from maserve.apiserver.hooks import Extensions, Hooks, NoHooks, Validator
from maserve.apiserver.server import ApiServer
from maserve.apiserver.settings import ApiSettings
from maserve.apiserver.stock_hooks import (
    DeploymentHooks,
    ModelHooks,
    ProjectHooks,
    RevisionHooks,
    stock_extensions,
)

__all__ = [
    "ApiServer",
    "ApiSettings",
    "resolve_address",
    "Inspector",
    "EXT_SERVICE",
    "Hooks",
    "NoHooks",
    "Validator",
    "Extensions",
    "stock_extensions",
    "ProjectHooks",
    "DeploymentHooks",
    "ModelHooks",
    "RevisionHooks",
    "CODES",
    "status_of",
]
