"""Where a cluster admits traffic for an inference server (extension guide, section 4)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One cluster's ingress; `scheme` is http or https."""

    host: str
    port: int
    scheme: str = "http"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"
