"""What can go wrong, in the words of the domain; solisync.web.error_replies alone knows the HTTP statuses."""


class Refused(Exception):
    """A request that was understood and is declined; `str(error)` is the text the client reads."""


class BadRequest(Refused):
    """The request breaks a rule that its text names."""


class Unauthorized(Refused):
    """No valid token, or no such credentials."""

    def __init__(self, message: str = "unauthorized") -> None:
        super().__init__(message)


class NotFound(Refused):
    """The thing that the text names does not exist."""


class Conflict(Refused):
    """The request collides with what is already stored."""


class TooMany(Refused):
    """A rate limit is used up; `retry_after` says for how many whole seconds, at least 1."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("too many requests")
        self.retry_after = max(1, retry_after)


class Unavailable(Refused):
    """The service itself declines for now; `retry_after` is in whole seconds."""

    def __init__(self, retry_after: int = 1) -> None:
        super().__init__("service unavailable")
        self.retry_after = retry_after


class DatabaseError(Exception):
    """A statement failed, or its outcome is unknown; the client reads `internal server error`."""


class TransactionAborted(DatabaseError):
    """The transaction left nothing behind (a deadlock, for example): it may be run again."""


class TimedOut(DatabaseError):
    """A statement, or its wait for a lock, took longer than the server allows; its transaction left nothing behind."""


class ConnectionLost(TransactionAborted):
    """The connection ended under a statement, which left nothing behind unless that statement was committing."""


class Outdated(TransactionAborted):
    """The database is no longer what it was when this connection was made (demoted, migrated): none so old is right."""


class ConnectionFailed(DatabaseError):
    """No connection to the database could be made."""


class FatalError(SystemExit, Exception):
    """The service can't start; the text is all that a person needs to read.

    A SystemExit, so that every door ends with that text and status 1 instead of a traceback; an Exception too,
    because twistd passes only those from a daemon's child back to the shell.
    """


class SettingsError(FatalError):
    """Settings are missing or wrong: `problems` holds one line for each of them."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(f"solisync: {problem}" for problem in problems))
        self.problems = problems
