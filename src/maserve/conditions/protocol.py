"""The building block of both controllers: an ordered list of condition actors.

Source: extension guide, section 1. Python spelling: `retrieve`, `run`, `type`.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable

from google.protobuf.message import Message

from maserve.wire import api

T_contra = TypeVar("T_contra", bound=Message, contravariant=True)


class ConditionActor(Protocol[T_contra]):
    """Owns the one condition whose type is `type`."""

    @property
    def type(self) -> str:
        """The condition's type; distinct within a plugin."""
        ...

    async def retrieve(self, resource: T_contra, previous: api.Condition) -> api.Condition:
        """Look: tell how the step stands. Idempotent, without side effects, called on every pass.

        `previous` is the actor's own copy; it may be changed and returned. An error raised ends the
        reconcile as terminal: report what a retry may clear as UNKNOWN instead.
        """
        ...

    async def run(self, resource: T_contra, previous: api.Condition) -> api.Condition:
        """Act: do the step's work. UNKNOWN or TRUE: looked at again; FALSE: failed, stop."""
        ...


class Plugin(Protocol[T_contra]):
    """An ordered list of actors and where their conditions live in the resource."""

    @property
    def actors(self) -> Sequence[ConditionActor[T_contra]]:
        """The steps, in order."""
        ...

    def conditions(self, resource: T_contra) -> Sequence[api.Condition]:
        """Return the resource's conditions."""
        ...

    def put_condition(self, resource: T_contra, condition: api.Condition) -> None:
        """Replace the condition of the same type in place, or append it."""
        ...


@runtime_checkable
class Timed(Protocol[T_contra]):
    """What an actor adds when it knows when its step will be due, so that nobody polls for it."""

    def due_in_s(self, resource: T_contra, condition: api.Condition) -> float | None:
        """Return the seconds until another look pays, None when only an event tells."""
        ...
