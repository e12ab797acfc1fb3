"""Plugins by target type and subtype (extension guide, section 2, Registration)."""

import pytest

from maserve.base.errors import Unsupported
from maserve.deployment.noop import NoopPlugin, register_noop_plugins
from maserve.deployment.registrar import SimpleRegistrar, find_plugin
from maserve.testing.builders import a_deployment
from maserve.wire import v2


def deployment_of(kind: "v2.TargetType", sub_type: str = "") -> v2.Deployment:
    deployment = a_deployment()
    deployment.spec.definition.type = kind
    deployment.spec.definition.sub_type = sub_type
    return deployment


def test_an_unset_definition_means_an_inference_server() -> None:
    registrar, plugin = SimpleRegistrar(), NoopPlugin()
    registrar.register_plugin("TARGET_TYPE_INFERENCE_SERVER", "", plugin)

    assert find_plugin(registrar, a_deployment()) is plugin


def test_a_definition_selects_by_type_and_subtype() -> None:
    registrar, plugin = SimpleRegistrar(), NoopPlugin()
    registrar.register_plugin("TARGET_TYPE_OFFLINE", "", NoopPlugin())
    registrar.register_plugin("TARGET_TYPE_OFFLINE", "nightly", plugin)

    assert find_plugin(registrar, deployment_of(v2.TARGET_TYPE_OFFLINE, "nightly")) is plugin


def test_the_last_registration_of_a_key_wins() -> None:
    registrar, last = SimpleRegistrar(), NoopPlugin()
    registrar.register_plugin("TARGET_TYPE_OFFLINE", "", NoopPlugin())
    registrar.register_plugin("TARGET_TYPE_OFFLINE", "", last)

    assert find_plugin(registrar, deployment_of(v2.TARGET_TYPE_OFFLINE)) is last


@pytest.mark.parametrize(
    ("deployment", "text"),
    [
        pytest.param(
            deployment_of(v2.TARGET_TYPE_SELF_HOSTED, "gpu"),
            "no plugin found for targetType=TARGET_TYPE_SELF_HOSTED, subType=gpu",
            id="named",
        ),
        pytest.param(
            a_deployment(),
            "no plugin found for targetType=TARGET_TYPE_INFERENCE_SERVER, subType=",
            id="default",
        ),
    ],
)
def test_an_unknown_key_is_refused_in_the_guides_words(
    deployment: v2.Deployment, text: str
) -> None:
    with pytest.raises(Unsupported) as caught:
        find_plugin(SimpleRegistrar(), deployment)

    assert str(caught.value) == text


@pytest.mark.parametrize("kind", [v2.TARGET_TYPE_OFFLINE, v2.TARGET_TYPE_MOBILE])
def test_the_noop_helper_registers_offline_and_mobile(kind: "v2.TargetType") -> None:
    registrar = SimpleRegistrar()

    register_noop_plugins(registrar)

    assert isinstance(find_plugin(registrar, deployment_of(kind)), NoopPlugin)


def test_the_noop_helper_registers_nothing_else() -> None:
    registrar = SimpleRegistrar()

    register_noop_plugins(registrar)

    with pytest.raises(Unsupported):
        find_plugin(registrar, a_deployment())
