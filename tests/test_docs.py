"""The documents agree with the code."""

import json
import re
import tomllib
from typing import get_args

import pytest
from msgspec import inspect, structs

from solisync import __version__
from solisync.access import passwords, rate_limit
from solisync.access.client_address import ADDRESS_MAX, HOPS_MAX
from solisync.access.large_bodies import BURST_BYTES, BYTES_PER_SECOND, LARGE_BYTES
from solisync.access.rate_limit import ANALYTICS, AUTH, EXPORT, GUEST, OPT_IN, STREAMS
from solisync.access.tokens import TOKEN_MAX
from solisync.checking import checker, confinement, timeline_maker, timelines
from solisync.commands.main import command_parser
from solisync.commands.parsers import subparsers
from solisync.commands.smoke import PIXEL
from solisync.commands.table import COMMANDS
from solisync.events.streams import PER_PLAYER
from solisync.klondike.daily import FIRST_DAY
from solisync.klondike.game import UNDO_DEPTH
from solisync.klondike.rules import RANK_NAMES, SUIT_NAMES
from solisync.klondike.verdict import MOVES_MAX
from solisync.players import history
from solisync.postgres import TIMES, pool
from solisync.process import audit
from solisync.rules import recovery
from solisync.rules.accounts import PASSWORD_MAX_BYTES, USERNAME_LENGTH
from solisync.rules.administration import MANY, MESSAGE_MAX, NOTE_MAX
from solisync.rules.analytics import EVENTS_MAX, PAYLOAD_MAX_BYTES
from solisync.rules.boards import DAILY_HOURS
from solisync.rules.events import BOARDS_MAX
from solisync.rules.games import KEPT, KEPT_OF_GUEST
from solisync.rules.json_body import MAX_NESTING
from solisync.rules.leaderboard import DISPLAY_NAME_MAX
from solisync.rules.replays import EXPONENT_MAX, MOMENT_MAX, SPELLING_MAX
from solisync.rules.sessions import USER_AGENT_LENGTH
from solisync.rules.shapes import MAX_BODY
from solisync.rules.sync import MOST, Achievement, Payload, Progress, Stats
from solisync.settings.table import TABLE
from solisync.storage.players.export import PAGE_BYTES
from solisync.storage.players.games import MOST_NEW
from solisync.web import handler_limits
from solisync.web.app import HANDLER_SECONDS
from solisync.web.console.declaring import TEXT_MAX
from solisync.web.kept_replies import ACCEPT_MAX
from solisync.web.route import Json
from solisync.web.wire import body, connection, deadlines, parse
from solisync.web.wire.access_log import ORIGIN_CHARACTERS
from solisync.web.wire.connections import UNFINISHED_MAX, UNREAD_MAX
from solisync.web.wire.request import PARAMETERS_MAX
from tests import script_facts
from tests.harness.console import table as console_table
from tests.harness.constants import BIN, PASSWORD, ROOT
from tests.harness.curl_examples import curl_examples, follow
from tests.harness.error_codes import table as players_table
from tests.harness.processes import run

DOCS = {
    path.name if path.name != "README.md" else str(path.relative_to(ROOT)): path.read_text("utf-8")
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
}
MIB = 2**20
ALONE = {"--migrate", "--new-database", "--version", "--help", "--yes", "--json"}  # options of solisync without a value
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def test_every_setting_is_documented_and_no_other():
    """docs/configuration.md lists the variables and options of the settings table, with their defaults."""
    rows = re.findall(r"^\| `([A-Z_]+)` \| (?:`--([a-z-]+)`)? ?\| (.+?) \|", DOCS["configuration.md"], re.M)
    documented = {(variable, option) for variable, option, _ in rows}
    real = {(setting.variable, setting.option) for setting in TABLE}
    assert documented == real
    defaults = {variable: default for variable, _, default in rows}
    for setting in TABLE:
        if setting.field != "data_dir":
            assert defaults[setting.variable] == (f"`{setting.default}`" if setting.default else "–"), setting.variable


def test_every_variable_that_a_document_names_exists():
    real = {setting.variable for setting in TABLE}
    for name, text in DOCS.items():
        assert set(re.findall(r"\bSOLISYNC_[A-Z_]+\b", text)) <= real, name


def test_every_event_of_the_audit_trail_is_documented_and_no_other():
    (row,) = re.findall(r"^\| `event`, .*$", DOCS["operations.md"], re.M)
    documented = set(re.findall(r"`([^`]+)`", row.split("|")[2])) - {"source", "solisync.audit"}
    assert documented == set(get_args(audit.Event))


def test_every_make_target_that_a_document_names_exists():
    """The changelog is an exception: it names former targets."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    for name, text in DOCS.items():
        assert name == "CHANGELOG.md" or set(re.findall(r"(?:^    |`|\$ )make ([a-z-]+)", text, re.M)) <= targets, name


def test_every_module_that_a_document_names_exists():
    """A page may leave out the package."""
    files = [str(path) for name in ("solisync", "tests", "bench") for path in (ROOT / name).rglob("*.py")]
    files += [str(path) for path in ROOT.glob("*.py")]
    for name, text in DOCS.items():
        for module in re.findall(r"`([\w/]+\.py)`", text):
            assert any(file.endswith(f"/{module}") for file in files), (name, module)


def test_every_dependency_is_documented_with_its_reason():
    """docs/architecture.md has a row for each package that setup.py, pyproject.toml and .ci/javascript require."""
    setup = (ROOT / "setup.py").read_text("utf-8")
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    wanted = set(re.findall(r'^ +"([a-z0-9-]+)(?:\[\w+\])?>=', setup, re.M)) | {re.match(r"[a-z-]+", build[0])[0]}
    tools = json.loads((ROOT / ".ci" / "javascript" / "package.json").read_text("utf-8"))["devDependencies"]
    wanted |= {name for name in tools if not name.startswith("@")}
    assert set(re.findall(r"^\| \*\*([a-z0-9-]+)\*\* \| .{10,}", DOCS["architecture.md"], re.M)) == wanted


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_the_docs_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("command", ["solisync", "solisync-reset-password", "twistd solisync"])
def test_every_option_that_a_document_names_exists(command):
    """`--help` of each command has the options that the pages show with it."""
    program, *subcommand = command.split()
    known = set()
    for words in (
        [BIN / program],
        [BIN / program, *subcommand],
    ):  # twistd has options of its own in front of the plugin's
        known |= set(re.findall(r"--[a-z][a-z-]+", "".join(run(*words, "--help").out)))
    if command == "solisync":  # tests/commands/test_table.py is more exact about those
        known |= {argument.name for each in COMMANDS for argument in each.arguments}
        known |= {"--json", "--yes", "--reason", "--note"}
    for name, text in DOCS.items():
        for line in re.findall(rf"(?:^    (?:\$ )?|`){re.escape(command)}( [^`\n]*)?", text, re.M):
            assert set(re.findall(r"--[a-z][a-z-]+", line)) <= known, name


def section(page, heading):
    """A part of a page, up to the next heading of its level."""
    return DOCS[page].split(f"## {heading}\n")[1].split("\n## ")[0]


def test_bounds_on_the_security_page_are_those_of_the_code():
    shown = dict(re.findall(r"^\| (.+?) \| (.+) \|$", section("security.md", "Bounds"), re.M))
    auth, reports = (f"{limit.most} in {limit.seconds} s from one address" for limit in (AUTH, ANALYTICS))
    quota = next(setting.default for setting in TABLE if setting.field == "replay_quota_mib")
    figures = {
        "header": f"{parse.MAX_HEADER_BYTES // 1024} KiB, {parse.MAX_HEADERS} lines, {connection.HEADER_SECONDS:g} s",
        "body": f"{MAX_BODY // MIB} MiB, {connection.BODY_SECONDS:g} s;",
        "new guests": f"{GUEST.most} in {GUEST.seconds:,} s from one address (`SOLISYNC_GUEST_LIMIT`)",
        "unfinished bodies": f"{UNFINISHED_MAX // MIB} MiB of all clients together in each process",
        f"bodies over {LARGE_BYTES // 1024} KiB": f"a burst of {BURST_BYTES // MIB} MiB,"
        f" then {BYTES_PER_SECOND // MIB} MiB a second, for each account",
        "requests that a client sends ahead": f"{connection.ANSWERS_PER_TURN} of a connection in a turn",
        "JSON": f"{MAX_NESTING} levels",
        "chunks of a body": f"{body.CHUNKS:,} in a row must have {body.CHUNK_BYTES} bytes on average, else 400;"
        f" {body.CHUNKS_PER_TURN} of a connection in a turn of the reactor, then as above;"
        f" {body.LINE_MAX // 1024} KiB of extensions each, and {parse.MAX_HEADERS} trailers",
        "query": f"{PARAMETERS_MAX} parameters, then 400",
        "handling": f"{HANDLER_SECONDS:g} s, then 503",
        "a connection between requests": "120 s",
        "an answer that is not read": f"{deadlines.TAKEN_BYTES // 1024} KiB must be read in each"
        f" {deadlines.UNREAD_SECONDS:g} s; of all clients together {UNREAD_MAX // MIB} MiB in each process",
        "passwords waiting": f"as many as can be hashed in {passwords.QUEUE_SECONDS:g} s, then 503",
        "work waiting for the database": f"{TIMES.borrow:g} s, and {pool.BORROWERS:,} at the same time",
        "a statement, a lock, a transaction": f"5 s, 4 s, {TIMES.work:g} s",
        "register, login, refresh, recover, reset": f"{auth} (`SOLISYNC_AUTH_LIMIT`)",
        "history of accounts": f"one row for all that is the same within a second; {history.QUEUE:,} rows wait",
        "keys of guests": f"{rate_limit.PASSWORD.most} changes in {rate_limit.PASSWORD.seconds} s for each player",
        "analytics": f"{reports}, {EVENTS_MAX} events each, {PAYLOAD_MAX_BYTES // 1024} KiB each",
        "games by their ids": f"{rate_limit.GAMES.most} requests in {rate_limit.GAMES.seconds} s for each player, and"
        f" {MOST_NEW:,} new games in 24 h; {KEPT:,} ids are kept, of a guest {KEPT_OF_GUEST:,}",
        "joins of guests": f"{rate_limit.JOIN.most} in {rate_limit.JOIN.seconds} s for each player;",
        "exports": f"{EXPORT.most} in {EXPORT.seconds} s for each player; of each at most one page in memory,"
        f" some {PAGE_BYTES // 1024} KiB or one replay",
        "opting in and out": f"{OPT_IN.most} in {OPT_IN.seconds} s for each player,",
        "streams of live events": f"{PER_PLAYER} of one player and {STREAMS.most} openings in {STREAMS.seconds} s",
        "one player's writes": f"one at a time in each process, {handler_limits.WAITING} waiting, then 429",
        "checking a replay": f"{checker.CPU_SECONDS} s of processor time and {confinement.MEMORY_BYTES // MIB} MiB,",
        "making a timeline": f"{timeline_maker.CPU_SECONDS} s of processor time and"
        f" {confinement.MEMORY_BYTES // MIB} MiB, in a separate process; one at a time, {timelines.WAITING} waiting,"
        f" then 503; {timelines.KEPT_BYTES // MIB} MiB are remembered",
        "one account": f"{quota} MiB of replays",
    }
    for what, figure in figures.items():
        assert shown[what].startswith(figure), what
    assert set(shown) - set(figures) == {"What"}


def test_security_page_has_every_text_that_clients_send():
    """Each field of a body, parameter, path variable and header has the bound of the code."""
    shown = {}
    for texts, bound in re.findall(r"^\| (.+?) \| (.+?) \|", section("security.md", "Texts that clients send"), re.M):
        shown |= dict.fromkeys(re.findall(r"`(.+?)`", texts), bound)
    routes = (*players_table(), *console_table())
    bodies = [route.body.shape for route in routes if isinstance(route.body, Json)]
    read = {name for shape in bodies for name in texts_of(inspect.type_info(shape))}
    read |= {name for route in routes for name in route.parameters}
    read |= {f"{{{name}}}" for route in routes for name in route.variables}
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "solisync" / "web").rglob("*.py"))
    read |= set(re.findall(r"\b(?:fields?|values)(?:\.get\(|\[|\()b\"([a-z-]+)\"", sources))
    assert set(shown) == read
    figures = {
        "username": f"{USERNAME_LENGTH[0]}–{USERNAME_LENGTH[-1]} letters",
        "new_password": f"a new one: {PASSWORD_MAX_BYTES:,} bytes",
        "authorization": f"a token: {TOKEN_MAX:,} characters",
        "code": f"a code: {recovery._LONGEST} characters",
        "display_name": f"{DISPLAY_NAME_MAX} code points",
        "recorded_at": f"{MOMENT_MAX} characters, 9 digits of a second",
        "final_score": f"an exponent from −{EXPONENT_MAX} to {EXPONENT_MAX}; {SPELLING_MAX} characters",
        "weekly_goal_week_iso": f"with all of progress, {MAX_BODY // MIB} MiB; at most {MOST.unknown_fields:,}",
        "note": f"{NOTE_MAX}, {MESSAGE_MAX} code points",
        "payload": f"{PAYLOAD_MAX_BYTES:,} bytes",
        "ids": f"{MANY} UUIDs",
        "q": f"{TEXT_MAX} characters",
        "board": f"{BOARDS_MAX} names",
        "user-agent": f"{USER_AGENT_LENGTH} characters",
        "accept-encoding": f"{ACCEPT_MAX} characters",
        "x-forwarded-for": f"{HOPS_MAX} hops from the right, {ADDRESS_MAX} characters each",
        "origin": f"{ORIGIN_CHARACTERS} characters",
        "host": f"{parse.MAX_HEADER_BYTES // 1024} KiB with the header",
    }
    for name, figure in figures.items():
        assert shown[name].startswith(figure), name


def texts_of(kind, name=""):
    """Return the names of all fields of a shape that may hold text, a time, or a number as it is spelled."""
    match kind:
        case inspect.Metadata(type=inner):
            return texts_of(inner, name)
        case inspect.UnionType(types=kinds):
            return {text for each in kinds for text in texts_of(each, name)}
        case inspect.StructType(fields=fields):
            return {text for each in fields for text in texts_of(each.type, each.encode_name)}
        case inspect.ListType(item_type=inner):
            return texts_of(inner, name)
        case inspect.IntType() | inspect.BoolType() | inspect.LiteralType() | inspect.NoneType():
            return set()
    return {name}


async def test_examples_of_the_protocol_return_the_documented_fields(server):
    """Every curl command of docs/protocol.md returns 200 and the fields below it."""
    examples = curl_examples(DOCS["protocol.md"])
    assert len(examples) >= 14
    payload = re.search(r"```json\n(.+?)```", DOCS["sync.md"], re.S)[1]
    await follow(server, examples, {"@payload.json": payload.encode(), "@avatar.png": PIXEL})


async def test_sync_page_shows_the_real_merge_of_two_devices(server):
    """The example in docs/sync.md has the right counts, times, conflict and final streak."""
    payload = json.loads(re.search(r"```json\n(.+?)```", DOCS["sync.md"], re.S)[1])
    payload["stats"]["win_streak_current"] = 0
    tablet = json.loads(json.dumps(payload))
    tablet["stats"] |= {"games_won": 3, "fastest_win_seconds": 80, "win_streak_current": 3}
    phones, tablets = await server.player("ann"), server.client()
    await tablets.login("ann", PASSWORD)
    answers = [
        (await server.ask("POST", "/api/sync/push", body=body, bearer=client.tokens.access_token)).json
        for client, body in ((phones, payload), (tablets, tablet), (phones, payload))
    ]
    conflict = {"field": "win_streak_current", "local_value": "3", "remote_value": "0"}
    assert [answer["conflicts"] for answer in answers] == [[], [conflict], []]
    stats = [answer["merged"]["stats"] for answer in answers]
    assert [each["win_streak_current"] for each in stats] == [0, 3, 0]
    assert (stats[2]["games_won"], stats[2]["fastest_win_seconds"]) == (50, 80)


def test_sync_page_names_the_optional_fields():
    told = DOCS["sync.md"].split("These may be left out")[1].split("All other fields")[0]
    optional = {
        field.name
        for shape in (Payload, Stats, Achievement, Progress)
        for field in structs.fields(shape)
        if not field.required
    }
    shown = set(re.findall(r"`(\w+[a-z])`", told)) - {"stats", "progress"}
    modes, records = re.findall(r"`(\w+_)`", told), re.findall(r"`…(_\w+)`", told)
    assert shown | {mode + record.removeprefix("_") for mode in modes for record in records} == optional


async def test_fields_that_the_server_derives_are_required(server):
    """`games_lost` and `level` of a push may have any value. Of several missing fields the error names one."""
    payload = json.loads(re.search(r"```json\n(.+?)```", DOCS["sync.md"], re.S)[1])
    payload["stats"]["games_lost"], payload["progress"]["level"] = 1, 99
    token = (await server.player("ann")).tokens.access_token
    merged = (await server.ask("POST", "/api/sync/push", body=payload, bearer=token)).json["merged"]
    assert (merged["stats"]["games_lost"], merged["progress"]["level"]) == (70, 10)
    del payload["stats"]["games_lost"], payload["progress"]["level"]
    answer = await server.ask("POST", "/api/sync/push", body=payload, bearer=token)
    assert (answer.status, "games_lost" in answer.json["error"], "level" in answer.json["error"]) == (400, True, False)


def test_readme_shows_the_beginning_of_the_smoke_check():
    """README has the first steps that `make smoke` prints, the version, and the last line."""
    source = (ROOT / "solisync" / "commands" / "smoke.py").read_text("utf-8")
    first, *others = re.findall(r'self\._step\("([^"]+)"', source)[:3]
    steps = [f"ok   {first}", f"     version {__version__}", *(f"ok   {name}" for name in others)]
    shown = "".join(f"    {line}\n" for line in ["$ make smoke", *steps, "…", "all steps passed"])
    assert f"\n\n{shown}\n" in DOCS["README.md"]


REFERENCE = re.compile(r'(docs/[\w-]+\.md) "([^"]+)"')
SOURCES_WITH_REFERENCES = [
    path for folder in ("solisync", "tests", "bench") for path in sorted((ROOT / folder).rglob("*.py"))
]


def headings(page):
    """Return the headings of a page of docs/."""
    return set(re.findall(r"^#+ (.+)$", (ROOT / page).read_text("utf-8"), re.M))


def test_every_reference_to_a_heading_of_the_docs_exists():
    """Where code names a section of docs/, that page has a heading with those words."""
    references = {
        (path.name, page, heading)
        for path in SOURCES_WITH_REFERENCES
        for page, heading in REFERENCE.findall(" ".join(path.read_text("utf-8").split()))
    }
    assert len(references) > 20
    assert not [each for each in references if each[2] not in headings(each[1])]


def test_section_signs_cite_public_standards_only():
    """Every § in code follows the name of a public standard."""
    standards = re.compile(r"(RFC \d+|Fetch standard)( §[\d.]+(,| and)?)+")
    assert not [
        (path.name, line.strip())
        for path in SOURCES_WITH_REFERENCES
        for line in path.read_text("utf-8").splitlines()
        if "§" in standards.sub("", line) and path.name != "test_docs.py"
    ]


@pytest.mark.parametrize("name", DOCS)
def test_commands_in_the_docs_exist(name):
    """Pages name existing subcommands, with the arguments that the first try needs."""
    known = subparsers(command_parser())
    for line in re.findall(
        r"(?<=`)(?:[\w./]*/)?solisync [^`\n]+(?=`)|^ {4}(?:[\w./$]*/)?solisync .+", DOCS[name], re.M
    ):
        words = line.split("#")[0].split()[1:]
        while words and words[0].startswith("--") and "=" not in words[0] and words[0] not in ALONE:
            words = words[2:]  # an option and its value
        if words and re.fullmatch(r"[a-z-]+", words[0]) and not words[0].startswith("-"):
            assert words[0] in known, line


def test_first_steps_of_the_readme_are_complete_commands():
    """Each subcommand in README.md runs as documented."""
    lines = re.findall(r"`\.venv/bin/solisync ([^`]+)`", DOCS["README.md"])
    assert lines
    for line in lines:
        assert command_parser().parse_args(line.split()).command is not None


def test_console_has_the_constants_of_the_service():
    """`make docs` renews the module."""
    assert script_facts.FILE.read_text("utf-8") == script_facts.module()


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("clients/javascript/src/goal.js", f'const BONUS_ENDS = "{FIRST_DAY}";'),
        ("clients/javascript/src/goal.js", f"export const DAY_HOURS = {DAILY_HOURS};"),
        ("clients/javascript/src/klondike_game.js", f"const UNDO_DEPTH = {UNDO_DEPTH};"),
        ("solisync/static/players/web/faces.js", f"const RANKS = {json.dumps(RANK_NAMES)};"),
        ("solisync/static/players/web/faces.js", f"const SUITS = {json.dumps(SUIT_NAMES)};"),
        ("solisync/static/players/web/display_name.js", f"maxlength: {2 * DISPLAY_NAME_MAX},"),
        ("solisync/static/players/web/game.js", f"const MOVES_MAX = {MOVES_MAX:_};"),
    ],
)
def test_scripts_of_players_have_the_constants_of_the_service(file, line):
    """A module of constants would be one more request of each page."""
    assert line in (ROOT / file).read_text("utf-8")
