"""The restore drill of docs/operations.md, run exactly as documented."""

import os
import pwd
import re
import subprocess

import pytest

from tests.harness.constants import PATIENCE, ROOT
from tests.harness.entry_points import BIN, SOLISYNC
from tests.harness.processes import clean_environment, free_port, processes_in, run

PAGE = (ROOT / "docs" / "operations.md").read_text("utf-8")


@pytest.mark.needs("bash", "curl", "openssl")
async def test_drill_restores_the_newest_backup(server, place):
    """The commands restore a backup, serve it to a smoke check, and leave nothing behind."""
    await server.player("ann")
    backups, drill = place / "backups", place / "drill"
    backups.mkdir()
    (backups / "solisync-20200101T000000.000000Z.dump").write_text("an old one")
    assert run(*SOLISYNC, "backup", "--into", backups, "--keep", "2", DATABASE_URL=server.dsn).status == 0
    script = re.search(r"^- \*\*A drill.*?\n\n((?: {4}[^\n]+\n)+)", PAGE, re.M | re.S)[1]
    owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    for documented, here in (
        ("/var/lib/solisync-backup", backups),
        ("/srv/drill", drill),
        ("8099", free_port()),
        ("chown solisync:", f"chown {owner.pw_name}:"),
    ):
        assert documented in script
        script = script.replace(documented, str(here))
    done = subprocess.run(
        ["bash", "-c", f"set -e\n{script}"],
        env=clean_environment(PATH=f"{BIN}:{os.environ['PATH']}"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert "restored 1 player from" in done.stdout
    assert re.search(r"^players +1$", done.stdout, re.M)
    assert [*place.iterdir()] == [backups]
    assert not processes_in(place)
