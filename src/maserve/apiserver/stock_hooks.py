"""The hooks every build has. Source: behaviour 1.10, 10.3, 10.5."""
# ruff: noqa: ARG002 - the hook points say what a hook is given, not what it needs

from maserve.apiserver.hooks import Extensions, NoHooks
from maserve.base.errors import Denied, Invalid, Problem
from maserve.base.keys import Key
from maserve.resource import Resource
from maserve.store import Store
from maserve.wire import api, v2

ENVIRONMENT = "michelangelo/environment"
IMMUTABLE = "michelangelo/Immutable"

_TEST_NAMESPACE = "ma-integration-test"


def stock_extensions(store: Store, *, environment: str) -> Extensions:
    """Return the stock hooks; `environment` is the label of Models that name none."""
    return Extensions(
        hooks={
            v2.Project: (ProjectHooks(),),
            v2.Deployment: (DeploymentHooks(store),),
            v2.Model: (ModelHooks(environment),),
            v2.Revision: (RevisionHooks(),),
        }
    )


class ProjectHooks(NoHooks[v2.Project]):
    """A project is a namespace: both have one name, and some names are not to be had.

    No namespace object is made: a namespace exists by being used.
    """

    async def before_create(self, resource: v2.Project, *, dry_run: bool) -> None:
        """Refuse a name that is not the namespace's, or that belongs to the system."""
        name, namespace = resource.metadata.name, resource.metadata.namespace
        if namespace == "default" or namespace.startswith("kube-"):
            raise Denied(f"namespace {namespace} is reserved: it cannot be a project")
        if name != namespace and namespace != _TEST_NAMESPACE:
            text = f"must be the namespace {namespace!r}: a project is a namespace"
            raise Invalid(Problem("metadata.name", text))


class DeploymentHooks(NoHooks[v2.Deployment]):
    """A Deployment serves one family of models for its whole life."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def before_create(self, resource: v2.Deployment, *, dry_run: bool) -> None:
        """Copy the family of the desired Model."""
        await self._take_family(resource)

    async def before_update(
        self, resource: v2.Deployment, stored: v2.Deployment, *, dry_run: bool
    ) -> None:
        """Copy the family of the desired Model, which must be the one it has been.

        An update that names none keeps it: manifests need not know of the family.
        """
        await self._take_family(resource)
        before, after = stored.spec.model_family, resource.spec.model_family
        if not before.name:
            return
        if after.name in ("", before.name) and not after.namespace:
            after.CopyFrom(before)
        if before != after:
            text = f"cannot change from {_name(before)} to {_name(after)}"
            raise Invalid(Problem("spec.model_family", text))

    async def _take_family(self, deployment: v2.Deployment) -> None:
        family = await self._find_family(deployment)
        if family is None:
            return
        given = deployment.spec.model_family
        if given.name and (given.name, given.namespace or family.namespace) != (
            family.name,
            family.namespace,
        ):
            text = f"is {_name(given)}, but the model's is {_name(family)}"
            raise Invalid(Problem("spec.model_family", text))
        given.CopyFrom(family)

    async def _find_family(self, deployment: v2.Deployment) -> api.ResourceIdentifier | None:
        """Return the desired Model's family with its namespace; None if there is none to copy."""
        desired = deployment.spec.desired_revision
        if not desired.name:
            return None
        namespace = desired.namespace or deployment.metadata.namespace
        model = await self._store.find(v2.Model, Key(namespace, desired.name))
        if model is None or not model.spec.model_family.name:
            return None
        family = model.spec.model_family
        return api.ResourceIdentifier(name=family.name, namespace=family.namespace or namespace)


class ModelHooks(NoHooks[v2.Model]):
    """Every Model says which environment it is for."""

    def __init__(self, environment: str) -> None:
        self._environment = environment

    async def before_create(self, resource: v2.Model, *, dry_run: bool) -> None:
        """Add the default label if there is none."""
        self._label(resource)

    async def before_update(self, resource: v2.Model, stored: v2.Model, *, dry_run: bool) -> None:
        """Add the default label if there is none."""
        self._label(resource)

    def _label(self, model: v2.Model) -> None:
        if not model.metadata.labels.get(ENVIRONMENT):
            model.metadata.labels[ENVIRONMENT] = self._environment


class RevisionHooks(NoHooks[v2.Revision]):
    """A Revision that is marked as immutable stays what it is."""

    async def before_update(
        self, resource: v2.Revision, stored: v2.Revision, *, dry_run: bool
    ) -> None:
        """Refuse another spec, and taking the mark off."""
        if not _is_immutable(stored):
            return
        if resource.spec != stored.spec:
            raise Invalid(Problem("spec", "cannot be changed: the revision is immutable"))
        if not _is_immutable(resource):
            text = "cannot be taken off: the revision is immutable"
            raise Invalid(Problem(f"metadata.annotations[{IMMUTABLE}]", text))


def _is_immutable(resource: Resource) -> bool:
    return resource.metadata.annotations.get(IMMUTABLE) == "true"


def _name(identifier: api.ResourceIdentifier) -> str:
    return f"{identifier.namespace}/{identifier.name}".removeprefix("/")
