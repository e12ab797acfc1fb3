"""The model gate: what a Deployment serves is loaded on every replica.

Source: serving guide, Health Gates and Rollback; for a replica that starts, ADR 0008.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from maserve.backends import Backend, LoadReport, LoadState, is_loaded, summary
from maserve.base.clock import Clock
from maserve.base.errors import Error
from maserve.base.keys import Key
from maserve.gates.types import Answer, Verdict
from maserve.modelconfig import Entry, ModelConfigProvider, Phase
from maserve.wire import v2


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelGate:
    """Judges the serving entries of one Deployment, never another's.

    A replica whose process began less than `start_grace_s` ago and is not loaded yet is starting
    (after a crash, a scale-up, a node drain): it admits no traffic and the rollout is not its
    cause, so it is not judged as long as another replica serves the model.
    """

    model_config: ModelConfigProvider
    clock: Clock
    start_grace_s: float

    async def judge(
        self,
        backend: Backend,
        server: Key,
        targets: Sequence[v2.ClusterTarget],
        deployment_name: str,
    ) -> Verdict:
        """Return the first failure in cluster order.

        Trouble in asking is UNKNOWN, never a failure.
        """
        unknown: list[str] = []
        for target in targets:
            try:
                entries = await self._serving(server, target, deployment_name)
                for entry in entries:
                    report = await backend.get_model_status(server, target, entry.name)
                    if not is_acceptable(report, self.clock.now(), self.start_grace_s):
                        return Verdict(
                            answer=Answer.FAILED,
                            reason=f"model {entry.name} is not ready in cluster "
                            f"{target.cluster_id}: {summary(report)}",
                        )
            except Error as error:
                unknown.append(f"cluster {target.cluster_id}: {error}")
        if unknown:
            return Verdict(answer=Answer.UNKNOWN, reason="; ".join(unknown))
        return Verdict(answer=Answer.PASSED)

    async def _serving(
        self, server: Key, target: v2.ClusterTarget, deployment_name: str
    ) -> tuple[Entry, ...]:
        entries = await self.model_config.get_models_from_config(server, target)
        return tuple(
            entry
            for entry in entries
            if entry.deployment_name == deployment_name and entry.phase == Phase.SERVING
        )


def is_acceptable(report: LoadReport, now: datetime, start_grace_s: float) -> bool:
    """Tell whether a serving model's report lets a rollout go on (see `ModelGate`)."""
    if is_loaded(report):
        return True
    if not any(row.state is LoadState.READY for row in report.rows):
        return False
    return all(
        row.state is LoadState.READY
        or (
            row.state is LoadState.LOADING
            and (row.started is None or (now - row.started).total_seconds() < start_grace_s)
        )
        for row in report.rows
    )
