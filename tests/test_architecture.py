"""The code keeps the rules of docs/architecture.md: each test states one, and reports every module that breaks it."""

import ast
import re
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter

from solisync.web.page_build import stripped
from tests.harness.constants import ROOT

PACKAGE = ROOT / "solisync"
SCRIPTS = (PACKAGE / "static" / "players" / "web", ROOT / "clients" / "javascript" / "src")
SHARED = {
    "page.js",
    "http.js",
    "playback.js",
    "board.js",
    "faces.js",
    "gestures.js",
}  # with the console
SCRIPT_IMPORT = re.compile(r"(?:\bfrom |\bimport |\bimport\()\"\./([^\"]+)\"")
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
SOURCES = {path: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}

MODULE_LINES = 400
TOP_MODULES = 10

# Entry points: they alone see the environment and the global reactor, the latter through process.entry_point.
ENTRY_POINTS = {"commands.main", "commands.reset_password", "commands.running", "tap", "worker"}
REACTOR = "process.entry_point"

# The modules that may import a library, which all others use through them.
KNOWN_TO = {
    "klein": {"web.app"},
    "werkzeug": {"web.app", "web.error_replies"},
    "txpostgres": {"postgres.connection"},
    "psycopg2": {"postgres.opening", "postgres.connection", "postgres.copying", "postgres.dsn"},
    "jwt": {"access.tokens"},
    "bcrypt": {"access.passwords"},
    "treq": {"client.transport"},
    "prometheus_client": {"process.metrics", "process.shared_metrics", "process.scrape"},
    "shtab": {"commands.parsers"},
    "sqlite3": {"moving_in.sqlite_file"},
}

# SQL is in storage/, and in these modules, each for a reason.
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
    """Return the dotted name below solisync: "web.wire.reply"; for a package its own name."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


NAMES = {path: name_of(path) for path in SOURCES}


@cache
def tree_of(path):
    return ast.parse(SOURCES[path])


def imports_of(path, *, at_once=False):
    """Return the imported modules: those of solisync as "solisync.web.wire.reply", others by their full dotted name.

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
    """Return the names of the solisync modules of which `path` imports the module or a name."""
    known = set(NAMES.values())
    names = [name.removeprefix("solisync.") for name in imports_of(path, **which) if name.startswith("solisync.")]
    return [name if name in known else name.rpartition(".")[0] or "__init__" for name in names]


def check_acyclic(graph):
    """Raise AssertionError with a cycle of imported scripts, if there is one."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from None


def test_serving_imports_neither_commands_nor_console():
    """A service without them starts faster and needs less memory."""
    paths = {name: path for path, name in NAMES.items()}
    assert not [name for name in imports_of(paths["commands.start"], at_once=True) if "solisync" in name]
    reached, new = set(), {"commands.main", "process.daemon", "service"}
    while new:
        reached |= new
        new = {imported for name in new for imported in modules_imported_by(paths[name], at_once=True)} - reached
    table = {"command", "main", "parsers", "player_commands", "table"}
    assert {name.removeprefix("commands.") for name in reached if name.startswith("commands.")} == table
    assert not [name for name in reached if name.startswith(("client", "moving_in", "web.console"))]
    libraries = {imported.split(".")[0] for name in reached for imported in imports_of(paths[name], at_once=True)}
    assert {"klein", "txpostgres"} <= libraries
    assert not {"shtab", "sqlite3", "treq"} & libraries


def script_imports(path):
    """Return the scripts that a script imports; imports of types are comments."""
    return set(SCRIPT_IMPORT.findall(stripped(path.read_text("utf-8"))))


def test_imports_of_page_scripts_have_no_cycle():
    """Calls of import() count as well, except that every page may load what waits to be sent once it runs."""
    scripts = sorted(path for folder in SCRIPTS for path in folder.glob("*.js"))
    graph = {path.name: script_imports(path) for path in scripts}
    graph["page.js"].remove("waiting.js")
    assert len(graph) == len(scripts)  # all are served in one folder
    assert set.union(*graph.values()) <= graph.keys()
    assert "http.js" in graph["page.js"]
    check_acyclic(graph)
    own = (PACKAGE / "static" / "console" / "web").glob("*.js")
    console = {path.name: script_imports(path) for path in sorted(own)}
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


def test_each_library_is_imported_by_few_modules():
    """KNOWN_TO names the modules of each."""
    assert not [
        f"{name} imports {imported}"
        for path, name in NAMES.items()
        for imported in imports_of(path)
        if name not in KNOWN_TO.get(imported.split(".")[0], {name})
    ]


def test_only_entry_points_use_the_reactor_and_environment():
    """All other code gets the reactor and the variables that it needs as arguments."""
    assert not [
        name
        for path, name in NAMES.items()
        if name not in ENTRY_POINTS and (REACTOR in modules_imported_by(path) or "os.environ" in SOURCES[path])
    ]


def test_reactor_uses_the_monotonic_clock():
    """Only the module that takes its timers off the wall clock imports the global reactor."""
    assert [name for path, name in NAMES.items() if "twisted.internet.reactor" in imports_of(path)] == [REACTOR]


def test_sql_is_in_storage():
    """SQL_MODULES lists the exceptions, which the page names."""
    found = {
        NAMES[path]
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.search(node.value)
        if not NAMES[path].startswith("storage")
    }
    assert found == set(SQL_MODULES)
    assert not [name for name in SQL_MODULES if f"`{name.replace('.', '/')}.py`" not in PAGE]


def test_storage_imports_no_function_of_the_rules():
    """storage/ takes shapes and constants from rules/."""
    assert not [
        f"{name} imports {imported}"
        for path, name in NAMES.items()
        if name.startswith("storage")
        for imported in imports_of(path)
        if imported.startswith("solisync.rules") and imported.rpartition(".")[2].islower()
    ]


def test_one_module_makes_transactions():
    """All others get theirs from `transact`, or make Statements."""
    assert [NAMES[path] for path, source in SOURCES.items() if re.search(r"\bTransaction\(", source)] == [
        "postgres.transaction"
    ]


def test_modules_stay_small():
    """No module is longer than MODULE_LINES, and the top of the package has only entry points and wiring."""
    assert not [NAMES[path] for path, source in SOURCES.items() if len(source.splitlines()) > MODULE_LINES]
    assert len([path for path in SOURCES if path.parent == PACKAGE and path.name != "__init__.py"]) <= TOP_MODULES


def test_public_classes_have_unique_names():
    names = [
        node.name
        for path in SOURCES
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert {name for name in names if names.count(name) > 1} == set()


def test_architecture_page_names_each_package():
    """docs/architecture.md has a row for each package, and for the modules beside them where a reader begins."""
    table = PAGE.partition("\n| In `solisync/` |")[2].partition("\n\n")[0]
    shown = {name.rstrip("/").removesuffix(".py") for name in re.findall(r"`([\w/.]+)`(?:, |(?= \|))", table)}
    packages = {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.glob("*/**/__init__.py")}
    modules = {path.stem for path in PACKAGE.glob("[a-z]*.py")}
    assert shown <= packages | modules
    assert packages - shown == {"commands/backup"}
    assert modules - shown == {"errors", "housekeeping"}


def test_header_fields_are_read_by_lower_case_names():
    """A request keeps its names in lower case, and finds no other spelling."""
    asked = re.compile(r"\.(?:fields?|values)\(b\"([^\"]+)\"\)")
    wrong = {path.name: names for path, source in SOURCES.items() if (names := _capitalized(asked.findall(source)))}
    assert not wrong


def _capitalized(names):
    return [name for name in names if name != name.lower()]
