"""Subcommands run in the process of the tests."""

import contextlib
import io
import json

import pytest

from solisync.commands.main import command_parser
from solisync.commands.output import Output, ProgressLine
from solisync.commands.task import Task


class Done(str):
    """What a command wrote."""

    @property
    def lines(self):
        return self.split("\n")[:-1]

    @property
    def json(self):
        """Its only JSON object."""
        return json.loads(self)

    @property
    def records(self):
        """Its JSON objects, one in each line."""
        return [json.loads(line) for line in self.lines]


def administration(reactor, dsn):
    """A function that runs a subcommand in this process, on this database unless the environment says otherwise.

    It returns what the subcommand wrote, also when it `fails` with such an error as it should.
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
