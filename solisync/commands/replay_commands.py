"""Rows of the table of subcommands: replays, acts."""

from ..acts import ACTS
from ..klondike import Status
from .command import REPLAYS, Command, argument, count

REPLAY_COMMANDS = (
    Command(
        "replays list",
        "replays:show_list",
        "list the newest replays, or those behind the leaderboard that prove nothing",
        (
            argument("--user", "only replays of this player", metavar="USER"),
            argument("--verdict", "only replays with this verdict", choices=[*Status], metavar="VERDICT"),
            argument("--held", "only replays that an operator keeps unlisted", action="store_true"),
            argument(
                "--top",
                "instead of replays, list those of the leaderboard's first hundred whose best score no replay proves",
                action="store_true",
            ),
            argument("--limit", "list at most N (default 50)", metavar="N", type=count, default=50),
        ),
    ),
    Command(
        "replays unlist",
        "replays:unlist",
        "take replays off the public lists and boards, and keep their players from listing them",
        (REPLAYS,),
        acts=True,
    ),
    Command(
        "replays list-again",
        "replays:list_again",
        "list replays that were taken off the lists, or uploaded under a lock",
        (REPLAYS,),
        acts=True,
    ),
    Command(
        "replays delete",
        "replays:delete",
        "delete replays; bests on the leaderboard stay",
        (REPLAYS,),
        lambda chosen: f"Delete {len(chosen.ids)} replay{'s' if len(chosen.ids) > 1 else ''}?",
        acts=True,
    ),
    Command(
        "replays check",
        "replays:check",
        "check replays that have no verdict: the given ones before all others, or all of them after all others",
        (
            argument("ids", "ids of replays", metavar="ID", nargs="*"),
            argument("--again", "also replays that have a verdict", action="store_true"),
        ),
        acts=True,
    ),
    Command(
        "replays show",
        "replays:show",
        "show a replay's verdict, who else has played the same game, and draw its deal",
        (
            argument("id", "id of a replay", metavar="ID"),
            argument("--boards", "draw the board after each step", action="store_true"),
        ),
    ),
    Command(
        "acts list",
        "operators:list_acts",
        "list what operators have done, the newest first",
        (
            argument("--user", "only what was done to this player and their replays", metavar="USER"),
            argument("--act", "only acts of this kind", metavar="ACT", choices=[act.name for act in ACTS]),
            argument("--actor", "only acts of this operator, such as shell:ann", metavar="ACTOR"),
            argument("--limit", "list at most N acts", metavar="N", type=count),
        ),
    ),
)
