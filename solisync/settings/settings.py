"""Settings, read from the environment and the command line; one error reports all problems.

There are two classes, so that a command without a signing secret can't sign with an empty one.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

from ..access.client_address import Networks
from ..access.rate_limit import LIMITS, Limit
from ..errors import SettingsError
from ..postgres.dsn import missing_root_certificate
from ..postgres.pool import SESSIONS_PER_CONNECTION
from . import env_file
from .setting import PREFIX, Setting
from .table import TABLE

OTHER_CONNECTIONS = 20  # to the same server, by commands, backups, replication and operators
ENV_FILE = "env-file"  # an option of every entry point but the .tac file
ENV_FILE_HELP = "a file with variables, in the syntax of systemd's EnvironmentFile=; the environment overrides it"


def add_env_file(environ: MutableMapping[str, str], file: str | None) -> None:
    """Set the variables of a file that aren't set yet, including those of libpq. Raises SettingsError.

    A setting with two variables, such as JWT_SECRET and JWT_SECRET_FILE, is set if either is.
    """
    if file is None:
        return
    try:
        variables = env_file.read(file)
    except ValueError as error:
        raise SettingsError([f"--{ENV_FILE} {error}"]) from None
    given = {row.field for row in TABLE if environ.get(row.variable)}
    settled = {row.variable for row in TABLE if row.field in given}
    environ.update({name: value for name, value in variables.items() if not environ.get(name) and name not in settled})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of the database and the log, for all commands; `database_url` is None for the embedded server."""

    database_url: str | None = field(repr=False)
    data_dir: Path
    new_database: bool
    database_connections: int
    prepared_statements: bool
    log_format: str
    log_level: str
    site_url: str | None

    @classmethod
    def from_environ(cls, environ: Mapping[str, str], options: Mapping[str, str | None] | None = None) -> Self:
        """Read the fields of this class from environment variables, overridden by `options`; ignore other settings.

        Raises SettingsError with one line for each wrong or missing setting.
        """
        values: dict[str, Any] = {}
        problems: list[str] = []
        names = {each.name for each in fields(cls)}
        for name, rows in groupby(TABLE, attrgetter("field")):
            if name not in names:
                continue
            try:
                values[name] = _value(list(rows), environ, options or {})
            except ValueError as error:
                problems.append(str(error))
        problems += [*cls._conflicts(values), *_unverifiable(values, environ)]
        if problems:
            raise SettingsError(problems)
        return cls(**values)

    @classmethod
    def _conflicts(cls, values: Mapping[str, Any]) -> Iterator[str]:
        """Yield the problems of valid `values` that don't fit together; invalid values are absent."""
        yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSettings(Settings):
    """The settings of the service."""

    jwt_secret: bytes = field(repr=False)
    jwt_secret_previous: bytes | None = field(repr=False)
    listen: str
    trusted_proxies: Networks
    cors_origins: frozenset[str]
    auth_limit: Limit
    guest_limit: Limit | None
    guest_days: int
    pages: bool
    site_name: str
    site_links: tuple[tuple[str, str], ...]
    public_avatars: bool
    workers: int
    checkers: int
    streams: int
    bus_database_url: str | None = field(repr=False)
    stop_seconds: float
    idle_seconds: int
    metrics_listen: str | None
    admin_listen: str | None
    admin_hosts: frozenset[str]
    access_log: bool
    replay_quota_mib: int
    analytics_days: int | None
    history_days: int

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The rate limits whose requests are counted in the database."""
        return (self.auth_limit, *filter(None, [self.guest_limit]), *LIMITS)

    @property
    def node_connections(self) -> int:
        """The most connections of this node to the server at the same time, also while a worker is being replaced."""
        each = SESSIONS_PER_CONNECTION * self.database_connections + 1  # one for live events
        return each * (self.workers + 1)

    @classmethod
    def _conflicts(cls, values: Mapping[str, Any]) -> Iterator[str]:
        if values.get("jwt_secret_previous") is not None and values["jwt_secret_previous"] == values.get("jwt_secret"):
            yield "JWT_SECRET_PREVIOUS must differ from JWT_SECRET: remove it, or set the previous secret"


def _unverifiable(values: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the database URLs whose servers can't be verified, because their certificate file is missing."""
    for name in ("database_url", "bus_database_url"):
        if (dsn := values.get(name)) is not None and (file := missing_root_certificate(dsn, environ)) is not None:
            variable = next(row.variable for row in TABLE if row.field == name)
            yield f"{variable} verifies the server by {file}, which doesn't exist: name a file with sslrootcert="


def _value(rows: Sequence[Setting], environ: Mapping[str, str], options: Mapping[str, str | None]) -> Any:
    """Return the value of the field with these source `rows`; raise ValueError that names the option or variable."""
    given = [(f"--{row.option}", row, text) for row in rows if (text := options.get(row.option)) is not None]
    if not given:
        given = [(row.variable, row, text) for row in rows if (text := environ.get(row.variable))]
    if not given:
        given = [(row.variable, row, row.default) for row in rows if row.default is not None]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(name for name, *_ in given)} are both set: keep one")
    if not given:
        for row in rows:
            if row.missing is not None:
                raise ValueError(f"{row.variable} {row.missing}")
        return None
    name, row, text = given[0]
    try:
        return row.read(text)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown word: the most similar of the `known` ones, or "" if none is similar."""
    near = difflib.get_close_matches(word, [*known], 1)
    return f": did you mean {near[0]}?" if near else ""


def unknown_variables(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each variable that begins with PREFIX but isn't a setting, with advice."""
    known = [setting.variable.removeprefix(PREFIX) for setting in TABLE if setting.variable.startswith(PREFIX)]
    for name in sorted(environ):
        rest = name.removeprefix(PREFIX)
        if name != rest and rest not in known:
            near = difflib.get_close_matches(rest, known, 1)
            yield name, f"did you mean {PREFIX}{near[0]}?" if near else "remove it"
