"""An artifact check that knows which files are missing or unreadable."""

from maserve.base.errors import Invalid, NotFound, Problem
from maserve.testing.faults import Faults


class FakeArtifacts(Faults):
    """Says that every artifact is there, but those in `missing`; those in `foreign` are no URI."""

    def __init__(self) -> None:
        super().__init__()
        self.missing: set[str] = set()
        self.foreign: set[str] = set()

    async def check(self, storage_path: str) -> None:
        self.read("check")
        if storage_path in self.missing:
            raise NotFound("artifact", storage_path)
        if storage_path in self.foreign:
            raise Invalid(Problem("storage_path", "cannot be read"))
