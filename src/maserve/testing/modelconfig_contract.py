"""What every ModelConfigProvider does, as tests."""

# ruff: noqa: S101 - assertions are what a contract is made of

import asyncio

import pytest

from maserve.base.errors import NotFound
from maserve.base.keys import Key, ModelName, ReplicaName
from maserve.modelconfig import Entry, ModelConfigProvider, Phase, promoted
from maserve.wire import v2

SERVER = Key("team", "demo")
EAST = v2.ClusterTarget(cluster_id="east")
WEST = v2.ClusterTarget(cluster_id="west")


def an_entry(name: str = "m1", deployment: str = "dep", phase: str = Phase.STAGED) -> Entry:
    """Build an entry; one in phase canary names a replica."""
    return Entry(
        name=ModelName(name),
        storage_path=f"s3://models/{name}/",
        deployment_name=deployment,
        phase=phase,
        canary_pod=ReplicaName("triton-demo-0" if phase == Phase.CANARY else ""),
    )


async def an_empty_config(provider: ModelConfigProvider, target: v2.ClusterTarget = EAST) -> None:
    """Make the server's config in one cluster."""
    await provider.create_model_config(SERVER, target, labels={"a": "b"}, annotations={})


class ModelConfigContract:
    """The fixture `provider` is the implementation, empty, with clusters `east` and `west`."""

    @pytest.fixture
    def provider(self) -> ModelConfigProvider:
        """Give the implementation under test."""
        raise NotImplementedError("the class that inherits the suite has a fixture `provider`")

    async def test_config_is_absent_before_it_is_created(
        self, provider: ModelConfigProvider
    ) -> None:
        assert not await provider.check_model_config_exists(SERVER, EAST)

    async def test_created_config_is_empty(self, provider: ModelConfigProvider) -> None:
        await an_empty_config(provider)
        assert await provider.check_model_config_exists(SERVER, EAST)
        assert await provider.get_models_from_config(SERVER, EAST) == ()

    async def test_creating_again_keeps_the_entries(self, provider: ModelConfigProvider) -> None:
        await an_empty_config(provider)
        await provider.add_model_to_config(SERVER, EAST, an_entry())
        await an_empty_config(provider)
        assert await provider.get_models_from_config(SERVER, EAST) == (an_entry(),)

    async def test_entries_keep_their_order(self, provider: ModelConfigProvider) -> None:
        await an_empty_config(provider)
        await provider.add_model_to_config(SERVER, EAST, an_entry("m2"))
        await provider.add_model_to_config(SERVER, EAST, an_entry("m1"))
        found = await provider.get_models_from_config(SERVER, EAST)
        assert found == (an_entry("m2"), an_entry("m1"))

    async def test_adding_replaces_the_same_entry_in_place(
        self, provider: ModelConfigProvider
    ) -> None:
        await an_empty_config(provider)
        await provider.add_model_to_config(SERVER, EAST, an_entry("m1", phase=Phase.CANARY))
        await provider.add_model_to_config(SERVER, EAST, an_entry("m2"))
        await provider.add_model_to_config(SERVER, EAST, promoted(an_entry("m1")))
        found = await provider.get_models_from_config(SERVER, EAST)
        assert found == (promoted(an_entry("m1")), an_entry("m2"))

    async def test_deployments_have_entries_of_their_own(
        self, provider: ModelConfigProvider
    ) -> None:
        await an_empty_config(provider)
        await provider.add_model_to_config(SERVER, EAST, an_entry(deployment="one"))
        await provider.add_model_to_config(SERVER, EAST, an_entry(deployment="two"))
        await provider.remove_model_from_config(SERVER, EAST, "one", ModelName("m1"))
        found = await provider.get_models_from_config(SERVER, EAST)
        assert found == (an_entry(deployment="two"),)

    async def test_removing_an_absent_entry_is_success(self, provider: ModelConfigProvider) -> None:
        await an_empty_config(provider)
        await provider.remove_model_from_config(SERVER, EAST, "dep", ModelName("m1"))
        assert await provider.get_models_from_config(SERVER, EAST) == ()

    async def test_entries_without_a_config_are_not_found(
        self, provider: ModelConfigProvider
    ) -> None:
        with pytest.raises(NotFound):
            await provider.get_models_from_config(SERVER, EAST)
        with pytest.raises(NotFound):
            await provider.add_model_to_config(SERVER, EAST, an_entry())
        with pytest.raises(NotFound):
            await provider.remove_model_from_config(SERVER, EAST, "dep", ModelName("m1"))
        assert not await provider.check_model_config_exists(SERVER, EAST)

    async def test_clusters_do_not_mix(self, provider: ModelConfigProvider) -> None:
        await an_empty_config(provider, EAST)
        await an_empty_config(provider, WEST)
        await provider.add_model_to_config(SERVER, EAST, an_entry())
        assert await provider.get_models_from_config(SERVER, WEST) == ()

    async def test_deleted_config_is_gone_and_deleting_again_is_success(
        self, provider: ModelConfigProvider
    ) -> None:
        await an_empty_config(provider)
        await provider.add_model_to_config(SERVER, EAST, an_entry())
        await provider.delete_model_config(SERVER, EAST)
        await provider.delete_model_config(SERVER, EAST)
        assert not await provider.check_model_config_exists(SERVER, EAST)

    async def test_config_made_again_starts_empty(self, provider: ModelConfigProvider) -> None:
        await an_empty_config(provider)
        await provider.add_model_to_config(SERVER, EAST, an_entry())
        await provider.delete_model_config(SERVER, EAST)
        await an_empty_config(provider)
        assert await provider.get_models_from_config(SERVER, EAST) == ()

    async def test_changes_at_the_same_time_are_all_kept(
        self, provider: ModelConfigProvider
    ) -> None:
        await an_empty_config(provider)
        wanted = [an_entry(f"m{number}") for number in range(8)]
        await asyncio.gather(
            *(provider.add_model_to_config(SERVER, EAST, entry) for entry in wanted)
        )
        found = await provider.get_models_from_config(SERVER, EAST)
        assert sorted(found, key=lambda entry: entry.name) == wanted
