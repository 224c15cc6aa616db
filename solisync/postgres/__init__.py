"""Everything that knows the database server: connections, transactions, the schema. Here are the times of the pool."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTimes:
    """The times of a pool and its connections, in seconds."""

    borrow: float = 2.0  # how long a borrower waits for a connection before it is declined
    work: float = 6.0  # how long a connection is lent; above statement_timeout, for a server that is frozen
    again: float = 0.05  # before work is run again: the other side of a deadlock gets the lock it waits for by then
    sweep: float = 0.25  # how often to look for borrowers that wait too long or keep a connection too long
    reconnect: float = 0.5  # the pause after an attempt to connect has failed
    connect: float = 3.0  # how long connecting may take for each address of each host, the setup included
    head_start: float = 0.5  # how long after one address or host the next one is tried too
    settled: float = 1.0  # a server that refuses writes this soon after connecting was read-only before: no failover
    misfit: float = 60.0  # reconnect after this, to prepare statements that didn't fit the schema at first


TIMES = PoolTimes()
