"""How to reach object storage, and how much of it to take. Read once in `cmd`, passed in."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from maserve.base.errors import Invalid, Problem

_GIB = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """S3 and what speaks like it. No key and not `unsigned`: the machine's own role is used."""

    endpoint: str = ""
    region: str = "us-east-1"
    access_key_id: str = field(default="", repr=False)
    secret_access_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    allow_http: bool = False
    virtual_hosted: bool = False
    unsigned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GsSettings:
    """Google Cloud Storage. `credentials_file`: of a service account or application default."""

    endpoint: str = ""
    credentials_file: str = ""
    allow_http: bool = False
    unsigned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AzSettings:
    """Azure Blob Storage: one account for all `az://` URIs."""

    endpoint: str = ""
    account: str = ""
    account_key: str = field(default="", repr=False)
    sas_token: str = field(default="", repr=False)
    allow_http: bool = False
    unsigned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one artifact and of the calls that fetch it.

    `max_bytes` counts what is written: downloaded files, and unpacked ones on their own.
    """

    max_files: int = 20_000
    max_bytes: int = 100 * _GIB
    parallel_files: int = 4
    check_timeout_s: float = 10.0
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 60.0
    request_timeout_s: float = 6 * 3600.0
    retries: int = 3
    retry_window_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """Everything `Artifacts` needs to know."""

    s3: S3Settings = field(default_factory=S3Settings)
    gs: GsSettings = field(default_factory=GsSettings)
    az: AzSettings = field(default_factory=AzSettings)
    limits: Limits = field(default_factory=Limits)


def parse_storage_settings(
    variables: Mapping[str, str], limits: Limits | None = None
) -> StorageSettings:
    """Read the storage vendors' usual variables: `AWS_…`, `GOOGLE_…`, `AZURE_STORAGE_…`.

    A plain `http://` endpoint allows unencrypted traffic to it and nowhere else. Raises `Invalid`
    with every wrong variable.
    """
    problems: list[Problem] = []
    reader = _Reader(variables, problems)
    settings = StorageSettings(
        s3=_parse_s3(reader),
        gs=_parse_gs(reader),
        az=_parse_az(reader),
        limits=limits or Limits(),
    )
    if problems:
        raise Invalid(*problems)
    return settings


def storage_environment(settings: StorageSettings) -> dict[str, str]:
    """Return the variables that `parse_storage_settings` reads these settings from, limits aside.

    For the environment of a program, never for a command line: they hold secrets.
    """
    s3, gs, az = settings.s3, settings.gs, settings.az
    values = {
        "AWS_ENDPOINT_URL": s3.endpoint,
        "AWS_REGION": s3.region,
        "AWS_ACCESS_KEY_ID": s3.access_key_id,
        "AWS_SECRET_ACCESS_KEY": s3.secret_access_key,
        "AWS_SESSION_TOKEN": s3.session_token,
        "AWS_ALLOW_HTTP": _flag(s3.allow_http),
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": _flag(s3.virtual_hosted),
        "AWS_SKIP_SIGNATURE": _flag(s3.unsigned),
        "GOOGLE_BASE_URL": gs.endpoint,
        "GOOGLE_APPLICATION_CREDENTIALS": gs.credentials_file,
        "GOOGLE_ALLOW_HTTP": _flag(gs.allow_http),
        "GOOGLE_SKIP_SIGNATURE": _flag(gs.unsigned),
        "AZURE_STORAGE_ENDPOINT": az.endpoint,
        "AZURE_STORAGE_ACCOUNT_NAME": az.account,
        "AZURE_STORAGE_ACCOUNT_KEY": az.account_key,
        "AZURE_STORAGE_SAS_TOKEN": az.sas_token,
        "AZURE_ALLOW_HTTP": _flag(az.allow_http),
        "AZURE_SKIP_SIGNATURE": _flag(az.unsigned),
    }
    return {name: value for name, value in values.items() if value}


def _flag(value: bool) -> str:
    return "true" if value else ""


class _Reader:
    """Reads variables and notes what is wrong with them."""

    def __init__(self, variables: Mapping[str, str], problems: list[Problem]) -> None:
        self._variables = variables
        self._problems = problems

    def text(self, *names: str) -> str:
        return next((self._variables[name] for name in names if self._variables.get(name)), "")

    def flag(self, name: str) -> bool:
        value = self._variables.get(name, "").lower()
        if value not in ("", "0", "1", "true", "false"):
            self._problems.append(Problem(name, f"is neither true nor false: {value!r}"))
        return value in ("1", "true")

    def endpoint(self, *names: str) -> str:
        name = next((name for name in names if self._variables.get(name)), "")
        value = self._variables.get(name, "")
        if value and not value.startswith(("http://", "https://")):
            self._problems.append(Problem(name, f"is no http:// or https:// address: {value!r}"))
        return value.rstrip("/")


def _parse_s3(reader: _Reader) -> S3Settings:
    endpoint = reader.endpoint("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    return S3Settings(
        endpoint=endpoint,
        region=reader.text("AWS_REGION", "AWS_DEFAULT_REGION") or "us-east-1",
        access_key_id=reader.text("AWS_ACCESS_KEY_ID"),
        secret_access_key=reader.text("AWS_SECRET_ACCESS_KEY"),
        session_token=reader.text("AWS_SESSION_TOKEN"),
        allow_http=reader.flag("AWS_ALLOW_HTTP") or endpoint.startswith("http://"),
        virtual_hosted=reader.flag("AWS_VIRTUAL_HOSTED_STYLE_REQUEST"),
        unsigned=reader.flag("AWS_SKIP_SIGNATURE"),
    )


def _parse_gs(reader: _Reader) -> GsSettings:
    endpoint = reader.endpoint("GOOGLE_BASE_URL")
    return GsSettings(
        endpoint=endpoint,
        credentials_file=reader.text("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"),
        allow_http=reader.flag("GOOGLE_ALLOW_HTTP") or endpoint.startswith("http://"),
        unsigned=reader.flag("GOOGLE_SKIP_SIGNATURE"),
    )


def _parse_az(reader: _Reader) -> AzSettings:
    endpoint = reader.endpoint("AZURE_STORAGE_ENDPOINT")
    return AzSettings(
        endpoint=endpoint,
        account=reader.text("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"),
        account_key=reader.text("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"),
        sas_token=reader.text("AZURE_STORAGE_SAS_TOKEN"),
        allow_http=reader.flag("AZURE_ALLOW_HTTP") or endpoint.startswith("http://"),
        unsigned=reader.flag("AZURE_SKIP_SIGNATURE"),
    )
