"""The table of acts, and the page that explains it."""

import re
from inspect import iscoroutinefunction

from solisync.acts import players, profiles, replays
from solisync.acts.table import ACTS
from solisync.commands.table import COMMANDS
from solisync.web.console.acts import Acts
from tests.harness.constants import ROOT

PAGE = (ROOT / "docs" / "moderation.md").read_text("utf-8")


def test_the_page_names_each_act():
    """docs/moderation.md lists the acts as they are in the record, each once."""
    listed = re.search(r"^The acts are (.*?)\.$", PAGE, re.M | re.S)[1]
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(act.name for act in ACTS)


def test_each_act_has_a_name_of_its_own():
    """By which it is found in the record."""
    assert len({act.name for act in ACTS}) == len(ACTS) > 10


def test_each_act_has_a_command():
    """A command that acts performs it, by a reference to its Act, whose module and name are as in the table."""
    commands = (ROOT / "solisync" / "commands").glob("*.py")
    assert {name for act in ACTS for name in _names(act)} <= _performed(commands)
    assert sum(command.acts for command in COMMANDS) >= len(ACTS)


def test_each_act_has_one_route():
    """Handlers of the console perform all acts, and each handler has one route."""
    module = ROOT / "solisync" / "web" / "console" / "acts.py"
    assert {name for act in ACTS for name in _names(act)} == _performed([module])
    handlers = [value for name, value in vars(Acts).items() if iscoroutinefunction(value) and not name.startswith("_")]
    assert all(hasattr(handler, "declared") for handler in handlers)


def _performed(files):
    """The constants of acts that these files perform."""
    sources = "".join(path.read_text("utf-8") for path in files)
    found = re.findall(r"\b(?:acts|players|profiles|replays)\.([A-Z_]+\b|perform_[a-z_]+)", sources)
    return {name.removeprefix("perform_").upper() for name in found}


def _names(act):
    return [name for module in (players, profiles, replays) for name, value in vars(module).items() if value is act]
