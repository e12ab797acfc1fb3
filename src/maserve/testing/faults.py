"""What every fake port shares: a list of writes, and faults on request."""

from maserve.base.errors import Error


class Faults:
    """Base of a fake port.

    `fail_next` makes the next call fail once; `fail_reads` every read and `fail_writes` every write
    until it is set to None.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.fail_reads: Error | None = None
        self.fail_writes: Error | None = None
        self._next: list[Error] = []

    def fail_next(self, error: Error, times: int = 1) -> None:
        """Let the next `times` calls fail with `error`."""
        self._next += [error] * times

    def write(self, *call: str) -> None:
        """Note a write, or fail it."""
        self._raise_next()
        if self.fail_writes is not None:
            raise self.fail_writes
        self.calls.append(call)

    def read(self, _name: str) -> None:
        """Let a read through, or fail it."""
        self._raise_next()
        if self.fail_reads is not None:
            raise self.fail_reads

    def _raise_next(self) -> None:
        if self._next:
            raise self._next.pop(0)
