"""The commands of docs/deployment.md, docs/upgrading.md and docs/console.md, on a booted Debian 13.

Players use the service from 1.0.0 to this version and back. `pytest -s` prints each step as it ends.
"""

import itertools
import re
import subprocess
import threading
import time
from collections import Counter
from contextlib import contextmanager
from http.client import HTTPException

import pytest

from tests.deploy.debian import booted, needs_debian
from tests.harness.concurrency import wait_for
from tests.harness.constants import PASSWORD, PATIENCE, ROOT

pytestmark = needs_debian

FIRST, SECOND, THIS = "1.0.0", "1.1.0", "9.9.9"
COMMITS = {FIRST: "f8ab0a6", SECOND: "7cf9c17"}  # this version, of the last commit, gets a number that none has


def page(name, commit=None):
    """Return a page of the docs, as it is or as it was."""
    if commit is None:
        return (ROOT / "docs" / name).read_text("utf-8")
    words = ["git", "show", f"{commit}:docs/{name}"]
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def commands(text, heading, first=None, last=None):
    """Return the commands below a heading of a page, from the line with `first` to the line with `last`."""
    section = re.split(r"^##? ", text.partition(f"## {heading}\n")[2], flags=re.M)[0]
    lines = [line.strip() for line in re.findall(r"^(?: {4}| {7})(\S.*|  +\S.*)$", section, re.M)]
    begin = next((number for number, line in enumerate(lines) if first and first in line), 0)
    end = next((number for number, line in enumerate(lines) if number >= begin and last and last in line), len(lines))
    assert lines[begin : end + 1], (heading, first)
    return "\n".join(lines[begin : end + 1])


class Players:
    """Clients who ask for the service's version all the time, over new connections."""

    def __init__(self, debian):
        self._debian = debian
        self.heard = Counter()
        self.longest = 0.0
        self._stopped = False
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self):
        while not self._stopped:
            began = time.monotonic()
            try:
                answer = self._debian.ask("GET", "/health")
                self.heard[answer.json["version"] if answer.status == 200 else answer.status] += 1
            except (OSError, HTTPException) as error:
                self.heard[type(error).__name__] += 1
            self.longest = max(self.longest, time.monotonic() - began)
            time.sleep(0.02)

    def stop(self):
        self._stopped = True
        self._thread.join(PATIENCE)


@pytest.fixture(scope="module")
def debian(tmp_path_factory):
    for commit in COMMITS.values():
        if subprocess.run(["git", "cat-file", "-e", commit], cwd=ROOT, capture_output=True).returncode != 0:
            pytest.skip(f"this is no clone with the history back to {commit}")
    place = tmp_path_factory.mktemp("debian")
    for directory in (place, *place.parents[:2]):
        directory.chmod(0o755)
    with booted(place / "root", ROOT) as made:
        yield made


@pytest.fixture
def step(debian, figure):
    """A step of the walk; its players must hear only the versions in `allowed`, unless that is None."""
    numbers = itertools.count(1)

    @contextmanager
    def step(what, allowed=None):
        began, players = time.monotonic(), None if allowed is None else Players(debian)
        try:
            yield
        finally:
            if players is not None:
                players.stop()
        heard = ""
        if players is not None:
            heard = f"; players heard {dict(players.heard)}, after {players.longest:.1f} s at most"
        figure(f"{next(numbers)}. {what}: {time.monotonic() - began:.0f} s{heard}")
        if players is not None:
            assert set(players.heard) <= set(allowed)

    return step


def in_checkout(debian, version):
    debian.run(f"git checkout --quiet v{version}")


def serves(debian, version):
    """Check that all workers are of this version, and that the player and the games are there."""
    wait_for(lambda: debian.ask("GET", "/health/ready").status == 200)
    assert {debian.ask("GET", "/health").json["version"] for _ in range(20)} == {version}
    login = debian.ask("POST", "/api/auth/login", {"username": "ann", "password": PASSWORD})
    assert login.status == 200
    pulled = debian.ask("GET", "/api/sync/pull", bearer=login.json["access_token"])
    assert (pulled.status, pulled.json["merged"]["stats"]["games_won"]) == (200, 7)


def doctor_changes_nothing(debian):
    """Run the doctor twice, as root, at the socket of systemd."""

    def footprint():
        return debian.run("stat -c '%n %i %a %U:%G %y' /run/solisync/* /var/lib/solisync; ss -xlH 2>/dev/null || true")

    before = footprint()
    said = [
        debian.run(f"SOLISYNC_LISTEN=unix:/run/solisync/http.sock {doctor}", check=False)
        for doctor in ["solisync --env-file /etc/solisync/solisync.env doctor"] * 2
    ]
    assert footprint() == before
    assert "is running on unix:/run/solisync/http.sock" in said[0] + said[1]
    assert said[0].count("wrong") == said[1].count("wrong") == 0, said[0]


@pytest.mark.limit(1800)
def test_documented_commands_upgrade_a_service_and_go_back(debian, step):
    """No player gets an error, and no reload keeps an old version without saying so."""
    deployment, upgrading = page("deployment.md"), page("upgrading.md")
    for version, commit in COMMITS.items():
        debian.run(f"git tag v{version} {commit}")
    debian.run(
        "git config user.name walk; git config user.email walk@example.org; git checkout --quiet --detach\n"
        f"sed -i 's/^__version__ = .*/__version__ = \"{THIS}\"/' solisync/__init__.py\n"
        f"git commit --quiet --all --message 'A version'; git tag v{THIS}"
    )

    old = page("deployment.md", COMMITS[FIRST])
    in_checkout(debian, FIRST)
    with step("install 1.0.0 as its page says"):
        debian.run(commands(old, "The program"), online=True)
        debian.run(commands(old, "The service", "install -D", "enable --now solisync.socket"))
        wait_for(
            lambda: "ready" in debian.run("curl -s --unix-socket /run/solisync/http.sock http://localhost/health/ready")
        )
        debian.run(commands(old, "The service", "solisync-backup.service deploy", "start solisync-backup.service"))
    assert debian.ask("POST", "/api/auth/register", {"username": "ann", "password": PASSWORD}).status == 200
    login = debian.ask("POST", "/api/auth/login", {"username": "ann", "password": PASSWORD})
    token = login.json["access_token"]
    progress = debian.ask("GET", "/api/sync/pull", bearer=token).json["merged"]
    progress["stats"] |= {"games_played": 9, "games_won": 7}
    assert debian.ask("POST", "/api/sync/push", progress, bearer=token).status == 200
    serves(debian, FIRST)

    program = commands(deployment, "The program", "VERSION=", "ln -sfn")
    units = commands(upgrading, "The order", "cp deploy", "daemon-reload")
    reload = commands(upgrading, "The order", "systemctl reload", "systemctl reload")
    move = commands(upgrading, "The order", "mv /opt/solisync", "mv /opt/solisync")
    restart = commands(upgrading, "The order", "systemctl restart", "systemctl restart")

    with step("upgrade to 1.1.0", {FIRST, SECOND, 503}):
        in_checkout(debian, SECOND)
        debian.run(move)
        debian.run(f"rm -r build\n{program}", online=True)  # which 1.1.0 itself, unlike later versions, must not find
        debian.run(f"{units}\n{restart}")
        serves(debian, SECOND)
    with step("upgrade to this version, without a network", {SECOND, THIS}):
        debian.run(commands(upgrading, "The order", "git checkout", "git checkout"))
        debian.run(commands(deployment, "The program", "pip wheel", "--no-deps ."), online=True)
        online = commands(deployment, "The program", "pip install --require", "pip install --no-deps")
        offline = commands(deployment, "The program", "--no-index", "--no-index")
        assert online in program
        debian.run(f"{program.replace(online, offline)}\n{units}\n{reload}")
        serves(debian, THIS)
    with step("restart", {THIS, 503}):
        debian.run("systemctl restart solisync")
        serves(debian, THIS)
    assert f"of version {THIS}" in debian.run("systemctl reload solisync; systemctl status solisync")
    assert f"replaced all workers: version {THIS}, as before" in debian.run("journalctl -u solisync")

    with step("examine it twice", {THIS}):
        doctor_changes_nothing(debian)
    with step("switch on the console while the service runs", {THIS, 503}):
        debian.run(commands(page("console.md"), "Opening it", "cp deploy", "start solisync.service"))
        serves(debian, THIS)
        assert debian.ask("GET", "/api/admin/me", socket="admin.sock").status == 401
        debian.run(commands(page("console.md"), "Opening it", "admins add", "admins code"))
        debian.run("systemctl restart solisync")
        assert debian.ask("GET", "/api/admin/me", socket="admin.sock").status == 401
    with step("put nginx in front", {THIS}):
        key = "/etc/letsencrypt/live/play.example.org"
        debian.run(
            f"mkdir -p {key}; echo 127.0.0.1 play.example.org >> /etc/hosts\n"
            "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=play.example.org"
            f" -addext subjectAltName=DNS:play.example.org -keyout {key}/privkey.pem -out {key}/fullchain.pem"
        )
        nginx = commands(deployment, "nginx and TLS", "usermod", "nginx -t").replace("YOUR.NAME", "play.example.org")
        assert "warn" not in debian.run(nginx)
        smoke = commands(deployment, "nginx and TLS", "SSL_CERT_FILE", "SSL_CERT_FILE")
        assert "all steps passed" in debian.run(smoke.replace("authority.pem", f"{key}/fullchain.pem"))
    with step("back up", {THIS}):
        debian.run("systemctl start solisync-backup.service; ls /var/lib/solisync-backup/*.dump")

    back = commands(upgrading, "Going back", "git checkout", "systemctl restart")
    assert f"git checkout v{SECOND} " in back
    for version, former in ((SECOND, THIS), (FIRST, SECOND)):
        with step(f"go back to {version}", {former, version, 503}):
            debian.run(back.replace(f"v{SECOND} ", f"v{version} "))
            serves(debian, version)
    with step("upgrade again", {FIRST, THIS, 503}):
        debian.run(commands(upgrading, "The order", "git checkout", "git checkout"))
        debian.run(f"ln -sfn solisync-{THIS} /opt/solisync\n{units}\n{restart}")
        serves(debian, THIS)
    assert "0 loaded units" in debian.run("systemctl --failed")
