"""What wakes a controller: changes of objects, and announcements of the ports."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from maserve.base.keys import Key
from maserve.base.signals import Signal
from maserve.resource.kinds import R
from maserve.resource.metadata import key_of
from maserve.runtime.cache import Index, Transition
from maserve.runtime.informer import Informer

T = TypeVar("T")

Enqueue = Callable[[Key], None]
"""Where keys go, such as `Controller.enqueue`."""


def enqueue_changed(informer: Informer[R], enqueue: Enqueue) -> Callable[[], None]:
    """Wake the controller of a kind for every object that changed; returns the way out."""
    return enqueue_related(informer, enqueue, lambda resource: (key_of(resource),))


def enqueue_related(
    informer: Informer[R], enqueue: Enqueue, related: Callable[[R], Iterable[Key]]
) -> Callable[[], None]:
    """Wake another kind's controller: `related` names, for a changed object, whom it concerns.

    Asked for the state before and the state after, so that an object that no longer refers to
    something wakes that too.
    """

    def handle(transition: Transition[R]) -> None:
        for key in _concerned(transition, related):
            enqueue(key)

    return informer.subscribe(handle)


def enqueue_announced(
    signal: Signal[T], enqueue: Enqueue, related: Callable[[T], Iterable[Key]]
) -> Callable[[], None]:
    """Wake a controller when a port announces that something moved; returns the way out."""

    def handle(value: T) -> None:
        for key in related(value):
            enqueue(key)

    return signal.subscribe(handle)


def keys_by(index: Index[Key, R]) -> Callable[[Key], tuple[Key, ...]]:
    """Return the mapping from a key to the objects that an index has for it.

    With an index of Deployments by their inference server's key, a signal about a server wakes
    every Deployment on it.
    """
    return lambda key: tuple(key_of(resource) for resource in index.list(key))


def _concerned(transition: Transition[R], related: Callable[[R], Iterable[Key]]) -> tuple[Key, ...]:
    states = [state for state in (transition.old, transition.new) if state is not None]
    keys = (key for state in states for key in related(state))
    return tuple(dict.fromkeys(keys))
