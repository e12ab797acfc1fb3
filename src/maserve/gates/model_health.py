"""The model gate: what a Deployment serves is loaded on every replica that is wanted.

Source: serving guide, Health Gates and Rollback; for a replica that starts, ADR 0008.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from maserve.backends import Backend, LoadReport, LoadState, ReplicaLoad, is_loaded, summary
from maserve.base.clock import Clock
from maserve.base.errors import Error
from maserve.base.keys import Key
from maserve.gates.types import Answer, Verdict, combined
from maserve.modelconfig import Entry, ModelConfigProvider, Phase
from maserve.wire import v2


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelGate:
    """Judges the serving entries of one Deployment, never another's.

    A replica that is not loaded yet is starting (after a crash, a scale-up, a node drain): it
    admits no traffic and the rollout is not its cause, so it is not judged for `start_grace_s` as
    long as another replica serves the model. The grace begins with the replica's process; for a
    replica that is missing, or whose start nobody knows, when a gate first saw it so.
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
        *,
        short_since: datetime | None,
    ) -> Verdict:
        """Return the first failure in cluster order.

        Trouble in asking is UNKNOWN, never a failure. `short_since` is when a gate first answered
        `is_short` without a break since, None when the last answer was not.
        """
        verdicts: list[Verdict] = []
        for target in targets:
            try:
                for entry in await self._serving(server, target, deployment_name):
                    report = await backend.get_model_status(server, target, entry.name)
                    verdicts.append(self._judge_report(report, target, short_since))
            except Error as error:
                text = f"cluster {target.cluster_id}: {error}"
                verdicts.append(Verdict(answer=Answer.UNKNOWN, reason=text))
        return combined(verdicts)

    def _judge_report(
        self, report: LoadReport, target: v2.ClusterTarget, short_since: datetime | None
    ) -> Verdict:
        now = self.clock.now()
        is_short = needs_patience(report)
        short_s = (now - short_since).total_seconds() if is_short and short_since else 0.0
        if is_acceptable(report, now, self.start_grace_s) and short_s < self.start_grace_s:
            return Verdict(answer=Answer.PASSED, is_short=is_short)
        where = f"model {report.model} is not ready in cluster {target.cluster_id}"
        reason = f"{where}: {summary(report)}"
        return Verdict(answer=Answer.FAILED, reason=reason, is_short=is_short)

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
    """Tell whether what is known of a serving model lets a rollout go on (see `ModelGate`)."""
    if is_loaded(report):
        return True
    if not any(row.state is LoadState.READY for row in report.rows):
        return False
    return all(_is_well_or_starting(row, now, start_grace_s) for row in report.rows)


def needs_patience(report: LoadReport) -> bool:
    """Tell whether a wanted replica is missing, or one that is not loaded has no known start."""
    return len(report.rows) < report.wanted or any(
        row.state is LoadState.LOADING and row.started is None for row in report.rows
    )


def _is_well_or_starting(row: ReplicaLoad, now: datetime, start_grace_s: float) -> bool:
    if row.state is not LoadState.LOADING:
        return row.state is LoadState.READY
    return row.started is None or (now - row.started).total_seconds() < start_grace_s
