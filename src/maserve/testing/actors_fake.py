"""A condition actor that does as it was told, and one that knows when it is due."""

from maserve.base.errors import Error
from maserve.conditions import UNKNOWN
from maserve.wire import api, v2


class ScriptedActor:
    """Answers `sees` to Retrieve and `does` to Run; `calls` lists both, `given` the last input."""

    def __init__(
        self,
        type_: str,
        *,
        sees: "api.ConditionStatus | Error",
        does: "api.ConditionStatus | Error" = UNKNOWN,
        reason: str = "",
    ) -> None:
        self._type = type_
        self._sees = sees
        self._does = does
        self._reason = reason
        self.calls: list[str] = []
        self.given = api.Condition()

    @property
    def type(self) -> str:
        return self._type

    async def retrieve(self, _resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        self.calls.append("retrieve")
        self.given.CopyFrom(previous)
        return self._answer(previous, self._sees)

    async def run(self, _resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        self.calls.append("run")
        return self._answer(previous, self._does)

    def _answer(
        self, previous: api.Condition, said: "api.ConditionStatus | Error"
    ) -> api.Condition:
        if isinstance(said, Error):
            raise said
        previous.status = said
        previous.reason = self._reason
        return previous


class DueActor(ScriptedActor):
    """Also knows in how many seconds another look pays."""

    due_s: float | None = None

    def due_in_s(self, _resource: v2.Deployment, _condition: api.Condition) -> float | None:
        return self.due_s
