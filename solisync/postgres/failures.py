"""The exceptions of solisync.errors for errors of PostgreSQL, by their SQLSTATE."""

from ..errors import DatabaseError, Declined, TimedOut, TransactionAborted, Unavailable

LOST = frozenset({"57P01", "57P02", "57P03"})  # shutting down, crashed, starting up; class 08 as well

# A new connection may help after these: the server was demoted; a migration changed the columns that a prepared
# statement returns; a statement was not prepared, because it didn't fit the schema at that time. A pooler in
# transaction mode causes the last one too: it prepares on one connection of the server, and executes on any of them.
READ_ONLY, RESULT_CHANGED, NOT_PREPARED = "25006", "0A000", "26000"
PREPARED_TWICE = "42P05"

_DEADLOCK_OR_SERIALIZATION = frozenset({"40P01", "40001"})
_UNAVAILABLE = "SS503"  # raised by our own functions, in migrations/
_NO_RESOURCES = "53"  # a class of codes: the disk is full, or there is no memory
_TIMED_OUT = frozenset({"55P03", "57014"})  # a lock; a statement, which another session may also have cancelled

REMEDY = ": behind a pooler in transaction mode, set SOLISYNC_PREPARED_STATEMENTS=off"


def failure(error: Exception, code: str, *, pooled: bool) -> Exception:
    """Return the exception for an error that leaves the connection open.

    - TransactionAborted: the work was rolled back and may be run again.
    - TimedOut: a time limit of the server ended the work.
    - Declined: the server is read-only or full, or a pooler forgets prepared statements.
    - Unavailable: a function of the schema declines the work for now.
    - DatabaseError: any other error.
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
    """Return only the server's primary message: its details quote statements and rows, and so password hashes.

    For an error that doesn't come from the server, return the text of the exception.
    """
    diagnostics = getattr(error, "diag", None)
    return getattr(diagnostics, "message_primary", None) or str(error).strip()
