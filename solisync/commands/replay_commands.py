"""Rows of the table of subcommands: replays, acts."""

from ..acts import NAMES
from ..klondike import Status
from ..rules.administration import REASONS
from .command import REPLAYS, Command, argument, count, moment

REPLAY_COMMANDS = (
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
        "check the given replays first, or all replays last; replays with a verdict are skipped",
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
