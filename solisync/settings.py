"""Settings: read purely from the environment and the options, and reported all at once when they are wrong."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from .access.client_address import Networks
from .errors import SettingsError
from .postgres.dsn import check_dsn
from .settings_table import TABLE

SECRET_MIN_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the service is told before it starts. `database_url` None means the embedded PostgreSQL."""

    jwt_secret: bytes = field(repr=False)
    database_url: str | None = field(repr=False)
    data_dir: Path
    listen: str
    trusted_proxies: Networks
    cors_origins: frozenset[str]
    workers: int
    database_connections: int
    stop_seconds: float
    metrics_listen: str | None
    log_format: str
    prepared_statements: bool
    replay_quota_mib: int
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
        values: dict[str, Any] = {"jwt_secret": b"", "listen": "", "workers": 1, "metrics_listen": None}
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
