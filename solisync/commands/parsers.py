"""The parsers of the subcommands, made from their table; runs the chosen subcommand; prints completion scripts."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, cast

from ..rules.administration import NOTE_MAX, REASONS
from ..settings.settings import ENV_FILE, ENV_FILE_HELP
from ..settings.table import TABLE
from .command import Command, sentence
from .table import COMMANDS, NOUNS

SHELLS = ("bash", "zsh", "fish", "tcsh")
PLACES = ("data-dir", "database-url-file")  # the options that select the database


def add_commands(parser: argparse.ArgumentParser) -> "argparse._SubParsersAction[argparse.ArgumentParser]":
    """Add the subcommands to a parser. In parsed arguments, `command` is the chosen Command, or None.

    Returns the argparse action to which more subcommands can be added.
    """
    parser.set_defaults(command=None)
    group = parser.add_subparsers(title="administration", metavar="COMMAND", help="run COMMAND --help for details")
    nouns = {}
    for noun, text in NOUNS.items():
        under = group.add_parser(noun, help=text, description=sentence(text), allow_abbrev=False)
        nouns[noun] = under.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        noun, _, verb = command.words.partition(" ")
        place, name = (nouns[noun], verb) if verb else (group, noun)
        text = sentence(command.help)
        _add_arguments(place.add_parser(name, help=command.help, description=text, allow_abbrev=False), command)
    return group


def subparsers(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """Return the parsers of the words that may come next, by these words."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return cast(Mapping[str, argparse.ArgumentParser], action.choices)
    return {}


def _add_arguments(parser: argparse.ArgumentParser, command: Command) -> None:
    parser.set_defaults(command=command)
    choice = parser.add_mutually_exclusive_group(required=True) if command.either else parser
    for argument in command.arguments:
        place = choice if argument.name in command.either else parser
        place.add_argument(argument.name, help=argument.help, **argument.how)
    if command.acts:
        reasons = f"the reason, for the record of acts: {', '.join(REASONS)}"
        parser.add_argument("--reason", help=reasons, choices=REASONS, metavar="REASON")
        parser.add_argument("--note", help=f"a note for the record, up to {NOTE_MAX} characters", metavar="TEXT")
    parser.add_argument("--json", action="store_true", help="write JSON, one object per line")
    if command.question is not None:
        parser.add_argument("--yes", action="store_true", help="don't ask for confirmation")
    group = parser.add_argument_group("settings")
    group.add_argument(f"--{ENV_FILE}", metavar="FILE", help=ENV_FILE_HELP, default=argparse.SUPPRESS)
    for setting in TABLE:
        if setting.option in PLACES:  # a default would override the same option in front of the subcommand
            group.add_argument(
                f"--{setting.option}", metavar=setting.metavar, help=setting.description, default=argparse.SUPPRESS
            )


def execute(chosen: argparse.Namespace, options: Mapping[str, str], environ: Mapping[str, str]) -> NoReturn:
    """Run the chosen subcommand, and exit."""
    from .output import Output, ProgressLine, confirm
    from .running import run
    from .task import Task

    command: Command = chosen.command
    if command.question is not None and not chosen.yes and (question := command.question(chosen)) is not None:
        confirm(question)
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]

    async def work(reactor: Any) -> None:
        task = Task(
            chosen=chosen,
            options=options,
            environ=environ,
            reactor=reactor,
            output=Output(sys.stdout, json=chosen.json),
            progress=ProgressLine(sys.stderr, wanted=getattr(chosen, "progress", False)),
        )
        await command.load()(task)

    run(work, log_format=options.get("log-format") or environ.get("SOLISYNC_LOG_FORMAT", "text"))


class PrintCompletion(argparse.Action):
    """Prints the completion script for a shell, and exits."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: object, shell: object, option_string: str | None = None
    ) -> None:
        import shtab

        completed = {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY}  # by the metavar of an argument
        for action in _all_actions(parser):
            if action.metavar in completed:
                action.complete = completed[action.metavar]  # type: ignore[attr-defined]
        print(shtab.complete(parser, str(shell)))
        parser.exit()


def add_completion(group: argparse._ActionsContainer) -> None:
    """Add `--print-completion SHELL`."""
    group.add_argument(
        "--print-completion",
        choices=SHELLS,
        metavar="SHELL",
        action=PrintCompletion,
        help=f"print a completion script for a shell: {', '.join(SHELLS)}",
    )


def _all_actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for subcommand in action.choices.values():
                yield from _all_actions(subcommand)
