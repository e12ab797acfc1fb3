"""Manifests that nobody can serve, applied with the program: what it says, and that nothing stays.

The other refusals of the API are in `test_refusals.py`; these go the whole way a user goes.
"""

import asyncio
import sys
from pathlib import Path

import pytest

from maserve.apiserver import ApiServer
from maserve.base.errors import Unavailable
from maserve.base.keys import Key
from maserve.client import Client
from maserve.resource import to_yaml
from maserve.store.sqlite import SqliteStore
from maserve.store.sqlite.database import Transaction
from maserve.testing.resources import a_deployment, a_model, a_project, an_inference_server
from maserve.wire import v2

LABEL = "a DNS label (lower-case letters, digits and inner dashes, at most 63 characters)"


async def maserve(api: ApiServer, *words: str, stdin: str) -> tuple[int, list[str], list[str]]:
    """Run the program; return its exit code and the lines it printed and complained."""
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "maserve.cmd.main",
        *words,
        f"--api-address={api.address}",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await program.communicate(stdin.encode())
    return program.returncode or 0, out.decode().splitlines(), err.decode().splitlines()


SOUND = to_yaml([an_inference_server()])

UNREADABLE = "---\n".join(
    (
        SOUND.replace("backendType:", "backendTyp:"),
        SOUND.replace("BACKEND_TYPE_TRITON", "BACKEND_TYPE_TRITTON"),
        SOUND.replace("kind: InferenceServer", "kind: InferenceSever"),
    )
)
WHY_UNREADABLE = [
    (
        "error: spec.backendTyp is no field of InferenceServerSpec; did you mean backendType? "
        "(stdin:9)"
    ),
    (
        "error: spec.backendType is no BackendType: 'BACKEND_TYPE_TRITTON'; known: "
        "BACKEND_TYPE_INVALID, BACKEND_TYPE_TRITON, BACKEND_TYPE_LLM_D, BACKEND_TYPE_DYNAMO, "
        "BACKEND_TYPE_TORCHSERVE (stdin:%d)"
    ),
    (
        "error: kind is an unknown kind 'InferenceSever'; known kinds: Project, ModelFamily, "
        "Model, InferenceServer, Deployment, Revision, Cluster, RayCluster (stdin:%d)"
    ),
    "error: nothing was changed",
]

TOO_LONG = to_yaml(
    [
        a_model("x" * 64),
        an_inference_server("x" * 46),
        an_inference_server(clusters=("c1", "x" * 64)),
        a_deployment("x" * 64),
    ]
)
WHY_TOO_LONG = [
    f"Model demo/{'x' * 64}: metadata.name must be {LABEL}: '{'x' * 64}'",
    (
        f"InferenceServer demo/{'x' * 46}: metadata.name must be at most 45 characters long, to "
        "leave room for names made of it: it has 46"
    ),
    (f"InferenceServer demo/is1: spec.cluster_targets[1].cluster_id must be {LABEL}: '{'x' * 64}'"),
    f"Deployment demo/{'x' * 64}: metadata.name must be {LABEL}: '{'x' * 64}'",
]


async def test_unknown_fields_values_and_kinds_are_named_with_their_line(
    api_server: ApiServer, client: Client
) -> None:
    code, out, err = await maserve(api_server, "apply", "-f", "-", stdin=UNREADABLE)

    lines = len(SOUND.splitlines()) + 1
    assert (code, out) == (1, [])
    assert err == [
        WHY_UNREADABLE[0],
        WHY_UNREADABLE[1] % (lines + 9),
        WHY_UNREADABLE[2] % (2 * lines + 2),
        WHY_UNREADABLE[3],
    ]
    assert await client.list(v2.InferenceServer) == ()


async def test_names_that_are_too_long_are_refused_with_what_is_allowed(
    api_server: ApiServer, client: Client
) -> None:
    code, out, err = await maserve(api_server, "apply", "-f", "-", stdin=TOO_LONG)

    assert (code, out) == (1, [])
    assert [line.partition(": ")[2].partition(": ")[2] for line in err] == WHY_TOO_LONG
    assert await client.list(v2.Model) == ()
    assert await client.list(v2.InferenceServer) == ()
    assert await client.list(v2.Deployment) == ()


async def test_one_document_that_cannot_be_read_keeps_all_of_a_file_out(
    api_server: ApiServer, client: Client
) -> None:
    text = f"{to_yaml([a_model()])}---\n{SOUND.replace('backendType:', 'backendTyp:')}"

    code, out, err = await maserve(api_server, "apply", "-f", "-", stdin=text)

    assert (code, out) == (1, [])
    assert err[-1] == "error: nothing was changed"
    assert await client.list(v2.Model) == ()


async def test_of_a_file_only_the_refused_object_is_left_out(
    api_server: ApiServer, client: Client
) -> None:
    text = to_yaml([an_inference_server("x" * 46), a_model()])

    code, out, err = await maserve(api_server, "apply", "-f", "-", stdin=text)

    assert (code, out, len(err)) == (1, ["Model demo/m1 created"], 1)
    assert [each.metadata.name for each in await client.list(v2.Model)] == ["m1"]


async def test_a_bad_change_leaves_the_stored_object_as_it_was(
    api_server: ApiServer, client: Client
) -> None:
    project = await client.create(a_project())
    changed = a_project()
    changed.spec.tier = 9

    code, out, err = await maserve(api_server, "apply", "-f", "-", stdin=to_yaml([changed]))

    assert (code, out) == (1, [])
    assert err == ["error: stdin:1: Project demo/demo: spec.tier must be in the range [1,5]"]
    assert await client.get(v2.Project, Key("demo", "demo")) == project


async def test_a_file_that_is_not_there_is_named(api_server: ApiServer, tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"

    code, out, err = await maserve(api_server, "apply", "-f", str(path), stdin="")

    assert (code, out) == (1, [])
    assert err == [f"error: cannot read {path}: No such file or directory"]


async def test_a_deployment_may_come_before_what_it_names(
    api_server: ApiServer, client: Client
) -> None:
    code, _, err = await maserve(
        api_server, "apply", "-f", "-", stdin=to_yaml([a_deployment(inference_server="later")])
    )

    assert (code, err) == (0, [])
    (stored,) = await client.list(v2.Deployment)
    assert stored.spec.inference_server.name == "later"


async def test_what_the_server_itself_cannot_do_now_is_told_in_its_words(
    store: SqliteStore, client: Client
) -> None:
    await store._database.read(_allow_no_growth)
    bulky = a_model()
    bulky.spec.description = "x" * 1_000_000
    with pytest.raises(Unavailable) as caught:
        await client.create(bulky)
    assert str(caught.value).startswith("failed to create API object. namespace: demo, name: m1: ")
    assert "store.db: the disk is full: free some space, nothing was written" in str(caught.value)


def _allow_no_growth(transaction: Transaction) -> None:
    (pages,) = transaction.connection.execute("PRAGMA page_count").fetchone()
    transaction.connection.execute(f"PRAGMA max_page_count = {pages}")
