"""Backups between the embedded PostgreSQL and older servers, as Debian installs them."""

from pathlib import Path

import pytest
from twisted.internet.threads import deferToThread

from solisync.commands.smoke import PIXEL
from tests.deploy.programs import optional
from tests.fire.servers import servers
from tests.harness.entry_points import SOLISYNC
from tests.harness.payloads import replay
from tests.harness.postgres import content
from tests.harness.processes import run

BINARIES = {version: Path(f"/usr/lib/postgresql/{version}/bin") for version in (14, 15, 16, 17)}


@pytest.fixture(params=[pytest.param(path, marks=optional(path / "postgres")) for path in BINARIES.values()], ids=str)
def older(request):
    """The DSN of an empty database on a server of an older PostgreSQL."""
    with servers(binaries=request.param) as made:
        yield made.make_primary().dsn


async def test_backup_moves_to_an_older_server_and_back(server, older, empty_database, place):
    """All players move in both directions. An unreadable backup leaves the older server empty."""
    player = await server.player("ann")
    await player.upload_avatar(PIXEL, "image/png")
    await player.upload_replay(replay())
    await player.push((await player.pull()).merged)
    await player.opt_in("ann")
    dump, cut, again = (place / name for name in ("dump", "cut", "again"))

    async def solisync(*words, dsn):
        return await deferToThread(run, *SOLISYNC, *words, DATABASE_URL=dsn)

    assert (await solisync("backup", dump, dsn=server.dsn)).err == []
    cut.write_bytes(dump.read_bytes()[: dump.stat().st_size * 3 // 4])
    assert (await solisync("restore", cut, dsn=older)).status == 1
    done = await solisync("restore", dump, dsn=older)
    assert (done.status, done.err) == (0, [])
    assert content(older) == content(server.dsn)
    assert (await solisync("backup", again, dsn=older)).err == []
    assert (await solisync("restore", again, dsn=empty_database)).err == []
    assert content(empty_database) == content(server.dsn)
