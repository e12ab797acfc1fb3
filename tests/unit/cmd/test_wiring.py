"""Modules: what is provided twice, decorated, missing, and in which order they are invoked."""

from collections.abc import AsyncIterator, Iterator

import pytest

from maserve.base.errors import Error
from maserve.cmd.controllermgr import options
from maserve.cmd.wiring import Module, WiringError, build_container, invoke_all, provided_type


class Port:
    """A value that modules provide."""

    def __init__(self, name: str) -> None:
        self.name = name


class User:
    """A value made of another."""

    def __init__(self, port: Port) -> None:
        self.port = port


def one() -> Port:
    return Port("one")


def another() -> Port:
    return Port("another")


def user(port: Port) -> User:
    return User(port)


def louder(port: Port) -> Port:
    return Port(port.name.upper())


def excited(port: Port) -> Port:
    return Port(f"{port.name}!")


async def test_values_are_made_once_and_given_by_type() -> None:
    container = build_container(
        [Module(name="a", provide=(user,)), Module(name="b", provide=(one,))]
    )

    made = await container.get(User)

    assert made.port is await container.get(Port)
    assert made.port.name == "one"


async def test_given_values_are_used_as_they_are() -> None:
    port = Port("given")
    container = build_container([Module(name="a", provide=(user,))], {Port: port})

    assert (await container.get(User)).port is port


def test_two_providers_of_one_type_are_both_named() -> None:
    modules = [Module(name="first", provide=(one,)), Module(name="mine", provide=(another,))]

    with pytest.raises(WiringError) as caught:
        build_container(modules)
    assert str(caught.value) == (
        "Port is provided twice: by first (one) and by mine (another); remove one from the list "
        "or decorate the first"
    )


def test_a_given_value_that_a_module_provides_too_is_named() -> None:
    with pytest.raises(WiringError) as caught:
        build_container([Module(name="mine", provide=(one,))], {Port: Port("given")})
    assert str(caught.value) == (
        "Port is provided twice: by the values given and by mine (one); remove one from the list "
        "or decorate the first"
    )


async def test_decorators_replace_a_value_in_list_order() -> None:
    modules = [
        Module(name="mine", decorate=(louder,)),
        Module(name="a", provide=(user, one)),
        Module(name="more", decorate=(excited,)),
    ]

    container = build_container(modules)

    assert (await container.get(User)).port.name == "ONE!"


def test_a_missing_provider_is_named() -> None:
    with pytest.raises(WiringError) as caught:
        build_container([Module(name="a", provide=(user,))])
    assert str(caught.value).startswith("the modules do not fit together: ")
    assert "Port" in str(caught.value)
    assert "user" in str(caught.value)


def test_a_decorator_of_nothing_is_named() -> None:
    with pytest.raises(WiringError, match="Port"):
        build_container([Module(name="a", decorate=(louder,))])


async def test_an_invoke_of_what_nobody_provides_is_named() -> None:
    def start(port: Port) -> None:
        raise AssertionError(port)

    modules = [Module(name="mine", invoke=(start,))]
    with pytest.raises(WiringError) as caught:
        await invoke_all(build_container(modules), modules)
    assert "mine" in str(caught.value)
    assert "start" in str(caught.value)
    assert "Port" in str(caught.value)


async def test_invokes_run_in_list_order_with_what_they_ask_for() -> None:
    seen: list[str] = []

    def first(port: Port) -> None:
        seen.append(f"first {port.name}")

    async def second(user: User) -> None:
        seen.append(f"second {user.port.name}")

    modules = [
        Module(name="z", provide=(user,), invoke=(first,)),
        Module(name="a", provide=(one,), invoke=(second, first)),
    ]
    await invoke_all(build_container(modules), modules)

    assert seen == ["first one", "second one", "first one"]


async def test_an_error_of_an_invoke_comes_through() -> None:
    class Own(Error):
        pass

    def start() -> None:
        raise Own

    modules = [Module(name="mine", invoke=(start,))]
    with pytest.raises(Own):
        await invoke_all(build_container(modules), modules)


async def test_values_with_a_lifetime_end_in_reverse_order() -> None:
    seen: list[str] = []

    async def port() -> AsyncIterator[Port]:
        yield Port("one")
        seen.append("port")

    def user_of(port: Port) -> Iterator[User]:
        yield User(port)
        seen.append("user")

    container = build_container([Module(name="a", provide=(port, user_of))])
    await container.get(User)
    await container.close()

    assert seen == ["user", "port"]


def test_a_factory_that_does_not_say_what_it_makes_is_named() -> None:
    def silent():  # type: ignore[no-untyped-def]  # that is the point
        return Port("one")

    with pytest.raises(WiringError, match="silent does not say what it returns"):
        provided_type(silent)


def test_a_class_is_a_factory_of_itself() -> None:
    assert provided_type(Port) is Port


def test_the_stock_list_has_no_two_of_a_kind() -> None:
    provided = [provided_type(factory) for module in options() for factory in module.provide]

    assert len(provided) == len(set(provided))
    assert len({module.name for module in options()}) == len(options())
