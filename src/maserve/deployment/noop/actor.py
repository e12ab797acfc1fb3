"""A condition actor with nothing to do."""

from maserve.conditions import TRUE
from maserve.wire import api, v2


class NoopActor:
    """Is satisfied at first sight. Keeps no time: a step that does nothing has no moment."""

    def __init__(self, type_: str) -> None:
        self._type = type_

    @property
    def type(self) -> str:
        return self._type

    async def retrieve(self, _resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        previous.status = TRUE
        return previous

    async def run(self, _resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        return previous
