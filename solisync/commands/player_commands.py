"""Rows of the table of subcommands: users, progress, sessions, leaderboard, avatars."""

import argparse

from .command import USER, Command, argument, count, moment, prefix, some, time_to_come


def _suspended(chosen: argparse.Namespace) -> str | None:
    return f"Suspend {len(chosen.users)} players?" if len(chosen.users) > 1 else None


_NEWEST = argument("--limit", "list at most N (default: 50)", metavar="N", type=count, default=50)

PLAYER_COMMANDS = (
    Command(
        "users list",
        "users:show_list",
        "list players, with their last use and storage space",
        (
            argument(
                "--name",
                "only players whose usernames begin with PREFIX",
                metavar="PREFIX",
                type=prefix,
                default="",
            ),
            argument("--since", "only players who registered since this day or time", metavar="DATE", type=moment),
            argument(
                "--order",
                "by name (the default), or up to 1000: the newest, last used, with most replays or most bytes first",
                choices=("name", "registered", "used", "replays", "bytes"),
                default="name",
            ),
            argument("--state", "only players in this state", choices=("guests", "suspended", "locked")),
            argument(
                "--guests",
                "only guests: accounts without a password",
                action="store_const",
                const="guests",
                dest="state",
            ),
            argument("--limit", "list at most N players", metavar="N", type=count),
        ),
    ),
    Command(
        "users find",
        "users:find",
        "find players by id, or by the beginning of the username in any case",
        (
            argument("text", "the text to search for", metavar="TEXT"),
            argument("--part", "TEXT may be anywhere in the username", action="store_true"),
            argument("--display-name", "TEXT is a part of the name on the leaderboard", action="store_true"),
            argument("--address", "TEXT is an address: find players with events from it", action="store_true"),
        ),
    ),
    Command("users show", "users:show_one", "show facts and counts about a player", (USER,)),
    Command(
        "users suspend",
        "users:suspend",
        "suspend players and hide their content; repeat to change the end and the message",
        (
            argument("users", "usernames or ids", metavar="USER", nargs="+"),
            argument("--until", "end of the suspension (default: no end)", metavar="DATE", type=time_to_come),
            argument("--message", "text that the players see when they log in, up to 200 characters", metavar="TEXT"),
        ),
        _suspended,
        acts=True,
    ),
    Command(
        "users unsuspend",
        "users:unsuspend",
        "end a suspension and restore visibility",
        (USER,),
        acts=True,
    ),
    Command(
        "users lock",
        "users:lock",
        "lock a profile: its leaderboard entry and avatar can't change, and new replays stay unlisted",
        (USER,),
        acts=True,
    ),
    Command(
        "users unlock",
        "users:unlock",
        "unlock a profile; held replays stay held",
        (USER,),
        acts=True,
    ),
    Command(
        "users rename",
        "users:rename",
        "change a player's username; the old name becomes free",
        (USER, argument("username", "the new username", metavar="USERNAME")),
        acts=True,
    ),
    Command(
        "users delete",
        "users:delete",
        "delete a player and all their data; their analytics events lose the name",
        (USER,),
        lambda chosen: f"Delete '{chosen.user}' and all their data?",
        acts=True,
    ),
    Command(
        "users export",
        "users:export",
        "write all data about a player as one JSON document, without password and tokens",
        (USER,),
        acts=True,
    ),
    Command(
        "users history",
        "users:show_history",
        "list a player's events and the acts of operators, newest first",
        (
            USER,
            argument("--limit", "list at most N lines (default: 100)", metavar="N", type=some, default=100),
        ),
    ),
    Command(
        "users link",
        "users:link",
        "make a link with which a player sets a new password; it works once, within an hour",
        (
            USER,
            argument(
                "--lock-out",
                "end the old password, all sessions, access tokens and recovery codes immediately",
                action="store_true",
            ),
        ),
        acts=True,
    ),
    Command(
        "progress restore",
        "progress:restore",
        "merge the progress of an export into a player's, as if a device pushed it; nothing is lowered",
        (
            USER,
            argument(
                "--from",
                "the export: of the player, of users export, or of a restored backup",
                metavar="EXPORT",
                dest="file",
                required=True,
            ),
            argument("--other-account", "the export may be of another account", action="store_true"),
        ),
        acts=True,
    ),
    Command("sessions list", "sessions:show_list", "list a player's sessions", (USER,)),
    Command(
        "sessions revoke",
        "sessions:revoke",
        "end the sessions of one player or of all players; access tokens stay valid for up to a day",
        (
            argument("user", "username or id", metavar="USER", nargs="?"),
            argument("--everyone", "end all sessions of all players", action="store_true"),
            argument("--access", "also refuse the player's access tokens, within a second", action="store_true"),
        ),
        lambda chosen: f"End all sessions of {'all players' if chosen.everyone else repr(chosen.user)}?",
        either=("user", "--everyone"),
        acts=True,
    ),
    Command(
        "leaderboard list",
        "profiles:list_entries",
        "list the names that players recently chose for the leaderboard, newest first",
        (_NEWEST,),
    ),
    Command(
        "leaderboard name",
        "profiles:name",
        "change the display name of a player's leaderboard entry",
        (USER, argument("name", "the new display name", metavar="NAME")),
        acts=True,
    ),
    Command(
        "leaderboard hide",
        "profiles:hide",
        "hide a player's leaderboard entry until the player opts in again; its best scores are kept",
        (USER, argument("--lock", "also lock the profile, so that the entry stays hidden", action="store_true")),
        acts=True,
    ),
    Command(
        "leaderboard show",
        "profiles:show",
        "show a player's hidden leaderboard entry again, even if the player has opted out",
        (USER,),
        acts=True,
    ),
    Command(
        "avatars list",
        "profiles:list_avatars",
        "list the avatars that players recently uploaded, newest first",
        (_NEWEST,),
    ),
    Command("avatars remove", "profiles:remove_avatar", "remove a player's avatar", (USER,), acts=True),
)
