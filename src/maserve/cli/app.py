"""The commands, what they take, and nothing of what they do.

Exit codes: 0 done; 1 refused, failed or out of reach; 2 the wait took too long (the message has the
last state) or the command line itself is wrong; 130 interrupted.
"""

from typing import Annotated

import typer

import maserve
from maserve.base.keys import Key
from maserve.cli.api import Api, Outside
from maserve.cli.change import Deletion, apply_all, delete_all, delete_one
from maserve.cli.describe import render
from maserve.cli.documents import read_documents
from maserve.cli.get import Format, Query, follow, show
from maserve.cli.goals import parse_goal
from maserve.cli.logs import logs
from maserve.cli.options import (
    DEFAULT_API_ADDRESS,
    DEFAULT_GATEWAY_ADDRESS,
    DEFAULT_TIMEOUT,
    ApiAddress,
    DeploymentName,
    Files,
    GatewayAddress,
    InferenceServerName,
    KindWord,
    MaybeName,
    Name,
    Namespace,
    ReplicaName,
    Timeout,
)
from maserve.cli.outside import system_outside
from maserve.cli.predict import predict, read_request
from maserve.cli.restart import Restart, restart_replica
from maserve.cli.screen import Screen
from maserve.cli.session import CommandError, Exit, Session, of_command_line, session_of
from maserve.cli.wait import Wait, wait_for
from maserve.resource import Kind, Resource, decode, get_kind
from maserve.wire import ext


def _print_version(wanted: bool) -> None:
    if wanted:
        Screen().out(f"maserve {maserve.__version__}")
        raise typer.Exit


ShowVersion = Annotated[
    bool,
    typer.Option(
        "--version",
        is_eager=True,
        callback=_print_version,
        help="Show the version and exit.",
    ),
]


def build_app() -> typer.Typer:
    """Return the client commands over the real API server, gateway and clock."""
    return build_app_over(system_outside())


def build_app_over(outside: Outside) -> typer.Typer:
    """Return the client commands over `outside`; more commands may be added to the result."""
    app = typer.Typer(
        name="maserve",
        help="Serve models: declare servers and deployments, watch them, ask them.",
        epilog="Exit codes: 0 done, 1 failed, 2 wait timed out or wrong usage, 130 interrupted.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )

    @app.callback()
    def begin(context: typer.Context, *, version: ShowVersion = False) -> None:
        del version
        context.obj = Session(outside=outside, screen=Screen())

    commands = (
        (_apply, "apply"),
        (_get, "get"),
        (_describe, "describe"),
        (_delete, "delete"),
        (_wait, "wait"),
        (_predict, "predict"),
        (_logs, "logs"),
        (_restart_replica, "restart-replica"),
    )
    for command, name in commands:
        app.command(name)(command)
    return app


def _known(word: str) -> Kind:
    with of_command_line():
        return get_kind(word)


def _apply(
    context: typer.Context,
    *,
    filename: Files,
    namespace: Namespace = "default",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, store nothing.")
    ] = False,
    api_address: ApiAddress = DEFAULT_API_ADDRESS,
) -> None:
    """Create or update objects from manifests.

    Every manifest is read, and each of its fields checked, before the first object is written. An
    object that the API server refuses does not hold back the others.
    """
    session = session_of(context)

    async def work(api: Api) -> Exit:
        return await apply_all(api, session, documents, dry_run=dry_run)

    with session.telling_errors():
        documents = read_documents(filename, namespace)
    session.run(api_address, work)


def _get(
    context: typer.Context,
    kind: KindWord,
    name: MaybeName = "",
    *,
    namespace: Namespace = "default",
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Objects of all namespaces.")
    ] = False,
    output: Annotated[
        Format, typer.Option("--output", "-o", help="How to show them.")
    ] = Format.TABLE,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Go on and show every change.")
    ] = False,
    api_address: ApiAddress = DEFAULT_API_ADDRESS,
) -> None:
    """Show objects."""
    session = session_of(context)

    async def work(api: Api) -> Exit:
        if everywhere and name:
            raise CommandError("a name is in one namespace: give -n instead of -A", Exit.USAGE)
        query = Query(
            kind=_known(kind),
            namespace="" if everywhere else namespace,
            name=name,
            format=output,
        )
        return await (follow if watch else show)(api, session, query)

    session.run(api_address, work)


def _describe(
    context: typer.Context,
    kind: KindWord,
    name: Name,
    *,
    namespace: Namespace = "default",
    api_address: ApiAddress = DEFAULT_API_ADDRESS,
) -> None:
    """Tell why an object is where it is.

    Shows conditions, replicas with their models, routes and events.
    """
    session = session_of(context)

    async def work(api: Api) -> Exit:
        known = _known(kind).message
        view = await api.describe(known, Key(namespace, name))
        found: Resource = decode(known, view.object.value)
        for line in render(found, view, session.outside.clock.now()):
            session.screen.out(line)
        return Exit.OK

    session.run(api_address, work)


def _delete(
    context: typer.Context,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="The kind, unless -f is given.")] = "",
    name: Annotated[str, typer.Argument(metavar="NAME", help="The object's name.")] = "",
    *,
    filename: Files = [],  # noqa: B006 - typer copies it
    namespace: Namespace = "default",
    wait: Annotated[bool, typer.Option(help="Wait until the object is gone.")] = True,
    timeout: Timeout = DEFAULT_TIMEOUT,
    ignore_not_found: Annotated[
        bool, typer.Option("--ignore-not-found", help="A missing object is no error.")
    ] = False,
    api_address: ApiAddress = DEFAULT_API_ADDRESS,
) -> None:
    """Delete an object, or those of manifests.

    Manifests are deleted in the opposite order of their creation.
    """
    session = session_of(context)
    how = Deletion(wait=wait, timeout_s=timeout, ignore_missing=ignore_not_found)

    async def work(api: Api) -> Exit:
        if filename:
            return await delete_all(api, session, documents, how)
        return await delete_one(api, session, _known(kind), Key(namespace, name), how)

    with session.telling_errors():
        if bool(filename) == bool(kind) or bool(kind) != bool(name):
            raise CommandError("give either KIND and NAME or -f FILE", Exit.USAGE)
        documents = read_documents(filename, namespace) if filename else ()
    session.run(api_address, work)


def _wait(
    context: typer.Context,
    kind: KindWord,
    name: Name,
    *,
    goal: Annotated[
        str,
        typer.Option(
            "--for", metavar="GOAL", help="stage=…, state=…, condition=TYPE[=STATUS] or delete."
        ),
    ],
    namespace: Namespace = "default",
    timeout: Timeout = DEFAULT_TIMEOUT,
    api_address: ApiAddress = DEFAULT_API_ADDRESS,
) -> None:
    """Wait until an object is where it should be.

    Ends early when it cannot get there, with the reason.
    """
    session = session_of(context)

    async def work(api: Api) -> Exit:
        known = _known(kind)
        key = Key(namespace, name)
        with of_command_line():
            wanted = parse_goal(goal, known)
        wait = Wait(key=key, goal=wanted, timeout_s=timeout)
        with session.screen.progress(f"{known.name} {key}") as progress:
            await wait_for(api, session.outside, known, wait, progress)
        session.screen.out(f"{known.name} {key} is {wanted.phrase}")
        return Exit.OK

    session.run(api_address, work)


def _restart_replica(
    context: typer.Context,
    replica: ReplicaName,
    *,
    namespace: Namespace = "default",
    timeout: Timeout = DEFAULT_TIMEOUT,
    api_address: ApiAddress = DEFAULT_API_ADDRESS,
) -> None:
    """Replace one replica by another: that one is ready before the old one drains."""
    session = session_of(context)

    async def work(api: Api) -> Exit:
        restart = Restart(namespace=namespace, replica=replica, timeout_s=timeout)
        with session.screen.progress(f"replica {replica}") as progress:
            said = await restart_replica(api, session.outside, restart, progress)
        session.screen.out(said)
        return Exit.OK

    session.run(api_address, work)


def _predict(
    context: typer.Context,
    deployment: DeploymentName,
    *,
    filename: Annotated[
        str, typer.Option("--filename", "-f", metavar="FILE|-", help="A KServe-v2 request as JSON.")
    ],
    namespace: Namespace = "default",
    api_address: ApiAddress = DEFAULT_API_ADDRESS,
    gateway_address: GatewayAddress = DEFAULT_GATEWAY_ADDRESS,
) -> None:
    """Ask the model of a Deployment, through the gateway."""
    session = session_of(context)

    async def work(api: Api) -> Exit:
        body = read_request(filename)
        key = Key(namespace, deployment)
        return await predict(api, session, key, gateway=gateway_address, body=body)

    session.run(api_address, work)


def _logs(
    context: typer.Context,
    inference_server: InferenceServerName,
    *,
    namespace: Namespace = "default",
    cluster: Annotated[str, typer.Option(help="Only this cluster.")] = "",
    replica: Annotated[str, typer.Option(help="Only this replica.")] = "",
    process: Annotated[str, typer.Option(help="engine or model-sync; both when left out.")] = "",
    tail: Annotated[int, typer.Option(min=0, help="How many lines of each; 0: all.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with lines to come.")] = False,
    api_address: ApiAddress = DEFAULT_API_ADDRESS,
) -> None:
    """Show what the replicas of a server write."""
    session = session_of(context)
    request = ext.LogsRequest(
        namespace=namespace,
        inference_server=inference_server,
        cluster_id=cluster,
        replica=replica,
        process=process,
        tail_lines=tail,
        follow=follow,
    )

    async def work(api: Api) -> Exit:
        return await logs(api, session, request)

    session.run(api_address, work)
