"""The table of subcommands: names, arguments, and the functions that run them."""

from ..acts import NAMES
from ..klondike import Status
from ..rules.administration import KEPT_DAYS, REASONS
from .command import REPLAYS, Command, argument, count, days, moment, share, some
from .player_commands import PLAYER_COMMANDS

NOUNS = {
    "users": "manage players",
    "progress": "restore progress",
    "sessions": "manage sessions",
    "leaderboard": "manage entries of the leaderboard",
    "avatars": "manage avatars",
    "replays": "manage replays",
    "acts": "list the acts of operators",
    "admins": "manage the admins of the console",
    "analytics": "export analytics events",
}

_ADMIN = argument("name", "the name of an admin", metavar="ADMIN")

_REPLAY_COMMANDS = (
    Command(
        "replays list",
        "replays:show_list",
        "list recent replays, or leaderboard scores that no verified replay proves",
        (
            argument("--user", "only replays of this player", metavar="USER"),
            argument("--verdict", "only replays with this verdict", choices=[*Status], metavar="VERDICT"),
            argument("--held", "only held replays, which an operator keeps unlisted", action="store_true"),
            argument(
                "--top",
                "instead of replays, list the players of the leaderboard's top 100 whose best score is unproven",
                action="store_true",
            ),
            argument("--limit", "list at most N (default: 50)", metavar="N", type=count, default=50),
        ),
    ),
    Command(
        "replays unlist",
        "replays:unlist",
        "take replays off public lists and boards, and prevent their players from listing them again",
        (REPLAYS,),
        acts=True,
    ),
    Command(
        "replays list-again",
        "replays:list_again",
        "release held replays, and list those that their players haven't hidden",
        (REPLAYS,),
        acts=True,
    ),
    Command(
        "replays delete",
        "replays:delete",
        "delete replays; best scores on the leaderboard stay",
        (REPLAYS,),
        lambda chosen: f"Delete {len(chosen.ids)} replay{'s' if len(chosen.ids) > 1 else ''}?",
        acts=True,
    ),
    Command(
        "replays check",
        "replays:check",
        "queue the given replays before all others, or without ids all replays last; skip those with a verdict",
        (
            argument("ids", "ids of replays", metavar="ID", nargs="*"),
            argument("--again", "also replays that have a verdict", action="store_true"),
        ),
        acts=True,
    ),
    Command(
        "replays show",
        "replays:show",
        "show a replay: its verdict, its deal, and other players' replays of the same game",
        (
            argument("id", "id of a replay", metavar="ID"),
            argument("--boards", "draw the board after each step", action="store_true"),
        ),
    ),
    Command(
        "acts list",
        "operators:list_acts",
        "list the acts of operators, newest first",
        (
            argument("--user", "only acts on this player and their replays", metavar="USER"),
            argument("--act", "only acts of this kind", metavar="ACT", choices=NAMES),
            argument("--actor", "only acts of this actor, such as shell:ann or admin:ann", metavar="ACTOR"),
            argument("--reason", "only acts with this reason", metavar="REASON", choices=REASONS),
            argument("--since", "only acts since this day or time", metavar="DATE", type=moment),
            argument("--until", "only acts before this day or time", metavar="DATE", type=moment),
            argument("--limit", "list at most N acts", metavar="N", type=count),
        ),
    ),
)

_ADMIN_COMMANDS = (
    Command("admins add", "operators:add", "add an admin, who signs in to the console with codes", (_ADMIN,)),
    Command(
        "admins remove",
        "operators:remove",
        "remove an admin and end their sessions immediately",
        (_ADMIN,),
        lambda chosen: f"Remove the admin '{chosen.name}'?",
    ),
    Command("admins list", "operators:list_admins", "list admins, with the number and the last use of their sessions"),
    Command(
        "admins code",
        "operators:code",
        "make a code with which an admin signs in; it works once, within 15 minutes, and replaces an earlier code",
        (_ADMIN,),
    ),
    Command(
        "admins sessions",
        "operators:sessions",
        "list the sessions of admins, or end sessions of one admin",
        (
            argument("name", "only sessions of this admin", metavar="ADMIN", nargs="?"),
            argument("--end", "end all sessions of this admin immediately", action="store_true"),
            argument("--end-session", "end the session with this id immediately", metavar="ID"),
        ),
    ),
)

_PROGRESS = argument("--progress", "report progress even if standard error is not a terminal", action="store_true")

COMMANDS = (
    *PLAYER_COMMANDS,
    *_REPLAY_COMMANDS,
    *_ADMIN_COMMANDS,
    Command(
        "analytics export",
        "analytics:export",
        "write analytics events in the order of their arrival",
        (
            argument("--format", "jsonl (one object per line) or csv", choices=("jsonl", "csv"), default="jsonl"),
            argument("--since", "only events since this day or time, in UTC", metavar="DATE", type=moment),
            argument("--until", "only events before this day or time, in UTC", metavar="DATE", type=moment),
            _PROGRESS,
        ),
    ),
    Command(
        "backup",
        "backup.backup:backup",
        "write the whole database, except sessions, to a file for pg_restore",
        (
            argument("file", "the file to write", metavar="FILE", nargs="?"),
            argument("--into", "write to a new file in DIR, named by the time", metavar="DIR"),
            argument("--keep", "with --into, delete all but the newest N backups", metavar="N", type=some),
            argument("--force", "replace the file if it exists", action="store_true"),
            argument("--with-sessions", "also back up sessions, for a move; no service may run", action="store_true"),
            _PROGRESS,
        ),
        either=("file", "--into"),
    ),
    Command(
        "restore",
        "backup.backup:restore",
        "fill an empty database from a backup and update its schema; all players have to log in again",
        (
            argument("file", "the file to read", metavar="FILE"),
            argument("--with-sessions", "also restore sessions, so that players stay logged in", action="store_true"),
            _PROGRESS,
        ),
    ),
    Command(
        "import-original",
        "import_original:bring",
        "import the SQLite file of an original server, even while that server runs; can be repeated",
        (
            argument("file", "the SQLite file of the original server", metavar="FILE"),
            argument("--avatars", "the directory in which the original server keeps avatars", metavar="DIR"),
            argument("--dry-run", "report what an import would do, and change nothing", action="store_true"),
            argument("--allow-refused", "exit with status 0 even if rows were refused", action="store_true"),
            _PROGRESS,
        ),
    ),
    Command(
        "seed",
        "seed:fill",
        "fill a database with made-up players, to try the service, to size a machine or to test clients",
        (
            argument("--players", "number of players (default: 200)", metavar="N", type=some, default=200),
            argument(
                "--replays",
                "number of replays of all players together (default: as many as players)",
                metavar="N",
                type=count,
            ),
            argument(
                "--verified",
                "share of the players whose replays are won games, from 0 to 1 (default: 0.9)",
                metavar="SHARE",
                type=share,
                default=0.9,
            ),
            argument(
                "--password-stdin",
                "read one password for all of them from standard input; without it, no client can log in as them",
                action="store_true",
            ),
            argument("--force", "fill the database even if it has several other players", action="store_true"),
            _PROGRESS,
        ),
    ),
    Command(
        "housekeeping",
        "housekeeping:keep_house",
        "delete now what is old, as the service does by itself, and show what each job did",
        (
            argument(
                "--catch-up",
                "instead, set the retention clock to the database's clock, by which the next jobs delete",
                action="store_true",
            ),
        ),
        lambda chosen: "Delete all that is old by the database's clock?" if chosen.catch_up else None,
    ),
    Command(
        "status",
        "doctor:show_status",
        "show versions, the database and row counts",
        (
            argument(
                "--days",
                f"show the numbers of the last N days instead, 1 to {KEPT_DAYS}",
                metavar="N",
                type=days,
            ),
        ),
    ),
    Command("doctor", "doctor:examine", "check the settings, the host and the database for problems"),
)
