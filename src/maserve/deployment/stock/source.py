"""Where a model's files are: from the Model resource to a storage path (behaviour 6.5)."""

from maserve.base.errors import Error, Invalid, NotFound
from maserve.base.keys import Key
from maserve.conditions import find_condition, read_progress
from maserve.deployment.keys import current
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.site import Trouble
from maserve.deployment.stock.sites import list_placed
from maserve.wire import api, v2

ASSETS_PREPARED = "AssetsPrepared"
"""The condition that remembers the path of a rollout."""

SCHEMES = ("file", "s3", "gs", "az", "http", "https")

_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")

_PACKAGES = (
    v2.DEPLOYABLE_MODEL_PACKAGE_TYPE_INVALID,
    v2.DEPLOYABLE_MODEL_PACKAGE_TYPE_TRITON,
)


async def resolve_source(
    ports: Ports, deployment: v2.Deployment, revision: api.ResourceIdentifier
) -> str:
    """Return the storage path of a revision's Model.

    Raises `Trouble`: permanent when the Model is missing or cannot be served, else retryable.
    """
    try:
        model = await ports.store.get(v2.Model, model_key(deployment, revision))
    except NotFound as error:
        text = f"spec.desired_revision: {error}; create the Model or name another"
        raise Trouble("ModelNotFound", text, permanent=True) from error
    except Error as error:
        raise Trouble("ModelResolutionFailed", str(error)) from error
    return storage_path(model)


async def rollout_source(ports: Ports, deployment: v2.Deployment) -> str:
    """Return the path of the candidate: the one this rollout has begun with.

    A Model that is changed meanwhile must not bring two contents of one name onto the replicas.
    Raises as `resolve_source` where nothing was recorded.
    """
    prepared = find_condition(deployment.status.conditions, ASSETS_PREPARED)
    recorded = read_progress(prepared).source if prepared is not None else ""
    return recorded or await resolve_source(ports, deployment, deployment.status.candidate_revision)


async def current_source(ports: Ports, deployment: v2.Deployment) -> str:
    """Return the path of the current model: what another cluster serves, else what its Model says.

    Raises as `resolve_source`.
    """
    served = await find_served_path(ports, deployment)
    return served or await resolve_source(ports, deployment, deployment.status.current_revision)


async def find_served_path(ports: Ports, deployment: v2.Deployment) -> str:
    """Return where the current model was loaded from, empty when no cluster that answers has it."""
    for site in await list_placed(ports, deployment):
        try:
            entry = await site.find_entry(current(deployment))
        except Trouble:
            continue
        if entry is not None:
            return entry.storage_path
    return ""


async def find_change(ports: Ports, deployment: v2.Deployment) -> str:
    """Say how the current revision's Model differs from what is served; empty when it does not.

    Raises retryable `Trouble`.
    """
    served = await find_served_path(ports, deployment)
    if not served:
        return ""
    revision = deployment.status.current_revision
    what = f"Model {model_key(deployment, revision)}"
    try:
        wanted = await resolve_source(ports, deployment, revision)
    except Trouble as trouble:
        if not trouble.permanent:
            raise
        return f"{what} is of no use any more ({trouble.text}); served on from {served}"
    if wanted == served:
        return ""
    return (
        f"{what} names {wanted} now, and what is served was loaded from {served}: a Model is "
        "immutable, so nothing is reloaded. Put the old path back, and give the new content a "
        "Model of its own and name it in spec.desired_revision"
    )


def model_key(deployment: v2.Deployment, revision: api.ResourceIdentifier) -> Key:
    """Return the key of a revision's Model; no namespace means the Deployment's own."""
    return Key(revision.namespace or deployment.metadata.namespace, revision.name)


def storage_path(model: v2.Model) -> str:
    """Return the first artifact's path, with `/` appended to a folder.

    Raises permanent `Trouble`.
    """
    name = model.metadata.name
    if model.spec.package_type not in _PACKAGES:
        kind = v2.DeployableModelPackageType.Name(model.spec.package_type)
        text = f"Model {name}: spec.package_type must be TRITON or unset, is {kind}"
        raise Trouble("ModelPackageTypeMismatch", text, permanent=True)
    uri = next(iter(model.spec.deployable_artifact_uri), "")
    if not uri:
        text = f"Model {name}: spec.deployable_artifact_uri is empty"
        raise Trouble("NoDeployableArtifact", text, permanent=True)
    scheme = uri.partition("://")[0] if "://" in uri else ""
    if scheme not in SCHEMES:
        known = ", ".join(f"{known}://" for known in SCHEMES)
        text = f"Model {name}: spec.deployable_artifact_uri {uri!r} must start with one of {known}"
        raise Trouble("UnsupportedArtifactScheme", text, permanent=True)
    return uri if uri.endswith(("/", *_ARCHIVES)) else f"{uri}/"


async def check_artifact(ports: Ports, model: str, path: str) -> None:
    """Raise permanent `Trouble` when there is certainly nothing usable at the Model's `path`."""
    where = f"Model {model}: spec.deployable_artifact_uri"
    try:
        await ports.artifacts.check(path)
    except NotFound as error:
        text = f"{where}: {error}; put the model's files there or name another Model"
        raise Trouble("ArtifactNotFound", text, permanent=True) from error
    except Invalid as error:
        raise Trouble("ArtifactInvalid", f"{where}: {error}", permanent=True) from error
    except Error as error:
        raise Trouble("ModelResolutionFailed", f"{where}: {error}") from error
