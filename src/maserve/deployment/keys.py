"""Finalizer, stages and revisions of a Deployment (behaviour 1.4)."""

from maserve.base.keys import ModelName
from maserve.resource.annotations import PLACED_ON
from maserve.wire import api, v2

FINALIZER = "deployments.michelangelo.uber.com/finalizer"

ALERT_FIRED = "Alert fired"
DESIRED_CHANGED = "Desired model changed"
ROLLOUT_FAILED = "Rollout failed"

_TERMINAL = frozenset(
    {
        v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE,
        v2.DEPLOYMENT_STAGE_ROLLOUT_FAILED,
        v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE,
        v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED,
        v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE,
        v2.DEPLOYMENT_STAGE_CLEAN_UP_FAILED,
    }
)

_CLEANUP = frozenset(
    {
        v2.DEPLOYMENT_STAGE_CLEAN_UP_IN_PROGRESS,
        v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE,
        v2.DEPLOYMENT_STAGE_CLEAN_UP_FAILED,
    }
)


def is_terminal(stage: v2.DeploymentStage) -> bool:
    """Tell whether the stage is one of the three COMPLETE or three FAILED ones."""
    return stage in _TERMINAL


def is_cleanup(stage: v2.DeploymentStage) -> bool:
    return stage in _CLEANUP


def same_revision(one: api.ResourceIdentifier, other: api.ResourceIdentifier) -> bool:
    """Tell whether two revisions are equal: name and namespace match; unset equals unset."""
    return (one.name, one.namespace) == (other.name, other.namespace)


def desired(deployment: v2.Deployment) -> ModelName:
    """Return the model a user wants, empty when there is none (behaviour 1.1)."""
    return ModelName(deployment.spec.desired_revision.name)


def candidate(deployment: v2.Deployment) -> ModelName:
    """Return the model being rolled out, or the last one tried."""
    return ModelName(deployment.status.candidate_revision.name)


def current(deployment: v2.Deployment) -> ModelName:
    """Return the model of the last completed rollout, empty before the first."""
    return ModelName(deployment.status.current_revision.name)


def server_name(deployment: v2.Deployment) -> str:
    """Return the InferenceServer on which this Deployment is served.

    Where it has been placed, until a rollout has made another place; else what the spec says.
    """
    placed = deployment.metadata.annotations.get(PLACED_ON, "")
    return placed or deployment.spec.inference_server.name


def has_other_target(deployment: v2.Deployment) -> bool:
    """Tell whether it is placed on an inference server and the spec wants another type of target.

    Nobody here knows when that other target serves: the place is cleaned up first.
    """
    placed = deployment.metadata.annotations.get(PLACED_ON, "")
    return bool(placed) and not is_for_server(deployment)


def is_for_server(deployment: v2.Deployment) -> bool:
    """Tell whether the spec's target is an InferenceServer, which it is by default."""
    spec = deployment.spec
    wants_type = spec.definition.type if spec.HasField("definition") else None
    return wants_type in (None, v2.TARGET_TYPE_INFERENCE_SERVER)


def stage_name(stage: v2.DeploymentStage) -> str:
    return v2.DeploymentStage.Name(stage)
