"""Errors after which a connection is closed, because the rest of the request is not read."""

from typing import NamedTuple

from ...errors import Code
from .error_codes import STATUS
from .reply import Reply

RETRY_SECONDS = 1


class Refusal(NamedTuple):
    """The error for a request that is not whole."""

    code: Code
    message: str

    @property
    def status(self) -> int:
        """The HTTP status."""
        return STATUS[self.code]

    def reply(self) -> Reply:
        """The error as the last reply of a connection."""
        headers = {"Connection": "close"}
        if self.status == 503:
            headers["Retry-After"] = str(RETRY_SECONDS)
        return Reply.error(*self, headers)


BAD_REQUEST = Refusal("bad_request", "bad request")
TIMED_OUT = Refusal("request_timeout", "request timed out")
HEADER_TOO_LARGE = Refusal("header_too_large", "request header too large")
BODY_TOO_LARGE = Refusal("body_too_large", "request body must be at most 1 MB")
OUT_OF_MEMORY = Refusal("unavailable", "service unavailable")
