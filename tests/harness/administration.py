"""Running subcommands in the process of the tests."""

import contextlib
import io
import json

import pytest

from solisync.commands.main import command_parser
from solisync.commands.output import Output, ProgressLine
from solisync.commands.task import Task


class Done(str):
    """The output of a command."""

    @property
    def lines(self):
        return self.split("\n")[:-1]

    @property
    def json(self):
        """The only JSON object in the output."""
        return json.loads(self)

    @property
    def records(self):
        """The JSON objects in the output, one a line."""
        return [json.loads(line) for line in self.lines]


def administration(reactor, dsn):
    """Return a function that runs a subcommand in this process, on this database unless the environment names another.

    The function returns the output of the subcommand, even if the subcommand `fails` with the expected error.
    """

    async def administrate(*words, fails=None, **environ):
        chosen = command_parser().parse_args([str(word) for word in words])
        out, errors = io.StringIO(), io.StringIO()
        task = Task(
            chosen=chosen,
            options={},
            environ={"DATABASE_URL": dsn} | {name: str(value) for name, value in environ.items()},
            reactor=reactor,
            output=Output(out, json=chosen.json),
            progress=ProgressLine(errors, wanted=getattr(chosen, "progress", False)),
        )
        with contextlib.nullcontext() if fails is None else pytest.raises(fails):
            await chosen.command.load()(task)
        done = Done(out.getvalue())
        done.progress = errors.getvalue().splitlines()
        return done

    return administrate
