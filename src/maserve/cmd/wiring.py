"""Wiring is a list: modules provide values, decorate them, and run functions at start.

The rules are those of the guide's fx options: two providers of one type fail at start with both
named, a decorator replaces a value given the old one, invokes run in list order. dishka is the
container.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_origin, get_type_hints

from dishka import AsyncContainer, Provider, Scope, make_async_container
from dishka.exception_base import DishkaError

from maserve.base.errors import Error


class WiringError(Error):
    """The list of modules does not make a control plane.

    The sentence names the modules and types.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One entry of the list.

    `provide`: callables whose return type says what they make (an async generator's item type for
    values with a lifetime), each made once. `decorate`: callables that take a value of their return
    type, and whatever else they need. `invoke`: called in order after everything is wired.
    """

    name: str
    provide: Sequence[Callable[..., Any]] = ()
    decorate: Sequence[Callable[..., Any]] = ()
    invoke: Sequence[Callable[..., Any]] = ()


def build_container(
    modules: Sequence[Module], values: Mapping[type[Any], object] | None = None
) -> AsyncContainer:
    """Wire the modules; `values` are given as they are, by type. Raises `WiringError`."""
    given = dict(values or {})
    _refuse_duplicates(modules, given)
    provider = Provider(scope=Scope.APP)
    for kind in given:
        provider.from_context(provides=kind, scope=Scope.APP)
    for module in modules:
        for factory in module.provide:
            provider.provide(factory)
    decorating = Provider(scope=Scope.APP)
    for module in modules:
        for decorator in module.decorate:
            decorating.decorate(decorator)
    try:
        return make_async_container(provider, decorating, context=given)
    except DishkaError as error:
        raise WiringError(f"the modules do not fit together: {error}") from error


async def invoke_all(container: AsyncContainer, modules: Sequence[Module]) -> None:
    """Call every module's functions in list order with the values they ask for by type.

    Raises `WiringError` for a value that no module provides.
    """
    for module in modules:
        for function in module.invoke:
            result = function(**await _arguments(container, module, function))
            if inspect.isawaitable(result):
                await result


def provided_type(factory: Callable[..., Any]) -> Any:
    """Return what a factory makes: its return type, or the item type of a generator."""
    if inspect.isclass(factory):
        return factory
    made = get_type_hints(factory).get("return")
    if made is None:
        raise WiringError(f"{factory.__qualname__} does not say what it returns")
    is_generator = inspect.isgeneratorfunction(factory) or inspect.isasyncgenfunction(factory)
    return get_args(made)[0] if is_generator and get_origin(made) is not None else made


async def _arguments(
    container: AsyncContainer, module: Module, function: Callable[..., Any]
) -> dict[str, Any]:
    hints = get_type_hints(function)
    hints.pop("return", None)
    try:
        return {name: await container.get(kind) for name, kind in hints.items()}
    except DishkaError as error:
        where = f"{module.name} ({function.__qualname__})"
        raise WiringError(f"{where} cannot be invoked: {error}") from error


def _refuse_duplicates(modules: Sequence[Module], given: Iterable[Any]) -> None:
    seen: dict[Any, str] = dict.fromkeys(given, "the values given")
    for module in modules:
        for factory in module.provide:
            made = provided_type(factory)
            where = f"{module.name} ({factory.__qualname__})"
            if made in seen:
                raise WiringError(
                    f"{getattr(made, '__name__', made)} is provided twice: by {seen[made]} and by "
                    f"{where}; remove one from the list or decorate the first"
                )
            seen[made] = where
