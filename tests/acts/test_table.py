"""The table of acts, and the page that explains it."""

import ast
import re
from inspect import getsource, iscoroutinefunction

from solisync.acts import ACTS
from solisync.acts.act import Act
from solisync.commands import profiles, replays, sessions, users
from solisync.commands.table import COMMANDS
from solisync.web.console import acts
from tests.harness.constants import ROOT

PAGE = (ROOT / "docs" / "moderation.md").read_text("utf-8")


def performed(*modules):
    """The names of the acts that these modules mention, as in `players.lock`; `perform_rename` mentions `rename`."""
    found = set()
    for module in modules:
        for node in ast.walk(ast.parse(getsource(module))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                act = getattr(getattr(module, node.value.id, None), node.attr.removeprefix("perform_"), None)
                found |= {act.name} if isinstance(act, Act) else set()
    return found


def test_the_page_names_each_act():
    """docs/moderation.md lists the names that acts have in the record, each once."""
    listed = re.search(r"^The acts are (.*?)\.$", PAGE, re.M | re.S)[1]
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(act.name for act in ACTS)


def test_each_act_has_its_own_name():
    """Names find acts in the record."""
    assert len({act.name for act in ACTS}) == len(ACTS) > 10


def test_each_act_has_a_command():
    """A command with the options --reason and --note performs it."""
    assert performed(users, sessions, profiles, replays) == {act.name for act in ACTS}
    assert sum(command.acts for command in COMMANDS) >= len(ACTS)


def test_each_act_has_a_route():
    """Handlers of the console perform all acts, and each handler has a route."""
    assert performed(acts) == {act.name for act in ACTS}
    handlers = [
        value for name, value in vars(acts.Acts).items() if iscoroutinefunction(value) and not name.startswith("_")
    ]
    assert all(hasattr(handler, "declared") for handler in handlers)
