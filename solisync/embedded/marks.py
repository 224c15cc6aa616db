"""Marks of a service that uses the server in its DATABASE_URL, instead of the embedded database in its data directory.

Without the mark of the directory, a start that has lost the DATABASE_URL would make a new database, and all accounts
would seem gone. Without the mark of the cluster, a command would use the old cluster, and its backup would look like a
good one. That mark moves with the cluster, and a new cluster has none.
"""

import os
from contextlib import suppress
from pathlib import Path

from twisted.logger import Logger

from ..errors import FatalError
from ..postgres.dsn import server_of
from . import owned_files

CLUSTER = "postgresql"  # in the data directory
MARK = "solisync-replaced"  # its text is for people: the host, the port and the name of the database in use
GIVE_URL = "give this command the DATABASE_URL of the service, for example with --env-file /etc/solisync/solisync.env"

_log = Logger()


def record_use(data_dir: Path, dsn: str | None) -> None:
    """Mark `data_dir`, and an embedded database there, as replaced by the server of `dsn`.

    Without a `dsn` the service starts with the embedded database, and this removes the marks.
    """
    cluster = data_dir / CLUSTER
    try:
        if dsn is not None:
            with suppress(OSError):  # such a service needs no data directory
                data_dir.mkdir(parents=True, exist_ok=True)
                owned_files.write(data_dir / MARK, f"{server_of(dsn)}\n")
            if cluster.is_dir():
                owned_files.write(cluster / MARK, f"{server_of(dsn)}\n")
        elif marked := [place for place in (data_dir, cluster) if (place / MARK).exists()]:
            server = _server(marked[-1])
            for place in marked:
                (place / MARK).unlink()
            if cluster.exists():
                text = "the embedded database in {path} is in use again, instead of {server}"
                _log.warn(text, path=str(data_dir), server=server)
    except OSError as error:
        text = "can't record whether the embedded database in {path} is in use: {why}"
        _log.warn(text, path=str(data_dir), why=error.strerror)


def check_not_replaced(data_dir: Path) -> None:
    """Raise FatalError if a service has replaced the embedded database in `data_dir` by another server."""
    cluster = data_dir / CLUSTER
    if os.path.lexists(cluster / MARK):
        raise FatalError(
            f"solisync: the embedded database in {data_dir} is out of date; the service uses {_server(cluster)}:"
            f" {GIVE_URL} (a start of the service without DATABASE_URL returns to the embedded database)"
        )


def moved_to(data_dir: Path) -> str | None:
    """The server that a service with this directory has used, or None if there is an embedded database or no mark."""
    if os.path.lexists(data_dir / CLUSTER) or not os.path.lexists(data_dir / MARK):
        return None
    return _server(data_dir)


def check_may_be_made(data_dir: Path, *, new: bool) -> None:
    """Raise FatalError if an embedded database would be a new one where a service has used another, unless `new`."""
    if not new and (server := moved_to(data_dir)):
        raise FatalError(
            f"solisync: there is no database in {data_dir}, and the service was started with {server}: set"
            " DATABASE_URL as before, or begin with a new, empty database by --new-database"
        )


def _server(place: Path) -> str:
    """The server that the mark names, or "another database" if the mark is unreadable."""
    with suppress(OSError):
        text = owned_files.read(place / MARK).partition("\n")[0].strip()
        if text and text.isprintable():
            return text
    return "another database"
