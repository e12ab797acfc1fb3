"""Modules: what is provided twice, decorated, missing, and in which order they are invoked."""

from collections.abc import AsyncIterator, Iterator
from typing import Protocol

import pytest

from maserve.base.errors import Error
from maserve.cmd.controllermgr import options
from maserve.cmd.modules import read_steps
from maserve.cmd.wiring import Module, WiringError, build_container, invoke_all


class Port:
    """A value that modules provide."""

    def __init__(self, name: str) -> None:
        self.name = name


class User:
    """A value made of another."""

    def __init__(self, port: Port) -> None:
        self.port = port


PORT = f"{Port.__module__}.Port"
"""How a message names it: many packages have a type of one name."""


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
        f"{PORT} is provided twice: by first (one) and by mine (another); remove one from the list "
        "or decorate the first"
    )


def test_a_given_value_that_a_module_provides_too_is_named() -> None:
    with pytest.raises(WiringError) as caught:
        build_container([Module(name="mine", provide=(one,))], {Port: Port("given")})
    assert str(caught.value) == (
        f"{PORT} is provided twice: by the values given and by mine (one); remove one from the "
        "list or decorate the first"
    )


async def test_decorators_replace_a_value_in_list_order() -> None:
    modules = [
        Module(name="mine", decorate=(louder,)),
        Module(name="a", provide=(user, one)),
        Module(name="more", decorate=(excited,)),
    ]

    container = build_container(modules)

    assert (await container.get(User)).port.name == "ONE!"


def no_port_is_provided(*needed_by: str) -> str:
    return f"no module in the list provides {PORT}, which is needed by {' and '.join(needed_by)}"


def test_everything_that_is_missing_is_named_with_who_needs_it() -> None:
    def start(port: Port) -> None:
        raise AssertionError(port)

    modules = [Module(name="a", provide=(user,)), Module(name="mine", invoke=(start,))]
    with pytest.raises(WiringError) as caught:
        build_container(modules, wanted=(Port,))
    assert str(caught.value) == no_port_is_provided(
        "a (user)", f"mine ({start.__qualname__})", "the program itself"
    )


def test_a_decorator_of_nothing_is_named() -> None:
    with pytest.raises(WiringError) as caught:
        build_container([Module(name="a", decorate=(louder,))])
    assert str(caught.value) == no_port_is_provided("a (louder)")


def test_a_decorator_that_does_not_take_what_it_makes_is_named() -> None:
    modules = [Module(name="a", provide=(one, user)), Module(name="mine", decorate=(user,))]
    with pytest.raises(WiringError) as caught:
        build_container(modules)
    assert (
        str(caught.value) == f"mine (user) decorates {User.__module__}.User but does not take one"
    )


async def test_a_value_of_another_type_names_who_made_it() -> None:
    def shout(_port: Port) -> Port:
        return "no port"  # type: ignore[return-value]  # that is the point

    container = build_container(
        [Module(name="a", provide=(one, user)), Module(name="mine", decorate=(louder, shout))]
    )
    with pytest.raises(WiringError) as caught:
        await container.get(User)
    assert str(caught.value) == f"mine ({shout.__qualname__}) made a str, not a {PORT}"


class Speaking(Protocol):
    """A port."""

    def speak(self) -> str: ...


class Dog:
    """Speaks."""

    def speak(self) -> str:
        return "woof"


class Mute:
    """Does not."""


async def test_what_has_the_members_of_a_protocol_is_of_its_type() -> None:
    def dog() -> Speaking:
        return Dog()

    container = build_container([Module(name="a", provide=(dog,))])

    assert (await container.get(Speaking)).speak() == "woof"


async def test_what_lacks_a_member_of_a_protocol_is_refused() -> None:
    def mute() -> Speaking:
        return Mute()  # type: ignore[return-value]  # that is the point

    container = build_container([Module(name="a", provide=(mute,))])

    with pytest.raises(WiringError, match=r"a \(.*mute\) made a Mute, not a .*Speaking"):
        await container.get(Speaking)


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


def silent():  # type: ignore[no-untyped-def]  # that is the point
    return Port("one")


def untyped(port) -> None:  # type: ignore[no-untyped-def]  # that is the point
    raise AssertionError(port)


def unknown(port: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821 - so is that
    raise AssertionError(port)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (Module(name="a", provide=(silent,)), "a (silent) does not say what it returns"),
        (Module(name="a", decorate=(silent,)), "a (silent) does not say what it returns"),
        (Module(name="a", provide=(untyped,)), "a (untyped) does not say of what type its port is"),
        (Module(name="a", invoke=(untyped,)), "a (untyped) does not say of what type its port is"),
        (
            Module(name="a", invoke=(unknown,)),
            "a (unknown) has a type that cannot be found: name 'Nowhere' is not defined",
        ),
        (Module(name="a", invoke=one), "a: invoke is a function, not a tuple"),  # type: ignore[arg-type]  # no comma
        (Module(name="a", invoke="one"), "a: invoke is a str, not a tuple"),  # type: ignore[arg-type]  # a name
        (Module(name="a", provide=(3,)), "a (3) is neither a function nor a class"),  # type: ignore[arg-type]  # a value
        ((), "entry 1 of the list is a tuple, not a Module"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_read_of_a_module_is_named(module: Module, text: str) -> None:
    with pytest.raises(WiringError) as caught:
        build_container([module])
    assert str(caught.value) == text


async def test_a_class_is_a_factory_of_itself() -> None:
    container = build_container([Module(name="a", provide=(one, User))])

    assert (await container.get(User)).port.name == "one"


class Bare:
    """Is made of nothing."""


async def test_a_class_without_a_constructor_is_made_of_nothing() -> None:
    container = build_container([Module(name="a", provide=(Bare,))])

    assert isinstance(await container.get(Bare), Bare)


class Cat(Speaking):
    """Inherits the port, and with it a constructor that takes anything."""

    def speak(self) -> str:
        return "meow"


async def test_a_class_that_inherits_its_port_is_made_of_nothing() -> None:
    container = build_container([Module(name="a", provide=(Cat,))])

    assert (await container.get(Cat)).speak() == "meow"


def test_values_that_need_each_other_are_named() -> None:
    def port(_user: User) -> Port:
        raise AssertionError

    with pytest.raises(WiringError) as caught:
        build_container([Module(name="a", provide=(port, user))])
    assert str(caught.value).startswith("the modules do not fit together: ")
    assert all(name in str(caught.value) for name in (PORT, f"{User.__module__}.User"))


def names() -> list[str]:
    return ["one"]


def by_name(names: list[str]) -> Port:
    return Port(names[0])


async def test_a_type_with_parameters_is_a_type_like_others() -> None:
    container = build_container([Module(name="a", provide=(names, by_name))])

    assert (await container.get(Port)).name == "one"


def test_a_type_with_parameters_is_named_with_them() -> None:
    with pytest.raises(WiringError, match=r"no module in the list provides list\[str\], which"):
        build_container([Module(name="a", provide=(by_name,))])


def test_the_stock_list_has_no_two_of_a_kind() -> None:
    provided = [step.makes for step in read_steps(options()).provide]

    assert len(provided) == len(set(provided))
    assert len({module.name for module in options()}) == len(options())
