"""The table of acts, and the page that explains acts."""

import ast
import re
from inspect import getsource, iscoroutinefunction

from solisync.acts import ACTS
from solisync.acts.act import Act
from solisync.commands import profiles, progress, replays, sessions, users
from solisync.commands.table import COMMANDS
from solisync.web.console import acts
from tests.harness.constants import ROOT

PAGE = (ROOT / "docs" / "moderation.md").read_text("utf-8")


def performed(*modules):
    """Return the names of the acts in these modules, as in `players.lock`; `perform_rename` gives `rename`."""
    found = set()
    for module in modules:
        for node in ast.walk(ast.parse(getsource(module))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                act = getattr(getattr(module, node.value.id, None), node.attr.removeprefix("perform_"), None)
                found |= {act.name} if isinstance(act, Act) else set()
    return found


def test_page_lists_each_act_once():
    """docs/moderation.md has the names under which acts are recorded."""
    listed = re.search(r"^The acts are (.*?)\.$", PAGE, re.M | re.S)[1]
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(act.name for act in ACTS)


def test_acts_have_different_names():
    """The record finds acts by name."""
    assert len({act.name for act in ACTS}) == len(ACTS) > 10


def test_every_act_has_a_command():
    """A command with the options --reason and --note performs it."""
    assert performed(users, progress, sessions, profiles, replays) == {act.name for act in ACTS}
    assert sum(command.acts for command in COMMANDS) >= len(ACTS)


def test_every_act_has_a_route():
    """Handlers of the console perform all acts, and each handler has a route."""
    assert performed(acts) == {act.name for act in ACTS}
    handlers = [
        value for name, value in vars(acts.Acts).items() if iscoroutinefunction(value) and not name.startswith("_")
    ]
    assert all(hasattr(handler, "declared") for handler in handlers)
