"""Write `src/maserve/wire/descriptors.binpb` and the type stubs beside it from `proto/`.

Run from the repository root. With `--check` nothing is written, and the exit status is 1 if what
is committed differs from what would be written.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from wire_stubs import build_stubs

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
WIRE = ROOT / "src" / "maserve" / "wire"
# Nothing imports these, but clients put them into Any, lists match on them.
EXTRA = (
    "google/protobuf/wrappers.proto",
    "google/protobuf/struct.proto",
    "google/protobuf/empty.proto",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, tell if stale")
    check = parser.parse_args().check
    stale = {path: made for path, made in build().items() if not _is_same(path, made)}
    for path, made in stale.items():
        print(f"{'stale' if check else 'write'} {path.relative_to(ROOT)}")
        if not check:
            path.write_bytes(made)
    return 1 if check and stale else 0


def build() -> dict[Path, bytes]:
    """Return the content of every generated file."""
    compiled = _compile()
    stubs = build_stubs(FileDescriptorSet.FromString(compiled).file)
    outputs = {WIRE / f"{module}.pyi": text.encode() for module, text in stubs.items()}
    return {WIRE / "descriptors.binpb": compiled, **outputs}


def _compile() -> bytes:
    """Compile every .proto with its imports; the order is protoc's, dependencies first."""
    google = Path(grpc_tools.__file__).parent / "_proto"
    sources = sorted(str(path.relative_to(PROTO)) for path in PROTO.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "set.binpb"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}", f"-I{google}"]
        command += ["--include_imports", f"--descriptor_set_out={output}", *EXTRA, *sources]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        return output.read_bytes()


def _is_same(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


if __name__ == "__main__":
    sys.exit(main())
