"""`solisync doctor` checks settings, host and database; `solisync status` shows versions and counts."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from twisted.internet.base import ReactorBase

from .. import __version__
from ..diagnosis import Finding, fine, introspection, note, ports, wrong
from ..diagnosis import database as database_checks
from ..diagnosis import host as host_checks
from ..embedded.marks import moved_to
from ..embedded.server import EmbeddedPostgres
from ..errors import FatalError, SettingsError
from ..housekeeping import NAMES as JOB_NAMES
from ..postgres.migrate import load_migrations
from ..postgres.transaction import Statements
from ..rules.texts import bytes_shown
from ..settings.settings import ServingSettings
from ..storage import housekeeping, retention, schema
from ..storage.operators import counts, daily_numbers
from ..storage.operators.daily_numbers import NAMES
from ..storage.replays import checks
from . import running
from .output import Column
from .task import Task

SOCKETS = {"listen": "SOLISYNC_LISTEN", "admin-listen": "SOLISYNC_ADMIN_LISTEN"}


async def examine(task: Task) -> None:
    """Run all checks and write their findings as they come; raises FatalError if a finding is `wrong`."""
    problems = 0
    async for finding in _findings(task):
        problems += finding.level == "wrong"
        _write(task, finding)
    if problems:
        raise FatalError(f"solisync: found {problems} problem{'s' if problems > 1 else ''}")


def _write(task: Task, finding: Finding) -> None:
    if task.output.json:
        task.output.facts(finding.record)
        return
    task.output.say(f"{finding.level:<6} {finding.subject:<10} {finding.text}")
    if finding.advice:
        task.output.say(f"{'':<17} -> {finding.advice}")


async def _findings(task: Task) -> AsyncIterator[Finding]:
    for finding in host_checks.names(task.environ):
        yield finding
    settings, environ, options = None, task.with_some_secret(), {**task.options}
    inherited = {option for option in SOCKETS if _given(task, option).startswith("systemd:")}
    for option in inherited:  # sockets that systemd passes to the service, but not to this process
        environ.pop(SOCKETS[option], None)
        options.pop(option, None)
    try:
        settings = ServingSettings.from_environ(environ, options)
    except SettingsError as error:
        for problem in error.problems:
            yield wrong("settings", problem, "see docs/configuration.md")
    else:
        yield fine("settings", "all settings are valid")
    for finding in _secret(task, settings):
        yield finding
    if settings is None:
        return
    if "listen" in inherited:
        yield note("port", "not checked, because systemd passes the socket", "name it: --listen unix:/run/…")
    else:
        for finding in (await ports.players(settings, task.reactor), *host_checks.proxies(settings)):
            yield finding
    for finding in await ports.site(settings, task.reactor):
        yield finding
    today = datetime.now(UTC).date()
    for finding in (*host_checks.auth_limit(settings), *host_checks.streams(settings), host_checks.deals(today)):
        yield finding
    if "admin-listen" in inherited:
        yield note("console", "not checked, because systemd passes its socket")
    else:
        for finding in (*host_checks.console(settings), *await ports.console(settings, task.reactor)):
            yield finding
    for finding in await _of_database(settings, task.reactor):
        yield finding


async def _of_database(settings: ServingSettings, reactor: ReactorBase) -> list[Finding]:
    """Run all checks on the database; an embedded database that doesn't exist yet is only a note."""
    if settings.database_url is None:
        embedded = EmbeddedPostgres(reactor=reactor, data_dir=settings.data_dir)
        try:
            embedded.check_cluster()
        except FatalError:
            server = moved_to(settings.data_dir)
            if server and not settings.new_database:
                text = f"there is none in {settings.data_dir}, and the service was started with {server}"
                return [wrong("database", text, "set DATABASE_URL as before; for a new, empty one: --new-database")]
            text = f"there is none in {settings.data_dir}: the first start of the service creates it"
            return [note("database", text), database_checks.disk(settings.data_dir, 0)]
    return await database_checks.examine(settings, reactor, running.connection(settings, reactor))


def _given(task: Task, option: str) -> str:
    return task.options.get(option) or task.environ.get(SOCKETS[option]) or ""


def _secret(task: Task, settings: ServingSettings | None) -> Iterator[Finding]:
    if not task.has_secret:
        yield note("secret", "not checked, because JWT_SECRET is not set here")
    elif settings is not None:
        yield host_checks.secret("JWT_SECRET", settings.jwt_secret)
        if settings.jwt_secret_previous is not None:
            yield host_checks.secret("JWT_SECRET_PREVIOUS", settings.jwt_secret_previous)
        for option in ("jwt-secret-file", "jwt-secret-previous-file"):
            file = task.options.get(option) or task.environ.get(option.upper().replace("-", "_"))
            if file:
                yield from host_checks.secret_file(Path(file))


async def show_status(task: Task) -> None:
    """Show the status, or the numbers of days; change nothing, not even the schema."""
    if task.chosen.days is not None:
        await _show_days(task)
        return
    settings = task.settings
    async with running.connection(settings, task.reactor) as connection:
        statements = Statements(connection)
        database = await introspection.database(connection)
        service = await introspection.service_connections(connection)
        number, latest = await schema.number(statements), load_migrations()[-1].number
        facts: dict[str, object] = {
            "version": __version__,
            "schema": number,
            "schema_of_this_version": latest,
            "database": "embedded" if settings.database_url is None else "configured",
            "data_dir": str(settings.data_dir) if settings.database_url is None else None,
            "server_version": database.server_version,
            "database_name": database.name,
            "database_bytes": database.size if task.output.json else bytes_shown(database.size),
            "service_running": service > 0,
            "service_connections": service,
        }
        if number >= latest:  # an older schema may lack these tables
            facts |= asdict(await counts.everything(statements))
            waiting = await checks.waiting(statements)
            facts |= {
                "checks_waiting": waiting.literal,
                "searches_waiting": waiting.search,
                "old_checks_waiting": waiting.old,
                "longest_wait_seconds": round(waiting.oldest_seconds),
            }
        jobs = []
        if number >= latest:
            facts["retention_behind_seconds"] = await retention.behind(statements)
            jobs = [asdict(run) for run in await housekeeping.last_runs(statements, JOB_NAMES)]
            if task.output.json:
                facts["housekeeping"] = jobs
        task.output.facts(facts)
        if jobs and not task.output.json:
            task.output.say("")
            write = task.output.table([Column("job", 28), Column("ran_at", 19)])
            for job in jobs:
                write(job)


async def _show_days(task: Task) -> None:
    async with task.connection() as statements:
        write = task.output.table([Column("day", 10), *(Column(name, len(name), right=True) for name in NAMES)])
        for day in await daily_numbers.of_days(statements, task.chosen.days):
            write(asdict(day))
