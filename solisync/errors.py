"""The exceptions of all packages, and the error codes that clients distinguish."""

from datetime import datetime
from typing import Literal, TypeVar, get_args

T = TypeVar("T")

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
_403 = Literal["forbidden", "guest", "guests_off", "suspended", "locked"]
_404 = Literal[
    "not_found",
    "user_not_found",
    "player_not_found",
    "guest_unknown",
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
_415 = Literal["content_encoding"]
_429 = Literal["rate_limited"]
_431 = Literal["header_too_large"]
_500 = Literal["internal"]
_501 = Literal["transfer_encoding"]
_503 = Literal["unavailable"]
Code = Literal[_400, _401, _403, _404, _405, _408, _409, _413, _415, _429, _431, _500, _501, _503]

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
        415: _415,
        429: _429,
        431: _431,
        500: _500,
        501: _501,
        503: _503,
    }.items()
    for code in get_args(codes)
}
"""The HTTP status of each code."""


class Refused(Exception):
    """A request that the service declined: `code` is the reason for programs, `str(error)` the one for people."""

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
    """The player may not do this, or the page that sent the request isn't allowed to."""

    def __init__(self, code: Code = "forbidden", message: str = "forbidden") -> None:
        super().__init__(code, message)


class AccountSuspended(Forbidden):
    """The player is suspended; `until` is the end of the suspension, or None if it has no end."""

    def __init__(self, message: str, until: datetime | None) -> None:
        super().__init__("suspended", message)
        self.until = until


class Locked(Forbidden):
    """The player is locked: an operator doesn't let the player change what other players see."""

    def __init__(self) -> None:
        super().__init__("locked", "an operator has locked this")


class NotFound(Refused):
    """The resource that the text names does not exist; the default text is the code in words."""

    def __init__(self, code: Code = "not_found", message: str | None = None) -> None:
        super().__init__(code, message or code.replace("_", " "))


def existing(found: T | None, code: Code = "user_not_found") -> T:
    """Return what was found; raise NotFound with this code if it is None."""
    if found is None:
        raise NotFound(code)
    return found


class MethodNotAllowed(Refused):
    """The path has only these methods."""

    def __init__(self, methods: list[str]) -> None:
        super().__init__("method_not_allowed", "method not allowed")
        self.methods = methods


class Conflict(Refused):
    """The request conflicts with stored data."""


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
    """The server did nothing: it is read-only or full, its pooler is misconfigured, or another node migrates.

    The client gets a 503.
    """


class TransactionAborted(DatabaseError):
    """The transaction was rolled back for a temporary reason, such as a deadlock: the caller may run it again."""


class TimedOut(DatabaseError):
    """A statement, or its wait for a lock, took longer than the server allows; its transaction was rolled back."""


class ConnectionLost(TransactionAborted):
    """The connection was lost during a statement; the server rolls the statement back, unless it was a commit."""


class Outdated(TransactionAborted):
    """The server was demoted, or the schema changed; the pool must replace connections that are older than that."""


class Interrupted(DatabaseError):
    """The database was lost or too slow during work that must not run again; the text is enough for the log."""


class ConnectionFailed(DatabaseError):
    """No connection to the database could be made."""


class WrongSchema(ConnectionFailed):
    """This role would work in another schema than public; the text has the remedy after a colon."""


class FatalError(SystemExit, Exception):
    """A service can't start or continue, or a command can't do its work; the text is the reason, in one line.

    As a SystemExit, it makes every entry point exit with that text and status 1 instead of a traceback. It is an
    Exception too, because twistd reports nothing else from the daemon to the shell.
    """


class SettingsError(FatalError):
    """Settings are missing or wrong; `problems` has one line for each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(f"solisync: {problem}" for problem in problems))
        self.problems = problems
