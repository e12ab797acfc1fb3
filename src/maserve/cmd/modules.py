"""What a list of modules says of itself, and what is wrong with it, before anything is made."""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_origin, get_type_hints

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One function of a module: what it asks for, by parameter, and what it makes."""

    where: str
    needs: Mapping[str, Any]
    makes: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """All functions of a list, in its order."""

    provide: Sequence[Step]
    decorate: Sequence[Step]
    invoke: Sequence[Step]

    def all(self) -> tuple[Step, ...]:
        return (*self.provide, *self.decorate, *self.invoke)


def read_steps(modules: Sequence[Module]) -> Steps:
    """Read every function's types. Raises `WiringError` with all that cannot be read."""
    problems: list[str] = []
    found: dict[str, list[Step]] = {"provide": [], "decorate": [], "invoke": []}
    for number, module in enumerate(modules, start=1):
        if not isinstance(module, Module):
            problems.append(f"entry {number} of the list is a {_class_of(module)}, not a Module")
            continue
        for what, steps in found.items():
            _read_functions(module, what, steps, problems)
    _raise(problems)
    return Steps(**found)


def check_steps(steps: Steps, given: Collection[Any], wanted: Collection[Any]) -> None:
    """Raise `WiringError` with everything that does not fit.

    `given` are the types that are there without a module, `wanted` those that the program itself
    asks for.
    """
    makers: dict[Any, str] = dict.fromkeys(given, "the values given")
    problems = list(_twice(steps.provide, makers))
    problems += (
        f"{step.where} decorates {type_name(step.makes)} but does not take one"
        for step in steps.decorate
        if step.makes not in step.needs.values()
    )
    asking = [(kind, step.where) for step in steps.all() for kind in step.needs.values()]
    asking += [(kind, "the program itself") for kind in wanted]
    problems += _missing([(kind, where) for kind, where in asking if kind not in makers])
    _raise(problems)


def type_name(kind: Any) -> str:
    """Return a type with its module: many packages have a Plugin."""
    if isinstance(kind, type):
        return f"{kind.__module__}.{kind.__qualname__}"
    return str(kind)


def fits(value: object, kind: Any) -> bool:
    """Tell whether a value can be of a type: of the class, or with a Protocol's members."""
    if not inspect.isclass(kind):
        return value is not None
    if getattr(kind, "_is_protocol", False):
        return all(hasattr(value, name) for name in dir(kind) if not name.startswith("_"))
    return isinstance(value, kind)


def _read_functions(module: Module, what: str, steps: list[Step], problems: list[str]) -> None:
    functions = getattr(module, what)
    if callable(functions) or isinstance(functions, str) or not isinstance(functions, Sequence):
        problems.append(f"{module.name}: {what} is a {_class_of(functions)}, not a tuple")
        return
    for function in functions:
        where = f"{module.name} ({getattr(function, '__qualname__', function)})"
        try:
            steps.append(_read_step(where, what, function))
        except WiringError as error:
            problems.append(f"{where} {error}")


def _read_step(where: str, what: str, function: Any) -> Step:
    if not (inspect.isclass(function) or inspect.isroutine(function)):
        raise WiringError("is neither a function nor a class")
    hints = _hints(function.__init__ if inspect.isclass(function) else function)
    needs = dict(_needs(function, hints))
    makes = function if inspect.isclass(function) else _made(function, hints.get("return"))
    if what != "invoke" and makes in (None, type(None)):
        raise WiringError("does not say what it returns")
    return Step(where=where, needs=needs, makes=makes)


def _hints(function: Any) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except NameError as error:
        raise WiringError(f"has a type that cannot be found: {error}") from error


def _needs(function: Any, hints: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name not in hints:
            raise WiringError(f"does not say of what type its {name} is")
        yield name, hints[name]


def _made(function: Any, made: Any) -> Any:
    """Return what a function makes: its return type, or the item type of a generator."""
    is_generator = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    return get_args(made)[0] if is_generator and get_origin(made) is not None else made


def _twice(provided: Sequence[Step], makers: dict[Any, str]) -> Iterator[str]:
    """Note in `makers` who makes what first; tell of every second one."""
    for step in provided:
        if step.makes in makers:
            yield (
                f"{type_name(step.makes)} is provided twice: by {makers[step.makes]} and by "
                f"{step.where}; remove one from the list or decorate the first"
            )
        makers.setdefault(step.makes, step.where)


def _missing(asking: Sequence[tuple[Any, str]]) -> Iterator[str]:
    askers: dict[Any, list[str]] = {}
    for kind, where in asking:
        askers.setdefault(kind, []).append(where)
    for kind, by in askers.items():
        needed = f"which is needed by {' and '.join(by)}"
        yield f"no module in the list provides {type_name(kind)}, {needed}"


def _class_of(value: object) -> str:
    return type(value).__name__


def _raise(problems: Sequence[str]) -> None:
    if problems:
        raise WiringError("; ".join(problems))
