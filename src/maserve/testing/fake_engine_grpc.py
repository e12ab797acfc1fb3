"""The fake engine with a gRPC door for loads, as the real model-sync needs it.

A program: `python -m maserve.testing.fake_engine_grpc HTTP_PORT GRPC_PORT REPOSITORY`.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

from maserve.testing.fake_engine_program import FakeModels, serve

SERVICE = "inference.GRPCInferenceService"


def open_door(port: int, models: FakeModels) -> grpc.Server:
    """Answer load calls on loopback; the model's name is the request's second field."""

    def load(request: bytes, context: grpc.ServicerContext) -> bytes:
        name = request[2 : 2 + request[1]].decode()
        status, answer = models.load(name)
        if status != 200:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(answer["error"]))
        return b""

    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(load)
    server = grpc.server(ThreadPoolExecutor(max_workers=2))
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(SERVICE, {"RepositoryModelLoad": handler})]
    )
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server


def main() -> None:
    """Serve until SIGTERM."""
    models = FakeModels(Path(sys.argv[3]))
    door = open_door(int(sys.argv[2]), models)
    try:
        serve(int(sys.argv[1]), models)
    finally:
        door.stop(grace=None)


if __name__ == "__main__":
    main()
