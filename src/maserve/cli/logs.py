"""Showing what the processes of a server write."""

from maserve.cli.api import Api
from maserve.cli.session import Exit, Session
from maserve.wire import ext


async def logs(api: Api, session: Session, request: ext.LogsRequest) -> Exit:
    """Print the lines as they come, each with the replica and process it is from."""
    any_line = False
    async for answer in api.logs(request):
        any_line = True
        origin = f"{answer.replica}/{answer.process}" if answer.process else answer.replica
        session.screen.out(f"{origin} | {answer.line}")
    if not any_line:
        session.screen.note(f"no log lines of {request.inference_server}")
    return Exit.OK
