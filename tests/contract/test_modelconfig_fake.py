"""The fake model config keeps the contract."""

import pytest

from maserve.base.errors import Invalid, Problem
from maserve.base.keys import ClusterId, Key
from maserve.testing.modelconfig_contract import (
    EAST,
    SERVER,
    ModelConfigContract,
    an_empty_config,
    an_entry,
)
from maserve.testing.modelconfig_fake import FakeModelConfigProvider


class TestFakeModelConfigProvider(ModelConfigContract):
    @pytest.fixture
    def provider(self) -> FakeModelConfigProvider:
        return FakeModelConfigProvider()

    async def test_only_writes_that_change_something_are_announced(self) -> None:
        heard: list[tuple[Key, ClusterId]] = []
        provider = FakeModelConfigProvider(lambda key, cluster: heard.append((key, cluster)))
        await an_empty_config(provider)
        await provider.add_model_to_config(SERVER, EAST, an_entry())
        await provider.add_model_to_config(SERVER, EAST, an_entry())
        assert heard == [(SERVER, ClusterId("east"))] * 2

    async def test_broken_list_is_invalid(self, provider: FakeModelConfigProvider) -> None:
        await an_empty_config(provider)
        provider.broken[SERVER, ClusterId("east")] = Invalid(Problem("model-list.json", "is bad"))
        with pytest.raises(Invalid):
            await provider.get_models_from_config(SERVER, EAST)
