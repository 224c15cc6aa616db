"""Access to PostgreSQL: connections, transactions, the schema. This module has the times of the pool."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTimes:
    """The times of a pool and its connections, in seconds."""

    borrow: float = 2.0  # a borrower is declined after waiting this long
    work: float = 6.0  # the longest loan of a connection; above statement_timeout: only a frozen server reaches it
    again: float = 0.05  # the pause before work is run again, in which the other side of a deadlock gets its lock
    sweep: float = 0.25  # the interval of looking for borrowers that wait too long or keep a connection too long
    reconnect: float = 0.5  # the pause after a failed attempt to connect
    connect: float = 3.0  # the time limit of connecting, for each address of each host, including the setup
    head_start: float = 0.5  # the delay before the next address or host is tried too
    settled: float = 1.0  # a read-only error this soon after connecting isn't a failover
    misfit: float = 60.0  # the connection is replaced after this, to prepare statements that failed at first


TIMES = PoolTimes()
