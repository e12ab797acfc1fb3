"""What a plugin of somebody else may do to the controllers, and what it may not."""

from maserve.base.errors import Denied, Unavailable, Unsupported
from maserve.conditions import UNKNOWN, ActorList
from maserve.deployment import Conditions, ObservabilityContext, RequestContext
from maserve.deployment.noop import NoopPlugin
from maserve.deployment.noop.actor import NoopActor
from maserve.runtime import After
from maserve.testing.actors_fake import ScriptedActor
from maserve.testing.builders import DEPLOYMENT, a_condition, a_deployment
from maserve.testing.control_rig import ControlRig
from maserve.wire import v2


class Custom(NoopPlugin):
    """Has one actor everywhere, and a gate that may raise."""

    def __init__(self, actor: ScriptedActor, gate: Unsupported | None = None) -> None:
        self._actor = actor
        self._gate = gate

    async def health_check_gate(
        self, observability: ObservabilityContext, deployment: v2.Deployment
    ) -> bool:
        if self._gate is not None:
            raise self._gate
        return await super().health_check_gate(observability, deployment)

    async def rollout_plugin(self, _deployment: v2.Deployment) -> Conditions:
        return ActorList[v2.Deployment]([self._actor])

    def cleanup_plugin(self) -> Conditions:
        return ActorList[v2.Deployment]([self._actor])

    def steady_state_plugin(self) -> Conditions:
        return ActorList[v2.Deployment]([self._actor])


async def installed(rig: ControlRig, plugin: NoopPlugin) -> None:
    rig.registrar.register_plugin("TARGET_TYPE_INFERENCE_SERVER", "", plugin)
    await rig.store.create(a_deployment(desired="m1"))


async def test_a_gate_that_raises_judges_nothing(rig: ControlRig) -> None:
    actor = ScriptedActor("Waiting", sees=UNKNOWN)
    await installed(rig, Custom(actor, gate=Unsupported("no gate here")))
    await rig.settle_deployment()

    await rig.settle_deployment()

    deployment = await rig.deployment()
    assert deployment.status.stage == v2.DEPLOYMENT_STAGE_VALIDATION
    assert actor.calls.count("run") >= 2


async def test_an_actor_that_raises_fails_the_rollout_and_is_told(rig: ControlRig) -> None:
    await installed(rig, Custom(ScriptedActor("Odd", sees=Unsupported("cannot"))))

    await rig.settle_deployment()

    deployment = await rig.deployment()
    assert deployment.status.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE
    assert "Odd: cannot" in deployment.status.message
    assert "ReconciliationError" in rig.recorder.reasons


async def test_an_actor_that_raises_at_rest_is_not_looked_at_in_a_loop(rig: ControlRig) -> None:
    await installed(rig, NoopPlugin())
    await rig.settle_deployment()
    raising = Custom(ScriptedActor("Odd", sees=Unsupported("cannot")))
    rig.registrar.register_plugin("TARGET_TYPE_INFERENCE_SERVER", "", raising)

    assert await rig.settle_deployment() == After(60.0)

    deployment = await rig.deployment()
    assert deployment.status.stage == v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE


async def test_a_state_that_cannot_be_told_stays_and_the_rest_is_saved(rig: ControlRig) -> None:
    class Mute(NoopPlugin):
        async def get_state(
            self, _observability: ObservabilityContext, _deployment: v2.Deployment
        ) -> v2.DeploymentStatus:
            raise Unavailable("nobody answers")

    await installed(rig, Mute())

    await rig.settle_deployment()

    deployment = await rig.deployment()
    assert deployment.status.stage == v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
    assert deployment.status.state == v2.DEPLOYMENT_STATE_INVALID


async def test_a_cleanup_that_raises_keeps_the_finalizer_and_is_tried_again(
    rig: ControlRig,
) -> None:
    await installed(rig, NoopPlugin())
    await rig.settle_deployment()
    raising = Custom(ScriptedActor("Odd", sees=Unsupported("cannot")))
    rig.registrar.register_plugin("TARGET_TYPE_INFERENCE_SERVER", "", raising)
    await rig.store.delete(v2.Deployment, DEPLOYMENT)
    assert await rig.settle_deployment() == After(60.0)
    held = await rig.deployment()
    assert held.status.stage == v2.DEPLOYMENT_STAGE_CLEAN_UP_FAILED

    rig.registrar.register_plugin("TARGET_TYPE_INFERENCE_SERVER", "", NoopPlugin())
    await rig.settle_deployment()

    assert await rig.store.find(v2.Deployment, DEPLOYMENT) is None


async def test_the_noop_plugin_answers_all_nine_methods(rig: ControlRig) -> None:
    plugin, deployment = NoopPlugin(), a_deployment()
    context = RequestContext(deployment=deployment, logger=None)
    observability = ObservabilityContext(logger=None)

    await plugin.populate_message(context, deployment)
    await plugin.populate_deployment_logs(context, deployment)

    assert (await plugin.get_state(observability, deployment)).state == (
        v2.DEPLOYMENT_STATE_INITIALIZING
    )
    assert await plugin.health_check_gate(observability, deployment)
    assert [actor.type for actor in (await plugin.rollback_plugin(deployment)).actors] == [
        "NoopRollbackComplete"
    ]
    assert plugin.parse_stage(deployment) == deployment.status.stage
    assert await NoopActor("A").run(deployment, a_condition("A")) == a_condition("A")


async def test_details_that_are_refused_do_not_end_the_pass(rig: ControlRig) -> None:
    await rig.provide()
    await rig.settle_server()
    rig.backend.fail_next(Denied("forbidden"))

    await rig.settle_server()

    assert (await rig.server()).status.state == v2.INFERENCE_SERVER_STATE_SERVING
