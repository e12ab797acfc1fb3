"""What can be set about the API server."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """How the API server listens.

    `address` is `host:port` or `unix:path`; only this machine may be named (`address.py`). Requests
    over `max_request_bytes` are refused; answers may be as large as they are. `stop_s` is how long
    calls may go on once it stops. `environment` is the label of Models that name none.
    """

    address: str = "127.0.0.1:15566"
    max_request_bytes: int = 4 * 1024 * 1024
    max_calls: int = 1000
    stop_s: float = 1.0
    environment: str = "unspecified"
