"""Write the constants of the service that the console uses: `python -m tests.script_facts`, or `make docs`."""

import json
from typing import get_args

from solisync import acts
from solisync.klondike.verdict import Status
from solisync.rules.administration import NOTE_MAX, REASONS, Kind
from solisync.storage.operators import daily_numbers
from solisync.storage.players.player_lists import MEMBERS, Order, State
from solisync.web.console.declaring import TEXT_MAX
from solisync.web.console.players import Where
from tests.harness.constants import ROOT

CONSOLE = {
    "ACTS": acts.NAMES,
    "KINDS": get_args(Kind),
    "MEMBERS": MEMBERS,
    "NOTE_MAX": NOTE_MAX,
    "NUMBERS": daily_numbers.NAMES,
    "REASONS": REASONS,
    "SORTS": get_args(Order),
    "STATES": get_args(State),
    "TEXT_MAX": TEXT_MAX,
    "VERDICTS": tuple(each.value for each in Status),
    "WHERE": get_args(Where),
}
FILE = ROOT / "solisync" / "static" / "console" / "web" / "console_facts.js"


def module():
    """The text of the module."""
    lines = ["// @ts-check", "/** Constants of the service. `make docs` writes this file. */", ""]
    for name, value in sorted(CONSOLE.items()):
        text = json.dumps(value)
        lines.append(
            f"export const {name} = {f'/** @type {{const}} */ ({text})' if isinstance(value, tuple) else text};"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(module(), "utf-8")
    print(f"wrote {FILE.relative_to(ROOT)}")
