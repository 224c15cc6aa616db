"""The exceptions of all packages, and the error codes by which clients distinguish refusals."""

from datetime import datetime
from typing import Literal, get_args

# Codes are part of the protocol: they never change, unlike the texts beside them (docs/protocol.md "Error codes").
_400 = Literal[
    "bad_request",
    "bad_json",
    "bad_field",
    "bad_query",
    "username_length",
    "username_characters",
    "password_length",
    "password_too_long",
    "avatar_too_large",
    "avatar_type",
    "avatar_signature",
    "user_id_mismatch",
    "sync_too_large",
    "sync_too_many",
    "display_name_empty",
    "display_name_length",
    "display_name_characters",
    "replay_storage_full",
    "batch_too_large",
]
_401 = Literal["unauthorized", "invalid_credentials"]
_403 = Literal["forbidden", "guest", "suspended", "locked"]
_404 = Literal[
    "not_found",
    "user_not_found",
    "avatar_not_found",
    "replay_not_found",
    "session_not_found",
    "day_not_found",
    "entry_not_found",
]
_405 = Literal["method_not_allowed"]
_408 = Literal["request_timeout"]
_409 = Literal["username_taken", "guest_gone", "not_a_guest", "not_playable"]
_413 = Literal["body_too_large"]
_429 = Literal["rate_limited"]
_431 = Literal["header_too_large"]
_500 = Literal["internal"]
_503 = Literal["unavailable"]
Code = Literal[_400, _401, _403, _404, _405, _408, _409, _413, _429, _431, _500, _503]

STATUS: dict[Code, int] = {
    code: status
    for status, codes in {
        400: _400,
        401: _401,
        403: _403,
        404: _404,
        405: _405,
        408: _408,
        409: _409,
        413: _413,
        429: _429,
        431: _431,
        500: _500,
        503: _503,
    }.items()
    for code in get_args(codes)
}
"""The HTTP status of each code."""


class Refused(Exception):
    """A request that is understood and declined: `code` tells programs why, and `str(error)` people."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class BadRequest(Refused):
    """The request breaks a rule that its text names."""


class Unauthorized(Refused):
    """No valid token, or wrong credentials."""

    def __init__(self, code: Code = "unauthorized", message: str = "unauthorized") -> None:
        super().__init__(code, message)


class Forbidden(Refused):
    """The request may not come from the page that sent it, or the player may not do this."""

    def __init__(self, code: Code = "forbidden", message: str = "forbidden") -> None:
        super().__init__(code, message)


class AccountSuspended(Forbidden):
    """The player is suspended; `until` is when that ends by itself, if it does."""

    def __init__(self, message: str, until: datetime | None) -> None:
        super().__init__("suspended", message)
        self.until = until


class Locked(Forbidden):
    """An operator keeps the player from changing what others see of them."""

    def __init__(self) -> None:
        super().__init__("locked", "an operator has locked this")


class NotFound(Refused):
    """The thing that the text names does not exist; the text is the code in words unless another is given."""

    def __init__(self, code: Code = "not_found", message: str | None = None) -> None:
        super().__init__(code, message or code.replace("_", " "))


class Conflict(Refused):
    """The request collides with what is already stored."""


class TooMany(Refused):
    """A rate limit is used up; `retry_after` is in whole seconds, at least 1."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("rate_limited", "too many requests")
        self.retry_after = max(1, retry_after)


class Unavailable(Refused):
    """The service declines the request for now; `retry_after` is in whole seconds."""

    def __init__(self, retry_after: int = 1) -> None:
        super().__init__("unavailable", "service unavailable")
        self.retry_after = retry_after


class DatabaseError(Exception):
    """A statement failed, or its outcome is unknown; the client gets `internal server error`."""


class Declined(DatabaseError):
    """The server has done nothing: it is read-only, has no room, or is behind a wrong pooler; the client gets a 503."""


class TransactionAborted(DatabaseError):
    """The transaction was rolled back for a reason that may not recur, such as a deadlock: it may be run again."""


class TimedOut(DatabaseError):
    """A statement, or its wait for a lock, took longer than the server allows; its transaction left nothing behind."""


class ConnectionLost(TransactionAborted):
    """The connection was lost during a statement, which is rolled back unless it was committing."""


class Outdated(TransactionAborted):
    """The server was demoted, or the schema changed, since the connection was made: all older connections must go."""


class Interrupted(DatabaseError):
    """The database was lost, or too slow, in the middle of work that must not run again; its text says all."""


class ConnectionFailed(DatabaseError):
    """No connection to the database could be made."""


class FatalError(SystemExit, Exception):
    """A service can't start or go on, or a command can't do its work; the text says why, in one line.

    A SystemExit, so that every entry point exits with that text and status 1 instead of a traceback; an Exception too,
    because twistd reports only those from the daemon to the shell.
    """


class SettingsError(FatalError):
    """Settings are missing or wrong: `problems` holds one line for each of them."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(f"solisync: {problem}" for problem in problems))
        self.problems = problems
