"""Wiring is a list: modules provide values, decorate them, and run functions at start.

The rules are those of the guide's fx options: two providers of one type fail at start with both
named, a decorator replaces a value given the old one, invokes run in list order. dishka is the
container.
"""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from dishka import AsyncContainer, Provider, Scope, make_async_container
from dishka.exception_base import DishkaError

from maserve.cmd.modules import (
    Module,
    Steps,
    WiringError,
    check_steps,
    fits,
    read_steps,
    type_name,
)

__all__ = ["Module", "WiringError", "build_container", "invoke_all"]


def build_container(
    modules: Sequence[Module],
    values: Mapping[type[Any], object] | None = None,
    *,
    wanted: Collection[type[Any]] = (),
) -> AsyncContainer:
    """Wire the modules; makes nothing yet. Raises `WiringError` with all that does not fit.

    `values` are given as they are, by type; `wanted` are the types that will be asked for besides
    what the modules' own functions ask for.
    """
    given = dict(values or {})
    steps = read_steps(modules)
    check_steps(steps, given, wanted)
    provider = Provider(scope=Scope.APP)
    decorating = Provider(scope=Scope.APP)
    checking = Provider(scope=Scope.APP)
    try:
        for kind in given:
            provider.from_context(provides=kind, scope=Scope.APP)
        for module in modules:
            for factory in module.provide:
                provider.provide(factory)
            for decorator in module.decorate:
                decorating.decorate(decorator)
        for kind, maker in _makers(steps).items():
            checking.decorate(_checked(kind, maker), provides=kind)
        return make_async_container(provider, decorating, checking, context=given)
    except DishkaError as error:
        raise WiringError(f"the modules do not fit together: {error}") from error


async def invoke_all(container: AsyncContainer, modules: Sequence[Module]) -> None:
    """Call every module's functions in list order with the values they ask for by type.

    Raises `WiringError` for a value of another type than its maker says.
    """
    functions = (function for module in modules for function in module.invoke)
    for function, step in zip(functions, read_steps(modules).invoke, strict=True):
        arguments = {name: await container.get(kind) for name, kind in step.needs.items()}
        result = function(**arguments)
        if inspect.isawaitable(result):
            await result


def _makers(steps: Steps) -> dict[Any, str]:
    """Return who has the last word on each type that a module provides."""
    makers = {step.makes: step.where for step in steps.provide}
    return makers | {step.makes: step.where for step in steps.decorate if step.makes in makers}


def _checked(kind: Any, maker: str) -> Callable[[Any], Any]:
    """Return a decorator that lets pass what is of the type."""

    def check(value: Any) -> Any:
        if not fits(value, kind):
            raise WiringError(f"{maker} made a {type(value).__name__}, not a {type_name(kind)}")
        return value

    check.__annotations__ = {"value": kind, "return": kind}
    return check
