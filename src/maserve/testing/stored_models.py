"""What tests put into an object store, whichever protocol it speaks, and see come out of it."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from maserve.artifacts import Progress

BUCKET = "models"


def build_objects() -> Mapping[str, bytes]:
    """Return a model as a prefix with its markers, one beside it, a lone file and an archive."""
    return {
        "m1/": b"",
        "m1/1/": b"",
        "m1/config.pbtxt": b'name: "m1"',
        "m1/1/model.py": b"code",
        "m10/1/model.py": b"of another model",
        "one.onnx": b"x",
        "m2.tar.gz": a_tar(),
    }


def a_tar() -> bytes:
    """Return a gzipped archive of a model below a folder of its own."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        info = tarfile.TarInfo("digits/1/model.py")
        info.size = 4
        tar.addfile(info, io.BytesIO(b"code"))
    return data.getvalue()


def list_files(folder: Path) -> list[str]:
    """Return the files below a folder, relative to it, in order."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def ignore_progress(progress: Progress) -> None: ...
