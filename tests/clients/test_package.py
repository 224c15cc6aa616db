"""The npm package `solisync`, in clients/javascript."""

import gzip
import json
import re
import shutil
import subprocess

import pytest

from solisync import __version__
from solisync.web.page_build import stripped
from tests import client_types
from tests.harness.constants import PATIENCE, ROOT
from tests.harness.entry_points import serving
from tests.harness.processes import clean_environment

PACKAGE = ROOT / "clients" / "javascript"
DESCRIPTION = json.loads((PACKAGE / "package.json").read_text("utf-8"))
RULES = ("klondike",)
CLIENT = ("solisync", "device_journal", "error", "shown", "stores", "indexed_db")
SERVICE = (
    *("service", "client", "tokens", "transport", "settling"),
    *("following", "events", "guest_keys", "locks"),
)  # loaded at the first request
RARE = ("joins", "unplayed", "former", "padding")  # loaded when they are needed
KIB = 1024
TYPESCRIPT = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", *DESCRIPTION["devDependencies"]]
STRICT = {"strict": True, "noEmit": True, "allowJs": True, "checkJs": True, "module": "nodenext", "types": ["node"]}


def run(words, directory, lines=""):
    """Return the output of a program that succeeds."""
    env, limit = clean_environment(), 5 * PATIENCE
    done = subprocess.run(words, env=env, cwd=directory, input=lines, capture_output=True, text=True, timeout=limit)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def compressed(*names):
    """The size of modules as the service sends them, together."""
    text = "".join(stripped((PACKAGE / "src" / f"{name}.js").read_text("utf-8")) for name in names)
    return len(gzip.compress(text.encode(), 9)) / KIB


def test_package_has_the_version_of_the_service():
    assert DESCRIPTION["version"] == __version__


def test_package_has_no_dependencies():
    assert "dependencies" not in DESCRIPTION


def test_client_stays_within_its_size(figure):
    """What works offline, what loads at the first request, what few games need, and the rules of Klondike."""
    sizes = [compressed(*names) for names in (CLIENT, SERVICE, RARE, RULES)]
    figure("at the start {:.1f} KiB, at the first request {:.1f} KiB, rare {:.1f} KiB, rules {:.1f} KiB".format(*sizes))
    assert sizes[0] <= 5.2
    assert sizes[1] <= 7.4
    assert sizes[2] <= 3.4
    assert sizes[3] <= 2.5


def test_modules_of_the_first_load_import_no_others():
    """The client reaches all others by imports at the time of need."""
    for name in CLIENT:
        script = stripped((PACKAGE / "src" / f"{name}.js").read_text("utf-8"))
        imported = re.findall(r'(?:from|^import) "\./(\w+)\.js"', script, re.MULTILINE)
        assert set(imported) <= set(CLIENT), name


def test_every_module_has_a_size():
    modules = {file.stem for file in (PACKAGE / "src").iterdir()}
    assert modules == {*CLIENT, *SERVICE, *RARE, *RULES, "klondike_game", "goal"}


def test_types_of_messages_are_those_of_the_openapi_document():
    """`make docs` writes them."""
    assert client_types.FILE.read_text("utf-8") == client_types.types()


@pytest.mark.needs("node")
def test_modules_pass_their_own_tests():
    run(["node", "--test", "tests/"], PACKAGE)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the package, installed from its file, and with typescript."""
    place = tmp_path_factory.mktemp("installed")
    package = place / "package"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("node_modules", "types", "*.tgz"))
    run(TYPESCRIPT, package)
    run(["npm", "pack", "--pack-destination", place], package)
    (archive,) = place.glob("solisync-*.tgz")
    (place / "game").mkdir()
    (place / "game" / "package.json").write_text('{"type": "module"}')
    run([*TYPESCRIPT, archive], place / "game")
    return place / "game"


@pytest.fixture
def url(reactor, shared_dsn, logs):
    """The address of a service."""
    with serving(reactor, logs, shared_dsn) as service:
        yield service.url


@pytest.mark.needs("npm")
@pytest.mark.limit(10 * PATIENCE)
def test_installed_package_plays(installed, url):
    """The example counts another game in each run, in the same directory."""
    words = ["node", "node_modules/solisync/examples/play.js", url, "device"]
    assert [run(words, installed).split()[-1] for _ in range(2)] == ["1", "2"]


@pytest.mark.needs("npm")
@pytest.mark.limit(10 * PATIENCE)
def test_game_in_the_terminal_plays_offline_and_is_counted_later(installed, url):
    """The first start has no connection, so the game is finished without a session."""
    play = ["node", "node_modules/solisync/examples/terminal.js"]
    offline = run([*play, "http://127.0.0.1:9", "terminal"], installed, "s\nt9 f0\nu\nq\nx\n")
    assert "That isn’t possible." in offline
    assert "Won 0 of 1." in offline
    assert "Won 0 of 2." in run([*play, url, "terminal"], installed, "q\nx\n")
    journal = json.loads((installed / "terminal" / "solisync-2.json").read_text("utf-8"))
    (player,) = journal["players"].values()
    assert (player["played"], [entry["settled"] is not None for entry in player["games"]]) == (2, [True, True])


@pytest.mark.needs("npm")
@pytest.mark.limit(10 * PATIENCE)
def test_installed_package_has_strict_types(installed):
    files = ["play.js", "terminal.js"]
    for file in files:
        (installed / file).write_text((PACKAGE / "examples" / file).read_text("utf-8"))
    (installed / "tsconfig.json").write_text(json.dumps({"compilerOptions": STRICT, "files": files}))
    run(["npm", "exec", "--", "tsc"], installed)
