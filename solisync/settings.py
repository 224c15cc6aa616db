"""Settings: one table for the environment variables and the options, read purely and reported all at once.

The table is the only list of settings: the doors make their options from it, and a test holds docs/configuration.md
to it. Secrets have a variable and a file, never an option, because options show in every process list.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from platformdirs import user_state_path
from twisted.internet.endpoints import serverFromString

from .client_address import Networks
from .errors import SettingsError
from .session import check_dsn

SECRET_MIN_BYTES = 32
_PORT = re.compile(r"(?:tcp[46]?|ssl):(?:port=)?(\d+)(?::.*)?")
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?|https?://\[[0-9A-Fa-f:.]+\](:\d{1,5})?")


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table: where a field of Settings comes from; `read` raises ValueError with what is wrong."""

    field: str
    variable: str
    option: str  # "" for a setting that has only a variable
    metavar: str
    read: Callable[[str], Any]
    default: str | None
    help: str
    flag: str | None = None  # for an option without a value: what it sets
    serving: bool = False  # whether only a service needs it: commands beside one don't look at it

    @property
    def description(self) -> str:
        """The help text of the option, which names the variable and the default."""
        if self.flag:
            return f"{self.help} [{self.variable}={self.flag}]"
        return f"{self.help} [{self.variable}{f', else {self.default}' if self.default else ''}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the service is told before it starts. `database_url` None means the embedded PostgreSQL."""

    jwt_secret: bytes = field(repr=False)
    database_url: str | None = field(repr=False)
    data_dir: Path
    listen: str
    trusted_proxies: Networks
    cors_origins: frozenset[str]
    database_connections: int
    stop_seconds: float
    prepare: bool
    replay_quota_mb: int
    analytics_days: int | None

    @classmethod
    def from_environ(
        cls, environ: Mapping[str, str], options: Mapping[str, str | None] | None = None, *, serving: bool = True
    ) -> "Settings":
        """Settings from environment variables, overridden by `options` (by the name of their option).

        Raises SettingsError with one line for everything that is wrong or missing. Commands that don't serve
        (`serving` False) need no signing secret and no endpoint.
        """
        problems: list[str] = []
        values: dict[str, Any] = {"jwt_secret": b"", "listen": ""}
        names: dict[str, str] = {}
        for setting in TABLE:
            if setting.serving and not serving:
                continue
            given = (options or {}).get(setting.option) if setting.option else None
            names[setting.field] = setting.variable if given is None else f"--{setting.option}"
            text = given if given is not None else environ.get(setting.variable) or setting.default
            try:
                values[setting.field] = None if text is None else setting.read(text)
            except ValueError as error:
                problems.append(f"{names[setting.field]} {error}")
        for name, check in (("jwt_secret", _check_secret), ("database_url", _check_database_url)):
            file = f"{name}_file"
            if file not in values:
                continue  # not asked for, or it can't be read, which is already on the list
            variable = name.upper()
            text = None if names[file].startswith("--") else environ.get(variable) or None
            if text is not None and values[file] is not None:
                problems.append(f"{variable} and {variable}_FILE are both set: keep one")
                continue
            try:
                values[name] = check(variable if values[file] is None else names[file], text, values[file])
            except ValueError as error:
                problems.append(str(error))
        if problems:
            raise SettingsError(problems)
        return cls(**{each.name: values[each.name] for each in fields(cls)})


def default_data_dir() -> str:
    """Where a service keeps its data when nobody says: /var/lib/solisync for root, else the user's state directory."""
    if os.geteuid() == 0:
        return "/var/lib/solisync"
    return str(user_state_path("solisync"))


def _secret_file(text: str) -> bytes:
    try:
        content = Path(text).read_bytes()
    except OSError as error:
        raise ValueError(f"can't be read: {error.strerror}: {text}") from None
    return without_line_end(content)


def without_line_end(line: bytes) -> bytes:
    """`line` without the LF or CR LF that ends it, and with every other byte."""
    return line.removesuffix(b"\r\n") if line.endswith(b"\r\n") else line.removesuffix(b"\n")


def _check_secret(name: str, text: str | None, from_file: bytes | None) -> bytes:
    secret = text.encode("utf-8", "surrogateescape") if text else from_file
    if secret is None:
        raise ValueError(
            "JWT_SECRET is not set: it signs the players' tokens and needs at least 32 bytes,"
            " for example the output of: openssl rand -hex 32"
        )
    if len(secret) < SECRET_MIN_BYTES:
        raise ValueError(f"{name} must hold at least {SECRET_MIN_BYTES} bytes, it has {len(secret)}")
    return secret


def _check_database_url(name: str, text: str | None, from_file: bytes | None) -> str | None:
    dsn = text if from_file is None else from_file.decode("utf-8", "surrogateescape")
    if dsn is None:
        return None
    if not dsn.strip():  # which libpq would take for "all defaults", and a person for the embedded one
        raise ValueError(f"{name} is empty")
    try:
        check_dsn(dsn)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None
    return dsn


def _directory(text: str) -> Path:
    if not text:
        raise ValueError("must name a directory")
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:  # no home directory to stand for ~
        raise ValueError(f"can't be found: {error}: {text}") from None


def _endpoint(text: str) -> str:
    """Let the endpoint's own parser judge; nothing listens yet, so it gets no reactor."""
    try:
        serverFromString(None, text)
    except AttributeError:
        pass  # a plugin that wants the reactor at once: listening will tell
    except Exception as error:  # each kind of endpoint has its own way to fail: a number, a file, a certificate
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"is no endpoint to listen on: {text!r}: {reason}") from None
    port = _PORT.fullmatch(text)
    if port and int(port[1]) > 65_535:
        raise ValueError(f"is no endpoint to listen on: {text!r}: ports end at 65535")
    return text


def _networks(text: str) -> Networks:
    networks = []
    for part in _list(text):
        try:
            networks.append(ip_network(part, strict=False))
        except ValueError:
            raise ValueError(f"must list addresses or CIDR ranges, separated by commas; {part!r} is neither") from None
    return tuple(networks)


def _origins(text: str) -> frozenset[str]:
    for part in _list(text):
        if not _ORIGIN.fullmatch(part):
            raise ValueError(f"must list origins like https://play.example.org, separated by commas; {part!r} is none")
    return frozenset(_list(text))


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
            raise ValueError(f"must be a whole number from {least} to {most}, not {text!r}")
        return int(text)

    return read


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 3600:
        raise ValueError(f"must be a number of seconds from 0 to 3600, not {text!r}")
    return value


def _switch(text: str) -> bool:
    if text not in ("on", "off"):
        raise ValueError(f"must be on or off, not {text!r}")
    return text == "on"


TABLE = (
    Setting(
        "jwt_secret_file",
        "JWT_SECRET_FILE",
        "jwt-secret-file",
        "FILE",
        _secret_file,
        None,
        "a file with the secret that signs tokens, instead of JWT_SECRET (at least 32 bytes)",
        serving=True,
    ),
    Setting(
        "database_url_file",
        "DATABASE_URL_FILE",
        "database-url-file",
        "FILE",
        _secret_file,
        None,
        "a file with the database to use, instead of DATABASE_URL (neither: an embedded PostgreSQL)",
    ),
    Setting(
        "data_dir",
        "SOLISYNC_DATA_DIR",
        "data-dir",
        "DIR",
        _directory,
        default_data_dir(),
        "where the embedded PostgreSQL keeps its data",
    ),
    Setting(
        "listen",
        "SOLISYNC_LISTEN",
        "listen",
        "ENDPOINT",
        _endpoint,
        "tcp:8080",
        "where to serve, a Twisted endpoint: tcp:8080:interface=127.0.0.1, unix:/run/solisync.sock, …",
        serving=True,
    ),
    Setting(
        "trusted_proxies",
        "SOLISYNC_TRUSTED_PROXIES",
        "trusted-proxies",
        "NETWORKS",
        _networks,
        "",
        "addresses or CIDR ranges of proxies whose X-Forwarded-For is believed, separated by commas",
    ),
    Setting(
        "cors_origins",
        "SOLISYNC_CORS_ORIGINS",
        "cors-origins",
        "ORIGINS",
        _origins,
        "",
        "origins of browser clients, like https://play.example.org, separated by commas",
    ),
    Setting(
        "database_connections",
        "SOLISYNC_DATABASE_CONNECTIONS",
        "database-connections",
        "N",
        _whole(1, 1000),
        "8",
        "how many connections to the database a process keeps",
    ),
    Setting(
        "stop_seconds",
        "SOLISYNC_STOP_SECONDS",
        "stop-seconds",
        "SECONDS",
        _seconds,
        "10",
        "how long a stop waits for running requests",
    ),
    Setting(
        "prepare",
        "SOLISYNC_PREPARE",
        "no-prepare",
        "on|off",
        _switch,
        "on",
        "don't prepare statements: for a PgBouncer in transaction mode, which can't keep them",
        flag="off",
    ),
    Setting(
        "replay_quota_mb",
        "SOLISYNC_REPLAY_QUOTA_MB",
        "",
        "MIB",
        _whole(0, 1_000_000),
        "64",
        "how much one account's replays may take, in MiB; 0 for no limit",
    ),
    Setting(
        "analytics_days",
        "SOLISYNC_ANALYTICS_DAYS",
        "",
        "DAYS",
        _whole(1, 36_500),
        None,
        "after how many days analytics events are deleted; unset, they are kept",
    ),
)
