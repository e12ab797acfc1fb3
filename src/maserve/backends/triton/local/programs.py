"""The two programs of a replica: what they are called and how they are started. Touches nothing."""

import hashlib

from maserve.backends.triton.local.engine import Command, EngineLaunch, ModelSyncLaunch
from maserve.backends.triton.local.parts import LocalTritonParts, ReplicaPaths
from maserve.backends.triton.local.state import ReplicaRecord
from maserve.host import LOOPBACK, Program

PROGRAMS = "triton/"
"""All programs and port owners of this backend begin like this."""


def program_names(record: ReplicaRecord) -> tuple[str, str]:
    """Return the names of engine and model-sync; the engine's also owns the ports."""
    prefix = f"{PROGRAMS}{record.cluster}/{record.key}/{record.name}"
    return f"{prefix}/engine", f"{prefix}/model-sync"


def shm_prefix(paths: ReplicaPaths) -> str:
    """Return what the engine's shared memory is called: unique to the replica on this machine."""
    return f"maserve-{hashlib.sha256(str(paths.home).encode()).hexdigest()[:16]}-"


def engine_url(record: ReplicaRecord) -> str:
    """Return where the engine answers. The record has ports."""
    return f"http://{LOOPBACK}:{record.ports[0]}"


def build_engine_program(
    record: ReplicaRecord, paths: ReplicaPaths, parts: LocalTritonParts
) -> Program:
    """Return the engine's program. The record has ports, the engine is prepared."""
    http, grpc, metrics = record.ports
    launch = EngineLaunch(
        http_port=http,
        grpc_port=grpc,
        metrics_port=metrics,
        repository=paths.models,
        shm_prefix=shm_prefix(paths),
    )
    command = parts.engine.command(launch)
    return Program(
        name=program_names(record)[0],
        argv=command.argv,
        env=command.env,
        cwd=paths.home,
        log=paths.engine_log,
    )


def build_modelsync_program(
    record: ReplicaRecord, paths: ReplicaPaths, parts: LocalTritonParts
) -> Program:
    """Return model-sync's program. The record has ports."""
    launch = ModelSyncLaunch(
        replica=record.name,
        cluster=record.cluster,
        key=record.key,
        config=parts.folder.model_config(record.cluster, record.key),
        repository=paths.models,
        cache=parts.folder.model_cache(record.cluster, record.key),
        triton_url=engine_url(record),
        triton_grpc=f"{LOOPBACK}:{record.ports[1]}",
        readiness=paths.readiness,
        status=paths.sync_status,
    )
    command: Command = parts.modelsync(launch)
    return Program(
        name=program_names(record)[1],
        argv=command.argv,
        env=command.env,
        cwd=paths.home,
        log=paths.modelsync_log,
    )
