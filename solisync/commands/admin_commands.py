"""Rows of the table of subcommands: admins."""

from .command import Command, argument

_ADMIN = argument("name", "the name of an admin", metavar="ADMIN")

ADMIN_COMMANDS = (
    Command("admins add", "admins:add", "let an admin sign in to the console, with codes", (_ADMIN,)),
    Command(
        "admins remove",
        "admins:remove",
        "remove an admin, and end their sessions at once",
        (_ADMIN,),
        lambda chosen: f"Remove the admin '{chosen.name}'?",
    ),
    Command("admins list", "admins:show_list", "list admins, with the number and the last use of their sessions"),
    Command(
        "admins code",
        "admins:code",
        "make a code with which an admin signs in, once, within 15 minutes; a former one doesn't count any more",
        (_ADMIN,),
    ),
    Command(
        "admins sessions",
        "admins:sessions",
        "list sessions of admins, or end the sessions of one admin",
        (
            argument("name", "only those of this admin", metavar="ADMIN", nargs="?"),
            argument("--end", "end all of them, at once", action="store_true"),
            argument("--end-session", "end the one with this id, at once", metavar="ID"),
        ),
    ),
)
