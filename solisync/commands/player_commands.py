"""Rows of the table of subcommands: users, sessions, leaderboard, avatars."""

import argparse

from .command import USER, Command, argument, count, moment, prefix, some, time_to_come


def _suspended(chosen: argparse.Namespace) -> str | None:
    return f"Suspend {len(chosen.users)} players?" if len(chosen.users) > 1 else None


_NEWEST = argument("--limit", "list at most N (default 50)", metavar="N", type=count, default=50)

PLAYER_COMMANDS = (
    Command(
        "users list",
        "users:show_list",
        "list players, with their last use and the space that they take",
        (
            argument(
                "--name",
                "only players whose names begin with PREFIX",
                metavar="PREFIX",
                type=prefix,
                default="",
            ),
            argument("--since", "only players who registered on this day or later", metavar="DATE", type=moment),
            argument(
                "--order",
                "by name (the default), or the newest, last used or largest first (at most 1000 players)",
                choices=("name", "registered", "used", "bytes"),
                default="name",
            ),
            argument("--guests", "only guests, which are accounts without a password", action="store_true"),
            argument("--limit", "list at most N players", metavar="N", type=count),
        ),
    ),
    Command(
        "users find",
        "users:find",
        "find players by the beginning of their names, whatever the case, or by their ids",
        (
            argument("text", "what to look for", metavar="TEXT"),
            argument("--part", "TEXT may be anywhere in the name", action="store_true"),
            argument("--display-name", "TEXT is a part of the name on the leaderboard", action="store_true"),
            argument("--address", "TEXT is an address, from which something has happened to them", action="store_true"),
        ),
    ),
    Command("users show", "users:show_one", "show facts and counts about a player", (USER,)),
    Command(
        "users suspend",
        "users:suspend",
        "keep players out, and what is theirs off the lists; again: with another end and message",
        (
            argument("users", "usernames, or ids", metavar="USER", nargs="+"),
            argument("--until", "when it ends by itself; without it, it lasts", metavar="DATE", type=time_to_come),
            argument("--message", "what the players are told when they log in, up to 200 characters", metavar="TEXT"),
        ),
        _suspended,
        acts=True,
    ),
    Command(
        "users unsuspend",
        "users:unsuspend",
        "let a player in again; what was visible is so again",
        (USER,),
        acts=True,
    ),
    Command(
        "users lock",
        "users:lock",
        "keep a player from changing what others see: entry and avatar; uploads are not listed",
        (USER,),
        acts=True,
    ),
    Command(
        "users unlock",
        "users:unlock",
        "let a player change again what others see; replays that were held stay so",
        (USER,),
        acts=True,
    ),
    Command(
        "users rename",
        "users:rename",
        "change a player's username; the old one becomes free",
        (USER, argument("username", "the new username", metavar="USERNAME")),
        acts=True,
    ),
    Command(
        "users delete",
        "users:delete",
        "delete a player and all their data, as players can themselves; analytics events lose the name",
        (USER,),
        lambda chosen: f"Delete '{chosen.user}' and all their data?",
        acts=True,
    ),
    Command(
        "users export",
        "users:export",
        "write all data about a player, without password and tokens, as one JSON document",
        (USER,),
        acts=True,
    ),
    Command(
        "users history",
        "users:show_history",
        "list what has happened to a player and what operators have done, the last first",
        (
            USER,
            argument("--limit", "list at most N lines (default 100)", metavar="N", type=some, default=100),
        ),
    ),
    Command(
        "users link",
        "users:link",
        "make a link with which a player sets a new password, once, within an hour",
        (
            USER,
            argument(
                "--lock-out",
                "end the old password, all sessions and access tokens, and recovery codes at once",
                action="store_true",
            ),
        ),
        acts=True,
    ),
    Command("sessions list", "sessions:show_list", "list a player's sessions", (USER,)),
    Command(
        "sessions revoke",
        "sessions:revoke",
        "end the sessions of a player or of everybody; access tokens stay valid until they expire, at most a day later",
        (
            argument("user", "username, or id", metavar="USER", nargs="?"),
            argument("--everyone", "end all sessions of all players", action="store_true"),
            argument("--access", "refuse the player's access tokens too, within a second", action="store_true"),
        ),
        lambda chosen: f"End all sessions of {'everybody' if chosen.everyone else repr(chosen.user)}?",
        either=("user", "--everyone"),
        acts=True,
    ),
    Command(
        "leaderboard list",
        "profiles:list_entries",
        "list the names that players have lately chosen for the leaderboard, the newest first",
        (_NEWEST,),
    ),
    Command(
        "leaderboard name",
        "profiles:name",
        "give a player's entry another display name",
        (USER, argument("name", "the new display name", metavar="NAME")),
        acts=True,
    ),
    Command(
        "leaderboard hide",
        "profiles:hide",
        "hide a player's entry until the player opts in again; the bests are kept",
        (USER, argument("--lock", "lock the profile too, so that the entry stays hidden", action="store_true")),
        acts=True,
    ),
    Command(
        "leaderboard show",
        "profiles:show",
        "show a player's hidden entry again, even if the player has opted out",
        (USER,),
        acts=True,
    ),
    Command(
        "avatars list",
        "profiles:list_avatars",
        "list the avatars that players have lately uploaded, the newest first",
        (_NEWEST,),
    ),
    Command("avatars remove", "profiles:remove_avatar", "take a player's avatar away", (USER,), acts=True),
)
