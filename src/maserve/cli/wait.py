"""Waiting for an object, driven by a watch."""

import asyncio
from dataclasses import dataclass

from maserve.base.durations import render_duration
from maserve.base.errors import Expired, NotFound, Unavailable
from maserve.base.keys import Key
from maserve.cli.api import Api, Outside
from maserve.cli.fields import progress
from maserve.cli.goals import Aspect, Goal
from maserve.cli.reach import dead_end, is_met
from maserve.cli.screen import Progress
from maserve.cli.session import CommandError, Exit
from maserve.client import Change, ChangeType
from maserve.resource import Kind, Resource

RETRY_S = 1.0
"""How soon a broken watch is begun again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Whom to wait for and how long. `uid` empty: the object that is there first."""

    key: Key
    goal: Goal
    timeout_s: float
    uid: str = ""


async def wait_for(api: Api, outside: Outside, kind: Kind, wait: Wait, show: Progress) -> None:
    """Return once the goal is met.

    Raises `CommandError` when it cannot be met (exit 1) or the time is over (exit 2), with the
    reason the object gives.
    """
    judge = _Judge(wait, kind.name, show)
    try:
        async with asyncio.timeout(wait.timeout_s):
            while not await _watch(api, kind, judge):
                await outside.clock.sleep(RETRY_S)
    except TimeoutError:
        raise CommandError(judge.late(), Exit.TIMEOUT) from None


async def _watch(api: Api, kind: Kind, judge: "_Judge") -> bool:
    """Watch until the goal is met; False when the watch broke after it had told something."""
    try:
        async for change in api.watch(kind.message, judge.wait.key):
            if judge.sees(change):
                return True
    except (Unavailable, Expired) as error:
        if not judge.told:
            raise
        judge.show(f"lost the API server, trying again ({error})")
    judge.begin()
    return False


class _Judge:
    """Follows one object through the changes of a watch and tells when its goal is met."""

    def __init__(self, wait: Wait, kind: str, show: Progress) -> None:
        self.wait = wait
        self.kind = kind
        self.name = f"{kind} {wait.key}"
        self.show = show
        self.last = "it was never seen"
        self.told = False
        self._uid = wait.uid
        self._present = False

    def begin(self) -> None:
        """Start over with a new watch, which tells of existing objects again."""
        self._present = False

    def late(self) -> str:
        """Return what to say when the time is over."""
        after, key = render_duration(self.wait.timeout_s), self.wait.key
        next_step = f"`maserve describe {self.kind} {key.name} -n {key.namespace}` tells more"
        return f"{self.name} is not {self.wait.goal.phrase} after {after}: {self.last}; {next_step}"

    def sees(self, change: Change[Resource]) -> bool:
        self.told = True
        if change.type is ChangeType.SYNCED:
            return not self._present and self._gone(was_there=bool(self._uid))
        if change.object is None:
            return False
        if change.type is ChangeType.DELETED:
            return self._is_ours(change.object) and self._gone(was_there=True)
        return self._at(change.object)

    def _at(self, resource: Resource) -> bool:
        if not self._is_ours(resource):
            return self._gone(was_there=True)
        self._uid = resource.metadata.uid
        self._present = True
        self.last = progress(resource)
        self.show(self.last)
        if is_met(self.wait.goal, resource):
            return True
        reason = dead_end(self.wait.goal, resource)
        if reason:
            raise CommandError(f"{self.name} cannot reach {self.wait.goal}: {reason}")
        return False

    def _is_ours(self, resource: Resource) -> bool:
        """Tell a re-created object of the same name from the one we wait for."""
        return self._uid in ("", resource.metadata.uid)

    def _gone(self, *, was_there: bool) -> bool:
        if self.wait.goal.aspect is Aspect.DELETE:
            return True
        if was_there:
            raise CommandError(f"{self.name} was deleted while waiting for {self.wait.goal}")
        raise NotFound(self.kind, self.wait.key)
