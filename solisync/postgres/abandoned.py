"""Connections that were given up in the middle of a statement, until the server has ended it.

A commit that waits for a standby goes on waiting when its client has hung up, and its session on the server with it.
A pool that closed such connections and made new ones would take one session after the other, until the server has none
left. So they stay open and are counted, and each closes when its answer comes.

Nor are such commits cancelled: PostgreSQL would show their effects to everybody, although no standby has them.
"""

from collections.abc import Callable

from ..errors import ConnectionLost
from .connection import Connection


class AbandonedConnections:
    """The abandoned connections of one pool."""

    def __init__(self) -> None:
        self._connections: set[Connection] = set()

    def __len__(self) -> int:
        return len(self._connections)

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._connections

    def add(self, connection: Connection, error: ConnectionLost) -> None:
        """Abandon a connection: its running statement fails now, for its caller."""
        self._connections.add(connection)
        connection.when_lost(lambda: self._connections.discard(connection))
        connection.abandon(error)

    def close_all_but(self, instance: str) -> None:
        """Close those that lead to other servers than this one, which have been replaced or restarted."""
        self._close_if(lambda connection: connection.server.instance != instance)

    def close_all(self) -> None:
        """Close every one; what they run may go on for a while on the server."""
        self._close_if(lambda _: True)

    def _close_if(self, condition: Callable[[Connection], bool]) -> None:
        for connection in [*filter(condition, self._connections)]:
            connection.close()
