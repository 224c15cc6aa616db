"""The table of settings: their variables, options, defaults, and how each is read.

It is the only list of them: the doors make their options from it, and a test holds docs/configuration.md to it. Secrets
have a variable and a file, never an option, because options show in every process list.
"""

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from platformdirs import user_state_path
from twisted.internet.endpoints import serverFromString

from .access.client_address import Networks
from .process.logs import FORMATS

PREFIX = "SOLISYNC_"

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


def without_option() -> str:
    """The variables that no option stands for, for the end of a help text."""
    return ", ".join(setting.variable for setting in TABLE if not setting.option)


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


def _directory(text: str) -> Path:
    if not text:
        raise ValueError("must name a directory")
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:  # no home directory to stand for ~
        raise ValueError(f"can't be found: {error}: {text}") from None


def _endpoint(text: str) -> str:
    """Let the endpoint's own parser judge; nothing listens yet, so it gets no reactor."""
    systemd = text.startswith("systemd:")
    try:
        serverFromString(None, text)
    except Exception as error:  # each kind of endpoint has its own way to fail: a number, a file, a certificate
        if isinstance(error, AttributeError) and not systemd:
            return text  # a plugin that wants the reactor at once: listening will tell
        reason = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, LookupError) and systemd:
            reason = "systemd has passed no such socket"
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


def _log_format(text: str) -> str:
    if text not in FORMATS:
        raise ValueError(f"must be {' or '.join(FORMATS)}, not {text!r}")
    return text


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
        "workers",
        "SOLISYNC_WORKERS",
        "workers",
        "N",
        _whole(1, 64),
        "1",
        "how many processes serve, for `solisync` and `twistd -n`; SIGHUP replaces them one by one",
        serving=True,
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
        "metrics_listen",
        "SOLISYNC_METRICS_LISTEN",
        "metrics-listen",
        "ENDPOINT",
        _endpoint,
        None,
        "where Prometheus may fetch /metrics, a Twisted endpoint like tcp:9100:interface=127.0.0.1 (default: nowhere)",
        serving=True,
    ),
    Setting(
        "log_format",
        "SOLISYNC_LOG_FORMAT",
        "log-format",
        "text|json",
        _log_format,
        "text",
        "how to log: lines for people, or one JSON object a line",
    ),
    Setting(
        "prepared_statements",
        "SOLISYNC_PREPARED_STATEMENTS",
        "no-prepared-statements",
        "on|off",
        _switch,
        "on",
        "don't prepare statements: for a PgBouncer in transaction mode, which can't keep them",
        flag="off",
    ),
    Setting(
        "replay_quota_mib",
        "SOLISYNC_REPLAY_QUOTA_MIB",
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


def unknown_variables(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Variables that look like ours and aren't, each with what to do about it."""
    known = [setting.variable.removeprefix(PREFIX) for setting in TABLE if setting.variable.startswith(PREFIX)]
    for name in sorted(environ):
        rest = name.removeprefix(PREFIX)
        if name != rest and rest not in known:
            near = difflib.get_close_matches(rest, known, 1)
            yield name, f"did you mean {PREFIX}{near[0]}?" if near else "remove it"
