"""Fixtures for acts on the database of the shared service."""

import pytest
from twisted.logger import globalLogPublisher

from solisync.acts.act import Acting, Why
from solisync.events.notices import command_notices
from solisync.process.logs import AUDIT
from solisync.storage.operators.acts import Actor


@pytest.fixture
def database(server, open_database):
    """A pool of four connections without prepared statements, as in commands."""
    return open_database(size=4, statements=())


@pytest.fixture
def acting(database):
    """Acts of an operator with a shell."""
    return Acting(
        database=database,
        publish=command_notices(database),
        by=Actor("shell", "ann_the_operator"),
        why=Why("spam", "seen by hand"),
    )


@pytest.fixture
def audited():
    """Collect the events of the audit trail as they are logged."""
    events = []

    def observe(event):
        if event.get("log_namespace") == AUDIT:
            events.append(event)

    globalLogPublisher.addObserver(observe)
    yield events
    globalLogPublisher.removeObserver(observe)


@pytest.fixture
def recorded(server):
    """Return the record of acts, oldest first, without times."""

    def recorded(columns="actor_kind, actor, act, target, reason, note, before, after"):
        joined = "admin_acts LEFT JOIN admin_notes ON act_id = admin_acts.id"
        return server.sql(f"SELECT {columns} FROM {joined} ORDER BY admin_acts.id")

    return recorded
