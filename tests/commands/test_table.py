"""The table of subcommands, the parser that is made from it, and the page that documents it."""

import argparse
import inspect
import re

import pytest

from solisync.commands import table
from solisync.commands.main import command_parser, main
from solisync.commands.table import COMMANDS
from solisync.commands.task import Task
from tests.harness.constants import ROOT
from tests.harness.entry_points import SOLISYNC
from tests.harness.processes import run

PAGE = (ROOT / "docs" / "administration.md").read_text("utf-8")
RECORDED = {"--reason", "--note"}
SHARED = {"--yes", "--limit", "--progress"}  # of many commands, in the table at the top of the page
COMMON = {"--help", "--json", "--env-file", "--data-dir", "--database-url-file"}


def sections():
    """The page's sections about commands: {words: (arguments, options, text)}."""
    found = {}
    for heading, text in re.findall(r"^### `solisync ([^`]+)`\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S):
        words = [word for word in heading.split() if word.islower()]
        options = {re.match(r"--[a-z-]+", option)[0] for option in re.findall(r"^\| `(--[^`]+)`", text, re.M)}
        found[" ".join(words)] = [word.strip("…") for word in heading.split() if word.isupper()], options, text
    return found


def parser_of(words):
    """The parser of a subcommand."""
    parser = command_parser()
    for word in words.split():
        (under,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        parser = under.choices[word]
    return parser


def test_every_command_has_its_function():
    """Each function is a coroutine function that takes a task, and no two commands share one."""
    functions = [command.load() for command in COMMANDS]
    assert {inspect.iscoroutinefunction(function) for function in functions} == {True}
    assert {inspect.get_annotations(function)["task"] for function in functions} == {Task}
    assert len(set(functions)) == len(COMMANDS)


def test_every_command_is_documented_and_no_other():
    assert [*sections()] == [command.words for command in COMMANDS]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_arguments_and_options_are_documented_and_no_others(command):
    """The heading has the arguments, the table the other options; the text mentions the confirmation."""
    parser = parser_of(command.words)
    real = {option for action in parser._actions for option in action.option_strings if option.startswith("--")}
    arguments, options, text = sections()[command.words]
    assert options == real - COMMON - (RECORDED if command.acts else set()) - SHARED
    assert ("Recorded" in text) == (real >= RECORDED) == command.acts
    assert real >= COMMON
    positional = [action.metavar for action in parser._actions if not action.option_strings]
    assert arguments == positional
    assert ("Asks first" in text) == ("--yes" in real) == (command.question is not None)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_every_command_has_help(command, capsys, monkeypatch):
    """Help exits with 0 and describes the command in a sentence."""
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit, match="0"):
        main([*command.words.split(), "--help"])
    assert f"{command.help[1:]}.\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["users"],
        ["users", "list", "extra"],
        ["users", "list", "--limit", "-1"],
        ["users", "list", "--limit", "many"],
        ["users", "list", "--name", "a b"],
        ["users", "list", "--lim", "1"],
        ["users", "show"],
        ["users", "rename", "ann"],
        ["replays", "delete", "--yes"],
        ["analytics", "export", "--format", "xml"],
        ["backup"],
        ["backup", "file", "--into", "directory"],
        ["backup", "--into", "directory", "--keep", "0"],
        ["--migrate", "status"],
        ["--smoke", "http://x", "status"],
        ["status", "--listen", "tcp:1"],
        ["nonsense"],
    ],
    ids=" ".join,
)
def test_wrong_command_exits_with_2(words, capsys):
    """The usage is printed, and nothing is done."""
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert capsys.readouterr().err.startswith("usage: solisync")


def test_database_option_works_before_and_after_the_command(place):
    """The option after the command wins."""
    for words, wanted in (
        (["--data-dir", "before", "status"], "before"),
        (["status", "--data-dir", "behind"], "behind"),
        (["--data-dir", "before", "status", "--data-dir", "behind"], "behind"),
    ):
        assert command_parser().parse_args(words).data_dir == wanted
    for words in (["--data-dir", place, "status"], ["status", "--data-dir", place]):
        done = run(*SOLISYNC, *words)
        assert done.status == 1
        assert f"there is no database in {place}" in done.err[0]


def test_wrong_settings_are_one_line_each(place):
    """Commands need no JWT_SECRET."""
    done = run(*SOLISYNC, "status", DATABASE_URL="nonsense", SOLISYNC_DATABASE_CONNECTIONS="0", JWT_SECRET="short")
    assert (done.status, done.out, len(done.err)) == (1, [], 2)


def test_every_resource_has_commands():
    """No resource lacks a verb, and the table lacks no resource."""
    assert {command.words.split()[0] for command in COMMANDS if " " in command.words} == set(table.NOUNS)


def parsers_below(parser):
    """Yield all parsers of subcommands, with the help texts that list them."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            listed = {choice.dest: choice.help for choice in action._choices_actions}
            for name, child in action.choices.items():
                yield name, listed[name], child
                yield from parsers_below(child)


def test_descriptions_keep_the_capitals_of_the_help():
    """The page of a command has its help text as a sentence; names and abbreviations keep their capitals."""
    for name, text, parser in parsers_below(command_parser()):
        if parser.description is not None:
            assert parser.description == f"{text[0].upper()}{text[1:]}.", name
