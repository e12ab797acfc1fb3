"""The documents keep up with the code: settings, commands, reasons, annotations, links."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import typer
import yaml

from maserve.base.errors import Invalid
from maserve.cmd.carried_over import CONTROLLER_MANAGER, ELSEWHERE, INFERENCE_SERVER
from maserve.cmd.main import build_program
from maserve.cmd.settings import parse_settings
from maserve.deployment.keys import FINALIZER
from maserve.deployment.notes import Note
from maserve.inferenceserver import FINALIZER as SERVER_FINALIZER
from maserve.inferenceserver import KNOWN_CLUSTERS
from maserve.inferenceserver.maker import MADE_BY
from maserve.resource import annotations
from maserve.wire import v2

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), ROOT / "examples" / "README.md"])
UNKNOWN = "noSuchKey"

KNOWN_HERE = re.compile(r"known here: (\w+(?:, \w+)*)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
COMMAND = re.compile(r"maserve ((?!\w+\.)[a-z]+(?:-[a-z]+)*)\b")
TARGET = re.compile(r"\bmake ([a-z]+)\b")
REASON = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-zA-Z]+)+")
NOT_COMMANDS = {"serves", "program", "is", "speaks"}
NOT_TARGETS = {"it", "sure"}


def read(path: str) -> str:
    return (ROOT / path).read_text()


def parse(text: str) -> None:
    parse_settings(
        text,
        data_dir=Path("/nowhere"),
        api_address="127.0.0.1:1",
        gateway_address="127.0.0.1:2",
        metrics_address="127.0.0.1:3",
        storage_variables={},
        keep_running=False,
    )


def setting_keys(path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield every key that can be set, found by asking for one that is not there."""
    value: Any = {UNKNOWN: 1}
    for part in reversed(path):
        value = {part: value}
    with pytest.raises(Invalid) as caught:
        parse(yaml.safe_dump(value))
    found = KNOWN_HERE.search(str(caught.value))
    if found is None:
        yield ".".join(path)
        return
    for name in found[1].split(", "):
        yield from setting_keys((*path, name))


def test_every_setting_is_in_the_table_and_nothing_else_is() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \|", read("docs/guide/settings.md"), re.MULTILINE)
    assert sorted(rows) == sorted(setting_keys())


def test_every_setting_that_belongs_elsewhere_is_on_the_page() -> None:
    text = read("docs/guide/settings.md")
    manager = {f"controllermgr.{name}" for name in CONTROLLER_MANAGER}
    keys = {*ELSEWHERE, *manager, *(f"inferenceServer.{name}" for name in INFERENCE_SERVER)}
    assert {key for key in keys if f"`{key}`" not in text} == set()


def test_example_of_the_settings_page_is_accepted() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", read("docs/guide/settings.md"), re.DOTALL)
    parse(example)


def commands() -> dict[str, click.Command]:
    """Return the program's commands."""
    group = typer.main.get_command(build_program())
    return dict(getattr(group, "commands"))  # noqa: B009 - typer's own group class


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_targets_of_a_page_exist(page: Path) -> None:
    text = page.read_text()
    inline = re.findall(r"`([^`\n]+)`", FENCED.sub("", text))
    code = "\n".join([*inline, *FENCED.findall(text)])
    targets = set(re.findall(r"^([a-z]+):", read("Makefile"), re.MULTILINE))
    assert set(COMMAND.findall(code)) - NOT_COMMANDS - set(commands()) == set()
    assert set(TARGET.findall(code)) - NOT_TARGETS - targets == set()


@pytest.mark.parametrize("page", ["README.md", "docs/reference/cli.md"])
def test_every_command_is_told_of(page: str) -> None:
    assert {name for name in commands() if f"maserve {name}" not in read(page)} == set()


def test_every_option_is_in_the_reference() -> None:
    options = {
        option
        for command in commands().values()
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("--") and option not in ("--help", "--filename", "--all-namespaces")
    }
    text = read("docs/reference/cli.md")
    short = {"--for": "--for=", "--output": "-o", "--watch": "-w", "--wait": "--no-wait"}
    assert {option for option in options if short.get(option, option) not in text} == set()


def reasons() -> set[str]:
    """Return the words of conditions and events: constants of the two stock plugins."""
    folders = ("deployment/stock", "inferenceserver/stock")
    events = ("deployment/events.py", "inferenceserver/events.py")
    source = ROOT / "src" / "maserve"
    paths = [path for folder in folders for path in (source / folder).rglob("*.py")]
    words: set[str] = set()
    for path in [*paths, *(source / event for event in events)]:
        words |= set(_words(ast.parse(path.read_text())))
    return words


def _words(tree: ast.Module) -> Iterator[str]:
    assigned = (node for node in ast.walk(tree) if isinstance(node, ast.Assign))
    exported = {
        constant.value
        for node in assigned
        for target in node.targets
        if isinstance(target, ast.Name) and target.id == "__all__"
        for constant in ast.walk(node.value)
        if isinstance(constant, ast.Constant)
    }
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    texts = (value for value in constants if isinstance(value, str) and value not in exported)
    yield from (text for text in texts if REASON.fullmatch(text))


def test_every_condition_and_reason_is_explained() -> None:
    text = read("docs/guide/rollout.md")
    assert sorted(word for word in reasons() if f"`{word}" not in text) == []


def test_every_annotation_and_finalizer_is_in_the_reference() -> None:
    values = {value for name, value in vars(annotations).items() if name.isupper()}
    spelled = {value for value in values if isinstance(value, str) and "." in value}
    text = read("docs/reference/annotations.md")
    wanted = spelled | {FINALIZER, SERVER_FINALIZER, KNOWN_CLUSTERS, MADE_BY}
    assert {value for value in wanted if value not in text} == set()


@pytest.mark.parametrize(
    ("heading", "enum"),
    [
        ("State of a Deployment", v2.DeploymentState),
        ("Stage of a Deployment", v2.DeploymentStage),
        ("State of an InferenceServer", v2.InferenceServerState),
    ],
)
def test_the_table_of_states_has_every_value_of_the_contract(heading: str, enum: Any) -> None:
    page = read("docs/guide/concepts.md")
    section = page.split(f"### {heading}\n")[1].split("\n#")[0]
    first = enum.Name(0).removesuffix("INVALID")
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(
        value.name.removeprefix(first) for value in enum.DESCRIPTOR.values
    )


def test_the_table_of_states_has_every_word_that_a_message_ends_with() -> None:
    page = read("docs/guide/concepts.md")
    assert [note for note in Note if f"`{note}: " not in page] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as the site and the forge make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    plain = (re.sub(r"[^\w -]", "", heading.lower()).strip() for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def broken_links(page: Path) -> Iterator[str]:
    for link in LINK.findall(FENCED.sub("", page.read_text())):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    text = read("mkdocs.yml")
    pages = [str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")]
    assert [page for page in pages if page not in text] == []


def test_every_decision_is_in_the_index_and_numbered_in_order() -> None:
    names = sorted(path.name for path in (DOCS / "adr").glob("0*.md"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))
    index = read("docs/adr/index.md")
    assert [name for name in names if f"({name})" not in index] == []


@pytest.mark.parametrize("page", sorted((DOCS / "adr").glob("0*.md")), ids=lambda page: page.stem)
def test_decision_has_its_four_parts(page: Path) -> None:
    headings = re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)
    assert headings == ["Context", "Decision", "What it costs", "Turned down"]


def test_architecture_tells_of_every_package() -> None:
    packages = [path.parent.name for path in (ROOT / "src" / "maserve").glob("*/__init__.py")]
    text = read("ARCHITECTURE.md")
    assert sorted(name for name in packages if f"**{name}**" not in text) == []
