"""The house stays as docs/architecture.md draws it."""

import ast

import pytest

from tests.conftest import ROOT

MODULES = sorted((ROOT / "solisync").rglob("*.py"))
DOORS = {"commands.main", "tap", "worker", "commands.reset_password", "commands.running"}
# A module may import from its own floor and from those below.
FLOORS = [
    {"errors", "__init__", "rules", "klondike"},
    {"process"},
    {"postgres"},
    {"storage"},
    {"access"},
    {"settings", "settings_table", "housekeeping"},
    {"web"},
    {"service", "supervisor", "client"},
    {"commands"},
    {"tap", "worker"},
]
NOUNS = ["accounts", "sessions", "avatars", "sync", "leaderboard", "challenge", "analytics", "health", "swagger_ui"]
# Who may know a library.
KNOWN_TO = {
    "klein": {"web.app"},
    "werkzeug": {"web.error_replies"},
    "txpostgres": {"postgres.session"},
    "psycopg2": {"postgres.session", "postgres.dsn"},
    "jwt": {"access.tokens"},
    "bcrypt": {"access.passwords"},
    "treq": {"client"},
    "prometheus_client": {"process.metrics"},
    "shtab": {"commands.completion"},
}


def name_of(path):
    return ".".join(path.relative_to(ROOT / "solisync").with_suffix("").parts)


def floor_of(name):
    room = name.split(".")[0]
    (floor,) = [number for number, rooms in enumerate(FLOORS) if room in rooms]
    return floor


def imports_of(path):
    """What a module imports: ours as "solisync.web.wire.reply", others by their full dotted name."""
    package = ["solisync", *name_of(path).split(".")[:-1]]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = [*base, *filter(None, [node.module])]
            yield from (".".join([*source, alias.name]) for alias in node.names)


def ours(imports):
    """Those that are modules of solisync, without that prefix; or names in such modules."""
    return [name.removeprefix("solisync.") for name in imports if name.startswith("solisync.")]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_down(path):
    """No module imports one from a floor above its own."""
    for imported in ours(imports_of(path)):
        if imported != "__version__":
            assert floor_of(imported) <= floor_of(name_of(path)), f"{name_of(path)} imports {imported}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_library_is_known_to_few(path):
    """klein, psycopg2, jwt and bcrypt each have one module that knows them."""
    for imported in imports_of(path):
        allowed = KNOWN_TO.get(imported.split(".")[0])
        assert allowed is None or name_of(path) in allowed, f"{name_of(path)} imports {imported}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_doors_see_the_process(path):
    """The global reactor and os.environ are for doors; everything else is given what it needs."""
    if name_of(path) not in DOORS:
        assert "twisted.internet.reactor" not in imports_of(path)
        assert "os.environ" not in path.read_text("utf-8")


@pytest.mark.parametrize("noun", NOUNS)
def test_a_noun_of_the_web_stands_alone(noun):
    """Only the route table brings the nouns together."""
    others = {f"web.{other}" for other in NOUNS if other != noun}
    imported = {name.rpartition(".")[0] for name in ours(imports_of(ROOT / "solisync" / "web" / f"{noun}.py"))}
    assert not imported & others
