"""The code keeps the rules of docs/architecture.md: each test states one, and reports every module that breaks it."""

import ast
import re
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter

from tests.harness.constants import ROOT

PACKAGE = ROOT / "solisync"
NOUNS = PACKAGE / "web" / "resources"
SCRIPTS = PACKAGE / "static" / "players" / "web"
SHARED = {"page.js", "http.js", "playback.js", "board.js", "gestures.js"}  # with the console
SCRIPT_IMPORT = re.compile(r"(?:\bfrom |\bimport |\bimport\()\"\./([^\"]+)\"")
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
SOURCES = {path: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}

MODULE_LINES = 300
TOP_MODULES = 10

# From the bottom up: a module may import from its own floor and from those below. "web.wire" is a floor of its own.
FLOORS = (
    {"errors", "__init__"},
    {"rules", "klondike"},
    {"process"},
    {"postgres"},
    {"embedded"},
    {"storage"},
    {"events"},
    {"access"},
    {"acts"},
    {"settings", "housekeeping", "players", "checking", "moving_in"},
    {"diagnosis"},
    {"web.wire"},
    {"web"},
    {"supervisor", "serving", "service", "client"},
    {"commands"},
    {"tap", "worker"},
)

# Entry points: they alone see the environment and the global reactor, the latter through process.entry_point.
ENTRY_POINTS = {"commands.main", "commands.reset_password", "commands.running", "tap", "worker"}
REACTOR = "process.entry_point"

# The modules that may import a library, which all others use through them.
KNOWN_TO = {
    "klein": {"web.app"},
    "werkzeug": {"web.app", "web.error_replies"},
    "txpostgres": {"postgres.connecting"},
    "psycopg2": {"postgres.connecting", "postgres.opening", "postgres.connection", "postgres.dsn"},
    "jwt": {"access.tokens"},
    "bcrypt": {"access.passwords"},
    "treq": {"client.transport"},
    "prometheus_client": {"process.metrics", "process.shared_metrics", "process.scrape"},
    "shtab": {"commands.parsers"},
    "sqlite3": {"moving_in.sqlite_file"},
}

# Handlers that wrap those of other nouns.
WRAPPED = {
    "browser_sessions": {"accounts", "sessions", "new_passwords"},  # the same sessions, with a cookie
    "guests": {"accounts", "sync"},  # the rules of registering, the answers of a push
}

# SQL stands in storage/, and here, each for a reason.
SQL_MODULES = {
    "postgres.migrate": "applies migrations, and keeps the list of them, before any table exists",
    "postgres.migration_lock": "takes an advisory lock, before any table exists",
    "postgres.opening": "settings of each connection",
    "diagnosis.introspection": "asks the server about itself, whatever the schema",
    "moving_in.players": "stores the players that an import brings",
    "moving_in.records": "stores what an import brings of players",
    "moving_in.sqlite_file": "reads the SQLite file of another server",
    "commands.backup.backup": "edits the statements with which pg_restore begins, which are PostgreSQL's own",
}
SQL = re.compile(r"\b(SELECT\s|INSERT INTO\s|UPDATE\s+\w+\s+SET\s|DELETE FROM\s)")


def name_of(path):
    """The dotted name below solisync: "web.wire.reply"; a package by its own name."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


NAMES = {path: name_of(path) for path in SOURCES}


@cache
def tree_of(path):
    return ast.parse(SOURCES[path])


def imports_of(path, *, at_once=False):
    """The imported modules: those of solisync as "solisync.web.wire.reply", others by their full dotted name.

    With `at_once`, only those that are imported together with the module, and not those that a function imports.
    """
    parts = path.relative_to(PACKAGE).parts[:-1]
    package = ["solisync", *parts]
    tree = tree_of(path)
    for node in tree.body if at_once else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = [*base, *filter(None, [node.module])]
            yield from (".".join([*source, alias.name]) for alias in node.names)


@cache
def modules_imported_by(path, **which):
    """The modules of solisync, by their names, that `path` imports itself or a name of."""
    known = set(NAMES.values())
    names = [name.removeprefix("solisync.") for name in imports_of(path, **which) if name.startswith("solisync.")]
    return [name if name in known else name.rpartition(".")[0] or "__init__" for name in names]


def floor_of(name):
    room = "web.wire" if name.startswith("web.wire") else name.split(".")[0]
    (floor,) = [number for number, rooms in enumerate(FLOORS) if room in rooms]
    return floor


def test_imports_point_down():
    """No module imports one from a floor above its own."""
    assert not [
        f"{name} imports {imported}"
        for path, name in NAMES.items()
        for imported in modules_imported_by(path)
        if floor_of(imported) > floor_of(name)
    ]


def check_acyclic(graph):
    """No way through the imported modules of each module leads back to it; AssertionError with one that does."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from None


def test_there_is_no_circle():
    """No chain of imports, file by file, leads back to where it began; none is hidden from run time."""
    check_acyclic(
        {name: {imported for imported in modules_imported_by(path) if imported != name} for path, name in NAMES.items()}
    )
    assert not [NAMES[path] for path, source in SOURCES.items() if "TYPE_CHECKING" in source]


def test_serving_imports_neither_commands_nor_console():
    """Whoever serves neither waits for what it doesn't need, nor keeps it in memory."""
    paths = {name: path for path, name in NAMES.items()}
    assert [*imports_of(paths["commands.start"], at_once=True)] == ["gc"]
    reached, new = set(), {"commands.main", "process.daemon", "service"}
    while new:
        reached |= new
        new = {imported for name in new for imported in modules_imported_by(paths[name], at_once=True)} - reached
    table = {"command", "main", "parsers", "player_commands", "replay_commands", "table"}
    assert {name.removeprefix("commands.") for name in reached if name.startswith("commands.")} == table
    assert not [name for name in reached if name.startswith(("client", "moving_in", "web.console"))]
    libraries = {imported.split(".")[0] for name in reached for imported in imports_of(paths[name], at_once=True)}
    assert {"klein", "txpostgres"} <= libraries
    assert not {"shtab", "sqlite3", "treq"} & libraries


def test_scripts_have_no_circle():
    """No chain of imports among the scripts of the pages leads back to where it began, import() included."""
    graph = {path.name: set(SCRIPT_IMPORT.findall(path.read_text("utf-8"))) for path in sorted(SCRIPTS.glob("*.js"))}
    assert set.union(*graph.values()) <= graph.keys()
    assert "http.js" in graph["page.js"]
    check_acyclic(graph)
    own = (PACKAGE / "static" / "console" / "web").glob("*.js")
    console = {path.name: set(SCRIPT_IMPORT.findall(path.read_text("utf-8"))) for path in sorted(own)}
    served = {name: imported for name, imported in graph.items() if name in SHARED} | console
    assert set.union(*served.values()) <= served.keys()
    check_acyclic(console)
    assert "sign_in.js" in served["api.js"]


def test_rules_are_pure():
    """rules/ imports the standard library, msgspec, errors, klondike/ and itself; klondike/ the first two, itself."""
    allowed = {*sys.stdlib_module_names, "msgspec"}
    known = {"klondike": ("solisync.klondike.",)}
    known["rules"] = (*known["klondike"], "solisync.rules.", "solisync.errors.")
    assert not [
        f"{name} imports {imported}"
        for path, name in NAMES.items()
        if (package := name.split(".")[0]) in known
        for imported in imports_of(path)
        if imported.split(".")[0] not in allowed and not imported.startswith(known[package])
    ]


def test_a_library_is_known_to_few():
    """A library of KNOWN_TO is imported by the modules named there alone."""
    assert not [
        f"{name} imports {imported}"
        for path, name in NAMES.items()
        for imported in imports_of(path)
        if name not in KNOWN_TO.get(imported.split(".")[0], {name})
    ]


def test_only_entry_points_see_the_process():
    """The global reactor and os.environ are for entry points; all other code gets what it needs as arguments."""
    assert not [
        name
        for path, name in NAMES.items()
        if name not in ENTRY_POINTS and (REACTOR in modules_imported_by(path) or "os.environ" in SOURCES[path])
    ]


def test_the_reactor_is_on_the_monotonic_clock():
    """The global reactor is imported by the module alone that takes its timers off the wall clock."""
    assert [name for path, name in NAMES.items() if "twisted.internet.reactor" in imports_of(path)] == [REACTOR]


def test_a_noun_of_the_web_stands_alone():
    """No module of web/resources imports another one, but for WRAPPED: the route table brings them together."""
    nouns = {name.removeprefix("web.resources."): path for path, name in NAMES.items() if path.parent == NOUNS}
    del nouns["web.resources"]  # builds them
    assert len(nouns) >= 10
    assert not [
        f"{noun} imports {imported}"
        for noun, path in nouns.items()
        for imported in modules_imported_by(path)
        if imported.removeprefix("web.resources.") in nouns.keys() - {noun} - WRAPPED.get(noun, set())
    ]


def test_sql_stands_in_storage():
    """Statements are written in storage/ and in the modules of SQL_MODULES, which the page names."""
    found = {
        NAMES[path]
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.search(node.value)
        if not NAMES[path].startswith("storage")
    }
    assert found == set(SQL_MODULES)
    assert not [name for name in SQL_MODULES if f"`{name.replace('.', '/')}.py`" not in PAGE]


def test_storage_decides_nothing():
    """storage/ takes shapes and constants from rules/, and no function."""
    assert not [
        f"{name} imports {imported}"
        for path, name in NAMES.items()
        if name.startswith("storage")
        for imported in imports_of(path)
        if imported.startswith("solisync.rules") and imported.rpartition(".")[2].islower()
    ]


def test_a_transaction_is_begun_where_it_is_committed():
    """One module makes a Transaction; all others get theirs from `transact`, or make Statements."""
    assert [NAMES[path] for path, source in SOURCES.items() if re.search(r"\bTransaction\(", source)] == [
        "postgres.transaction"
    ]


def test_modules_stay_small():
    """No module is longer than MODULE_LINES, and the top of the package holds entry points and wiring only."""
    assert not [NAMES[path] for path, source in SOURCES.items() if len(source.splitlines()) > MODULE_LINES]
    assert len([path for path in SOURCES if path.parent == PACKAGE and path.name != "__init__.py"]) <= TOP_MODULES


def test_a_name_stands_for_one_class():
    """No two public classes of the package have the same name."""
    names = [
        node.name
        for path in SOURCES
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert {name for name in names if names.count(name) > 1} == set()


def test_architecture_page_names_each_package():
    """docs/architecture.md has a row for each package, and for the modules beside them that a reader starts with."""
    table = PAGE.partition("\n| In `solisync/` |")[2].partition("\n\n")[0]
    shown = {name.rstrip("/").removesuffix(".py") for name in re.findall(r"`([\w/.]+)`(?:, |(?= \|))", table)}
    packages = {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.glob("*/**/__init__.py")}
    modules = {path.stem for path in PACKAGE.glob("[a-z]*.py")}
    assert shown <= packages | modules
    assert packages - shown == {"commands/backup"}
    assert modules - shown == {"errors", "housekeeping"}


def test_header_fields_are_asked_for_in_lower_case():
    """A request keeps their names so, and has no field by another spelling."""
    asked = re.compile(r"\.(?:fields?|values)\(b\"([^\"]+)\"\)")
    wrong = {path.name: names for path, source in SOURCES.items() if (names := _capitalized(asked.findall(source)))}
    assert not wrong


def _capitalized(names):
    return [name for name in names if name != name.lower()]
