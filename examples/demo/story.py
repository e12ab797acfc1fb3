"""The story: serve, roll out under load, refuse what is broken, delete, and leave nothing."""

import shutil
import time
from pathlib import Path

from examples.demo.claims import Claims, DemoError
from examples.demo.digits import Reading, ask_all, read_digits
from examples.demo.load import Load
from examples.demo.plane import ControlPlane
from examples.demo.screen import Screen
from examples.demo.traces import (
    CONTROL_PLANE,
    Process,
    count_kinds,
    list_files,
    list_processes,
    list_shared_memory,
)

from maserve.base.errors import Error
from maserve.testing.load_results import LoadSummary

EXAMPLES = Path(__file__).resolve().parents[1]
NAMESPACE = "digits"
SERVER = "digits-server"
DEPLOYMENT = "digits"
V1, V2, V3 = "digits-v1", "digits-v2", "digits-v3-broken"
WHY_V3_FAILS = "784 pixels"

RATE_PER_S = 100
AROUND_S = 3.0
"""How long the load goes on before and after what happens under it."""


class Story:
    """Each method is one act; they are told in order."""

    def __init__(self, plane: ControlPlane, screen: Screen, claims: Claims) -> None:
        self._plane = plane
        self._maserve = plane.commands
        self._screen = screen
        self._check = claims.check
        self._digits = read_digits(EXAMPLES / "models" / "heldout.csv")
        self._url = f"http://{plane.addresses.gateway}/{SERVER}/{DEPLOYMENT}/infer"
        self._first: Reading | None = None
        self._second: Reading | None = None
        self._memory: tuple[Path, ...] = ()

    def start(self) -> None:
        self._screen.title("1. A control plane on this machine")
        self._screen.command(f"maserve up --data-dir {self._plane.data} ...")
        self._screen.out(self._plane.start())
        write_manifests(self._plane.folder)

    def serve_first_version(self) -> None:
        self._screen.title("2. Two clusters with two replicas each, and the first model")
        self._maserve.run("apply -f manifests")
        self._maserve.run(f"wait InferenceServer {SERVER} -n {NAMESPACE} --for=state=SERVING")
        self._maserve.run("apply -f rollout-digits-v1.yaml")
        self._wait_for("ROLLOUT_COMPLETE")
        running = list_processes(self._plane.data)
        self._memory = list_shared_memory(running)
        self._screen.out(f"processes: {count_kinds(running)}")
        self._check("4 Triton replicas serve in 2 clusters", _count(running, "Triton") == 4)
        self._first = self._read_digits()
        self._check(f"{V1} answers through the gateway", self._only(self._first, V1))

    def roll_second_version_under_load(self) -> None:
        self._screen.title(f"3. From {V1} to {V2} under {RATE_PER_S} requests a second")
        summary = self._under_load(V2, "ROLLOUT_COMPLETE")
        self._check(f"no request failed: {summary.failed} of {summary.sent}", _is_clean(summary))
        answered = summary.answered_by
        self._check(
            f"{answered.get(V1, 0)} requests were answered by {V1}, {answered.get(V2, 0)} by {V2}",
            set(answered) == {V1, V2} and sum(answered.values()) == summary.sent,
        )
        self._second = self._read_digits()
        self._check(f"only {V2} answers now", self._only(self._second, V2))
        gain = self._second.accuracy_percent - (self._first or self._second).accuracy_percent
        self._check(f"it reads {gain:.1f} percentage points more digits right", gain > 0)

    def refuse_third_version(self) -> None:
        self._screen.title(f"4. {V3} does not load: it is rolled back, under the same load")
        summary = self._under_load(V3, "ROLLBACK_COMPLETE")
        status = self._maserve.get("deployment", DEPLOYMENT, NAMESPACE)["status"]
        reason = str(status.get("message", "")).strip().splitlines() or [""]
        self._screen.out(f"reason: {reason[0]}")
        self._check("the reason is the model's own words", WHY_V3_FAILS in reason[0])
        self._check(f"no request failed: {summary.failed} of {summary.sent}", _is_clean(summary))
        self._check(f"{V2} answered all of them", set(summary.answered_by) == {V2})
        again = self._read_digits()
        self._check(f"{V2} still answers, as well as before", again == self._second)

    def delete_everything(self) -> None:
        self._screen.title("5. Everything is deleted; replicas drain first")
        self._maserve.run("delete -f rollout-digits-v1.yaml")
        self._maserve.run("delete -f manifests")
        left = [each for each in list_processes(self._plane.data) if _is_of_a_replica(each)]
        self._check(f"no process of a replica is left: {count_kinds(left)}", not left)
        files = list_files(self._plane.data / "clusters")
        self._check(f"no file of a replica is left: {_names(files)}", not files)
        memory = [path for path in self._memory if path.exists()]
        self._check(f"no shared memory is left: {_names(memory)}", not memory)

    def stop(self) -> None:
        self._screen.title("6. The control plane stops")
        self._plane.stop()
        left = list_processes(self._plane.folder)
        self._check(f"no process is left: {count_kinds(left)}", not left)
        shutil.rmtree(self._plane.folder)
        self._check(
            f"no file is left: {self._plane.folder} is removed", not self._plane.folder.exists()
        )

    def _wait_for(self, stage: str) -> None:
        self._maserve.run(f"wait Deployment {DEPLOYMENT} -n {NAMESPACE} --for=stage={stage}")

    def _under_load(self, model: str, stage: str) -> LoadSummary:
        """Ask for another model and wait for the stage, with load before, meanwhile and after."""
        request = EXAMPLES / "request.json"
        with Load(self._url, request, RATE_PER_S) as load:
            time.sleep(AROUND_S)
            self._maserve.run(f"apply -f rollout-{model}.yaml")
            self._wait_for(stage)
            time.sleep(AROUND_S)
            summary = load.finish()
        self._screen.out(tell_load(summary))
        return summary

    def _read_digits(self) -> Reading:
        with self._screen.wait(f"asking for {len(self._digits)} held-out digits"):
            try:
                reading = ask_all(self._url, self._digits)
            except* Error as group:
                raise DemoError(f"the gateway does not answer: {group.exceptions[0]}") from group
        by = ", ".join(reading.answered_by)
        self._screen.out(f"{len(self._digits)} held-out digits, answered by {by}: {reading}")
        return reading

    def _only(self, reading: Reading, model: str) -> bool:
        return dict(reading.answered_by) == {model: len(self._digits)}


def write_manifests(folder: Path) -> None:
    """Put the example manifests into `folder`, with the place of the models filled in.

    `manifests/` has everything but the Deployment, of which there is one file for each model.
    """
    inside = folder / "manifests"
    inside.mkdir()
    for path in sorted((EXAMPLES / "manifests").glob("*.yaml")):
        text = path.read_text().replace("${EXAMPLES}", str(EXAMPLES))
        if path.name != "deployment.yaml":
            (inside / path.name).write_text(text)
            continue
        for model in (V1, V2, V3):
            (folder / f"rollout-{model}.yaml").write_text(
                text.replace(f"name: {V1}", f"name: {model}")
            )


def tell_load(summary: LoadSummary) -> str:
    """Return a load's figures in one or more lines."""
    by = ", ".join(f"{count} by {model}" for model, count in summary.answered_by.items())
    figures = (
        f"{summary.sent} requests sent in {summary.duration_s:.0f} s",
        f"{summary.new_connections} of them over a new connection",
        f"{summary.failed} failed",
        f"answered {by or 'by nobody'}",
    )
    latency = ", ".join(f"{name} {ms:g}" for name, ms in summary.latency_ms.items())
    lines = [f"load: {', '.join(figures)}", f"latency in ms: {latency}"]
    lines += [f"failed: {each.count} x {each.text}" for each in summary.failures]
    if summary.not_sent:
        lines.append(
            f"this side could not send {summary.not_sent}: {dict(summary.client_problems)}"
        )
    return "\n".join(lines)


def _is_clean(summary: LoadSummary) -> bool:
    return summary.sent > 0 and not (summary.failed or summary.wrong)


def _count(processes: tuple[Process, ...], kind: str) -> int:
    return sum(each.kind == kind for each in processes)


def _is_of_a_replica(process: Process) -> bool:
    return process.kind not in (CONTROL_PLANE, "Envoy")


def _names(paths: list[Path] | tuple[Path, ...]) -> str:
    return ", ".join(str(path) for path in paths[:5]) or "none"
