"""The mark in an embedded database that a service has replaced by the server in its DATABASE_URL.

Such a database is out of date. A command without that DATABASE_URL would find it all the same, and a backup of it would
look like a good one. The mark is a file in the cluster itself, so that it follows the cluster to another place, and a
new cluster has none.
"""

import os
from contextlib import suppress
from pathlib import Path

from twisted.logger import Logger

from ..errors import FatalError
from .data_directory import DataDirectory
from .dsn import server_of

MARK = "solisync-replaced"  # its text is for people: the host, port and name of the database in use

_log = Logger()


def record_use(data_dir: Path, dsn: str | None) -> None:
    """Mark the embedded database in `data_dir`, if there is one, when a service starts with a `dsn`.

    A service that starts with the embedded database itself removes the mark.
    """
    cluster = DataDirectory(data_dir).cluster
    try:
        if dsn is not None and cluster.is_dir():
            _mark(cluster, server_of(dsn))
        elif dsn is None and (cluster / MARK).exists():
            server = _server(cluster)
            (cluster / MARK).unlink()
            text = "the embedded database in {path} is in use again, and no longer {server}"
            _log.warn(text, path=str(data_dir), server=server)
    except OSError as error:
        text = "can't note whether the embedded database in {path} is in use: {why}"
        _log.warn(text, path=str(data_dir), why=error.strerror)


def check_not_replaced(data_dir: Path) -> None:
    """Raise FatalError when a service has replaced the embedded database in `data_dir`."""
    cluster = DataDirectory(data_dir).cluster
    if os.path.lexists(cluster / MARK):
        raise FatalError(
            f"solisync: the embedded database in {data_dir} is out of date, the service uses {_server(cluster)}: give"
            " this command the DATABASE_URL of the service, for example with --env-file /etc/solisync/solisync.env"
            " (a start of the service without DATABASE_URL returns to the embedded database)"
        )


def _mark(cluster: Path, server: str) -> None:
    """Write the mark, for the owner of the cluster; a process that is killed meanwhile leaves no part of it."""
    unfinished = cluster / f"{MARK}.new"
    unfinished.unlink(missing_ok=True)
    # neither here nor in _server may root follow a link, which the user of the server can make
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f"{server}\n")
        if os.geteuid() == 0:
            owner = cluster.stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
    unfinished.rename(cluster / MARK)


def _server(cluster: Path) -> str:
    """The server that the mark names, or words for one that it doesn't name."""
    with suppress(OSError, UnicodeDecodeError):
        descriptor = os.open(cluster / MARK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, encoding="utf-8") as file:
            text = file.readline(200).strip()
            if text and text.isprintable():
                return text
    return "another database"
