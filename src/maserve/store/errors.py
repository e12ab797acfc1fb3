"""What a store says when its own files cannot be used."""

from maserve.base.errors import Error


class Unusable(Error):
    """The store's file is there but cannot be used; it was left as it was and someone must look."""

    def __init__(self, *, file: str, reason: str, remedy: str) -> None:
        super().__init__(file, reason, remedy)
        self.file = file
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.file} {self.reason}; {self.remedy}"
