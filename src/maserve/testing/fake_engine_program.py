"""A program with Triton's HTTP interface that loads in no time.

A script of the standard library only: `fake_engine_program.py PORT REPOSITORY`. A model is a
folder of the repository; one whose folder holds a file `fails` fails to load with that file's text.
"""

import json
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class FakeModels:
    """The state of the models of one engine."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._states: dict[str, tuple[str, str]] = {}

    def load(self, name: str) -> tuple[int, Any]:
        folder = self._repository / name
        if not folder.is_dir():
            return 400, {"error": f"failed to load '{name}', failed to poll from model repository"}
        broken = folder / "fails"
        if broken.exists():
            self._states[name] = ("UNAVAILABLE", broken.read_text())
            return 400, {"error": f"load failed for model '{name}'"}
        self._states[name] = ("READY", "")
        return 200, {}

    def unload(self, name: str) -> tuple[int, Any]:
        self._states[name] = ("UNAVAILABLE", "unloaded")
        return 200, {}

    def index(self) -> tuple[int, Any]:
        known = sorted({*self._states, *(path.name for path in self._repository.glob("*/"))})
        return 200, [self._row(name) for name in known]

    def is_ready(self, name: str) -> bool:
        return self._states.get(name, ("", ""))[0] == "READY"

    def _row(self, name: str) -> dict[str, str]:
        if name not in self._states:
            return {"name": name}
        state, reason = self._states[name]
        row = {"name": name, "version": "1", "state": state}
        return {**row, "reason": reason} if reason else row


def serve(port: int, models: FakeModels) -> None:
    """Answer on loopback until SIGTERM."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name = self.path.removeprefix("/v2/models/").removesuffix("/ready")
            health = self.path.startswith("/v2/health/")
            self._answer(200 if health or models.is_ready(name) else 400, {"name": name})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = self.path.strip("/").split("/")
            match parts:
                case ["v2", "repository", "index"]:
                    self._answer(*models.index())
                case ["v2", "repository", "models", name, "load"]:
                    self._answer(*models.load(name))
                case ["v2", "repository", "models", name, "unload"]:
                    self._answer(*models.unload(name))
                case ["v2", "models", name, "infer"] if models.is_ready(name):
                    self._answer(200, {"model_name": name, "outputs": []})
                case _:
                    self._answer(404, {"error": f"unknown {self.path}"})

        def log_message(self, *_: Any) -> None:
            """Say nothing: one line per probe helps nobody."""

        def _answer(self, status: int, value: Any) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ThreadingHTTPServer.daemon_threads = True
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        server.serve_forever(poll_interval=10)


if __name__ == "__main__":
    serve(int(sys.argv[1]), FakeModels(Path(sys.argv[2])))
