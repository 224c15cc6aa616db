"""Errors of PostgreSQL by their SQLSTATE, and the exceptions of solisync.errors that they become."""

from ..errors import DatabaseError, Declined, TimedOut, TransactionAborted, Unavailable

LOST = frozenset({"57P01", "57P02", "57P03"})  # shutting down, crashed, starting up; class 08 as well

# A fresh connection may be the cure after these: the server was demoted; a migration changed what a prepared statement
# returns; a statement could not be prepared, because it didn't fit the schema of then. A pooler in transaction mode
# causes the last one too: it prepares on one connection of the server, and executes on any of them.
READ_ONLY, RESULT_CHANGED, NOT_PREPARED = "25006", "0A000", "26000"
PREPARED_TWICE = "42P05"

_DEADLOCK_OR_SERIALIZATION = frozenset({"40P01", "40001"})
_UNAVAILABLE = "SS503"  # raised by our own functions, in migrations/
_NO_RESOURCES = "53"  # a class: the disk is full, there is no memory
_TIMED_OUT = frozenset({"55P03", "57014"})  # a lock; a statement, which another session may also have cancelled

REMEDY = ": behind a pooler in transaction mode, set SOLISYNC_PREPARED_STATEMENTS=off"


def failure(error: Exception, code: str, *, pooled: bool) -> Exception:
    """The exception for an error that leaves the connection open.

    TransactionAborted if the work left nothing behind and may be run again; TimedOut if the server's limits ended it;
    Declined if the server is read-only or has no room, or if a pooler forgets prepared statements; Unavailable if a
    function of the schema declines the work for now; else DatabaseError.
    """
    if code == _UNAVAILABLE:
        return Unavailable()
    if code == NOT_PREPARED and pooled:
        return Declined(reason(error) + REMEDY)
    if code == READ_ONLY or code.startswith(_NO_RESOURCES):
        return Declined(reason(error))
    if code in _DEADLOCK_OR_SERIALIZATION:
        return TransactionAborted(reason(error))
    if code in _TIMED_OUT:
        return TimedOut(reason(error))
    return DatabaseError(reason(error))


def reason(error: Exception) -> str:
    """The server's primary message alone: its details quote statements and rows, and so password hashes.

    For an error that doesn't come from the server, the text of the exception.
    """
    diagnostics = getattr(error, "diag", None)
    return getattr(diagnostics, "message_primary", None) or str(error).strip()
