"""How long the pool, its connections and migrations wait."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTimes:
    """The times of a pool, in seconds."""

    borrow: float = 2.0  # how long a borrower waits for a connection before it is declined
    work: float = 6.0  # how long a connection is lent; above statement_timeout, for a server that is frozen
    again: float = 0.05  # before work is run again: the other side of a deadlock gets the lock it waits for by then
    sweep: float = 0.25  # how often to look for borrowers that wait too long or keep a connection too long
    reconnect: float = 0.5  # the pause after an attempt to connect has failed
    connect: float = 3.0  # how long connecting may take for each address of each host, the setup included
    head_start: float = 0.5  # how long after one address or host the next one is tried too
    settled: float = 1.0  # how long after connecting a refusal to write is put down to the server as it has always been
    misfit: float = 60.0  # how long a connection goes on without the statements that didn't fit the schema it has met


TIMES = PoolTimes()


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationTimes:
    """How a migration waits for others, in seconds."""

    notice: float = 1.0  # how long to wait for a node that migrates before that is logged
    pause: float = 5.0  # between two attempts to get tables that others use
    patience: float = 300.0  # for these tables, in all


MIGRATION_TIMES = MigrationTimes()
