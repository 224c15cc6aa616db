"""Shell completion of the `solisync` command, generated from its parser, so that it is never out of date."""

import argparse
from collections.abc import Iterator

SHELLS = ("bash", "zsh", "fish", "tcsh")


class PrintCompletion(argparse.Action):
    """Prints the completion script for a shell, and exits."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: object, shell: object, option_string: str | None = None
    ) -> None:
        import shtab

        completed = {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY}  # by the metavar of an argument
        for action in _actions(parser):
            if action.metavar in completed:
                action.complete = completed[action.metavar]  # type: ignore[attr-defined]
        print(shtab.complete(parser, str(shell)))
        parser.exit()


def add_option(group: argparse._ActionsContainer) -> None:
    """Add `--print-completion SHELL`."""
    group.add_argument(
        "--print-completion",
        choices=SHELLS,
        metavar="SHELL",
        action=PrintCompletion,
        help=f"print a completion script for a shell: {', '.join(SHELLS)}",
    )


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for subcommand in action.choices.values():
                yield from _actions(subcommand)
