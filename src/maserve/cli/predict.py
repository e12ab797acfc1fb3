"""Asking a deployed model, through the gateway as any caller does."""

import json

from maserve.base.errors import Unavailable
from maserve.base.keys import Key
from maserve.cli.api import Api
from maserve.cli.documents import called, read_text
from maserve.cli.fields import progress, serving_server
from maserve.cli.session import CommandError, Exit, Session
from maserve.host.http import Answer
from maserve.resource.names import discovery_path
from maserve.wire import v2


async def predict(api: Api, session: Session, key: Key, *, gateway: str, body: bytes) -> Exit:
    """Send one KServe-v2 request and print the answer."""
    deployment = await api.get(v2.Deployment, key)
    if not isinstance(deployment, v2.Deployment) or not deployment.spec.inference_server.name:
        raise CommandError(f"Deployment {key} names no InferenceServer, so nothing can be asked")
    path = discovery_path(serving_server(deployment), key.name)
    try:
        answer = await session.outside.post(f"http://{gateway}{path}/infer", body)
    except Unavailable as error:
        text = f"cannot reach the gateway at {gateway}: {error}; --gateway-address names another"
        raise CommandError(text) from error
    if answer.status != 200:
        raise CommandError(_refusal(answer, deployment))
    session.screen.out(json.dumps(answer.json(), indent=2))
    return Exit.OK


def read_request(file: str) -> bytes:
    """Read the request from a file or, for `-`, from stdin. Raises `CommandError`."""
    text = read_text(file)
    try:
        json.loads(text)
    except ValueError as error:
        raise CommandError(f"{called(file)} is not JSON: {error}") from error
    return text.encode()


def _refusal(answer: Answer, deployment: v2.Deployment) -> str:
    name, namespace = deployment.metadata.name, deployment.metadata.namespace
    said = f"HTTP {answer.status} {_said(answer)}".rstrip()
    if answer.status in (404, 503):
        next_step = f"`maserve describe deployment {name} -n {namespace}` tells more"
        return f"no model answered: {said}; the stage is {progress(deployment)}; {next_step}"
    server = serving_server(deployment)
    next_step = f"`maserve logs {server} -n {namespace} --process engine` may tell more"
    return f"the request was refused: {said}; mend the request, or {next_step}"


def _said(answer: Answer) -> str:
    try:
        body = json.loads(answer.body)
    except ValueError:
        return answer.text().strip()[:300]
    return str(body.get("error", body) if isinstance(body, dict) else body)[:300]
