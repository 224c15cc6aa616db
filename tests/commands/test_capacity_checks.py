"""Checks of `solisync doctor` on standbys, disk and sizes: errors, and figures that may be intended."""

import shutil
from datetime import timedelta
from types import SimpleNamespace

import pytest

from solisync.diagnosis import database as database_checks
from solisync.diagnosis.introspection import Replication, Sizes, Standby

GIB, TIB = 2**30, 2**40


def standby(*, synchronous=True, seconds=0.0, size=0):
    return Standby("two", synchronous, timedelta(seconds=seconds), size)


@pytest.mark.parametrize(
    ("waits_for", "standbys", "levels", "says"),
    [
        ("", [], [], ""),
        ("two", [standby()], ["ok"], "1 connected; commits wait for two"),
        ("two", [], ["wrong"], "nothing can be written"),
        ("two", [standby(synchronous=False)], ["wrong"], "nothing can be written"),
        ("", [standby(synchronous=False)], ["note"], "losing the primary can lose"),
        ("two", [standby(seconds=10)], ["ok"], ""),
        ("two", [standby(seconds=11)], ["ok", "wrong"], "two is 0 B and 11 s behind"),
        ("two", [standby(size=2**26)], ["ok"], ""),
        ("two", [standby(size=2**26 + 2**20)], ["ok", "wrong"], "two is 65.0 MiB and 0 s behind"),
    ],
)
def test_doctor_checks_standbys(waits_for, standbys, levels, says):
    """Commits wait for one of them, and no standby is 10 s or 64 MiB behind."""
    found = list(database_checks.replication(Replication(waits_for, standbys, hidden=False)))
    assert [finding.level for finding in found] == levels
    assert says in " ".join(finding.text for finding in found)


def test_standbys_that_a_role_may_not_see_are_noted():
    """The note names the right that the role lacks."""
    (found,) = database_checks.replication(Replication("two", [], hidden=True))
    assert (found.level, found.advice) == ("note", "GRANT pg_monitor TO the role")


@pytest.mark.parametrize(
    ("free", "size", "level"),
    [(GIB, 0, "ok"), (GIB - 1, 0, "wrong"), (10 * GIB, 100 * GIB, "ok"), (10 * GIB - 1, 100 * GIB, "wrong")],
)
def test_disk_needs_a_gib_or_a_tenth_of_the_database(monkeypatch, place, free, size, level):
    """The larger of the two counts."""
    monkeypatch.setattr(shutil, "disk_usage", lambda where: SimpleNamespace(free=free))
    assert database_checks.disk(place, size).level == level


def test_size_of_a_remote_database_is_shown_without_its_disk():
    found = database_checks.disk(None, GIB)
    assert (found.level, found.text.partition(";")[0]) == ("ok", "the database takes 1.0 GiB")


@pytest.mark.parametrize(
    ("total", "events", "days", "transactions", "levels"),
    [
        (2 * TIB, 10 * GIB, None, 10**9, ["ok"]),
        (2 * TIB + 1, 0, None, 0, ["wrong"]),
        (TIB, 10 * GIB + 1, None, 0, ["note"]),
        (TIB, 10 * GIB + 1, 90, 0, ["ok"]),
        (TIB, 0, None, 10**9 + 1, ["wrong"]),
    ],
)
def test_doctor_finds_what_grows_without_bound(total, events, days, transactions, levels):
    """The database is too large for a backup, analytics have no limit of days, or rows are never frozen."""
    sizes = Sizes(total, transactions, [("analytics_events", events), ("users", 1)])
    assert [finding.level for finding in database_checks.tables(sizes, days)] == levels
