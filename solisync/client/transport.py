"""The client's requests, and the service's responses."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import ceil
from secrets import token_urlsafe
from typing import Any, TypeVar, cast

import msgspec
import treq
from twisted.python.url import URL
from twisted.web.http_headers import Headers
from twisted.web.iweb import IResponse

from ..process.tasks import Shared
from ..rules.accounts import RefreshRequest, TokenPair
from ..rules.shapes import ErrorBody
from ..rules.surrogates import decode
from .bodies import read_pieces

T = TypeVar("T")
P = TypeVar("P", bound=TokenPair)
Body = msgspec.Struct | msgspec.Raw | bytes

JSON = "application/json"
REQUEST_SECONDS = 20.0  # without a response, or without more of its body
RETRY_MOST = 86_400  # seconds; only a misconfigured proxy asks for a longer wait


class ApiError(Exception):
    """An error response: `status`, `code`, `message`, and `retry_after` in seconds, if given, a day at most.

    `code` is one of docs/protocol.md "Error codes", or None if the response came from a proxy instead of the service.
    The client itself raises `signed_out` without a session.
    """

    def __init__(self, status: int, message: str, *, code: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(f"{status} {message}")
        self.status = status
        self.code = code
        self.message = message
        self.retry_after = retry_after


class Transport:
    """Sends requests to the service at `url`, with the player's tokens once there are any."""

    def __init__(self, url: str, *, http: Any = treq, headers: dict[str, str] | None = None) -> None:
        self._url = url.rstrip("/")
        self._http = http
        self._headers = headers or {}
        self._tokens: TokenPair | None = None
        self._retry_key: str | None = None  # of an exchange without an answer so far
        self.retry_seconds = 1.0  # when to open a stream again: the service's latest value
        self._refreshing: Shared[TokenPair] | None = None  # the latest exchange

    @property
    def tokens(self) -> TokenPair | None:
        """The player's pair of tokens; None without a session."""
        return self._tokens

    @tokens.setter
    def tokens(self, tokens: TokenPair | None) -> None:
        self._keep(tokens, None)

    def _session(self) -> TokenPair:
        """Return the tokens; raises ApiError `signed_out`, an error of this client, without a session."""
        if self.tokens is None:
            raise ApiError(401, "register or log in first", code="signed_out")
        return self.tokens

    def _keep(self, tokens: TokenPair | None, retry_key: str | None) -> None:
        """Use these tokens from now on, and the key of the exchange that has begun with them."""
        self._tokens, self._retry_key = tokens, retry_key

    def _note_retry(self, seconds: float) -> None:
        self.retry_seconds = seconds

    async def refresh(self) -> TokenPair:
        """Exchange the refresh token for a new pair; concurrent calls share one exchange.

        If the answer is lost, call this again: the service returns the pair that it has already made.
        """
        session = self._session()
        if self._refreshing is None or self._refreshing.ended.called:
            self._refreshing = Shared(self._exchange(session))
        return await self._refreshing.outcome()

    async def _exchange(self, spent: TokenPair) -> TokenPair:
        key = self._retry_key or token_urlsafe(16)
        self._keep(spent, key)
        request = RefreshRequest(spent.refresh_token, retry_key=key)
        try:
            pair = await self._call("POST", "/api/auth/refresh", TokenPair, body=request)
        except ApiError as error:
            if error.code == "unauthorized" and self.tokens is spent:
                self.tokens = spent  # without the key
            raise
        if self.tokens is spent:  # otherwise the player has logged in or out
            self.tokens = pair
        return pair

    async def _begin(self, path: str, body: msgspec.Struct, shape: type[P]) -> P:
        pair = await self._call("POST", path, shape, body=body)
        self.tokens = pair
        return pair

    async def _as_player(
        self, method: str, path: str, shape: type[T], body: Body | None = None, content_type: str = JSON
    ) -> T:
        tokens = self._session()
        try:
            return await self._call(
                method, path, shape, body=body, content_type=content_type, token=tokens.access_token
            )
        except ApiError as error:
            if error.code != "unauthorized":
                raise
            if self.tokens is None:
                raise
        if self.tokens is tokens:  # otherwise another call has refreshed them
            await self.refresh()
        return await self._call(
            method, path, shape, body=body, content_type=content_type, token=self._session().access_token
        )

    async def _call(
        self,
        method: str,
        path: str,
        shape: type[T],
        *,
        body: Body | None = None,
        content_type: str = JSON,
        token: str | None = None,
    ) -> T:
        """Send one request; return its body decoded into `shape`, undecoded for bytes, or unread for an IResponse.

        A body of bytes is sent unchanged, and any other body as JSON.
        """
        headers = dict(self._headers)
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        # A redirect is not the service's: it would lead a GET to another server, with the token.
        options = {"timeout": REQUEST_SECONDS, "unbuffered": True, "allow_redirects": False}
        url = self._url + path
        to = _WithAddress.from_text(url) if "[" in self._url else url
        response = await self._http.request(method, to, headers=headers, data=data, **options)
        if response.code == 200 and shape is IResponse:
            return cast(T, response)
        content = b"".join([piece async for piece in read_pieces(response, REQUEST_SECONDS)])
        if response.code == 200 and shape is bytes:
            return cast(T, content)
        if response.code == 200:
            return decode(content, shape)
        code = response.headers.getRawHeaders("Error-Code", [None])[0]
        raise ApiError(response.code, _message(content), code=code, retry_after=_retry_after(response.headers))


class _WithAddress(URL):
    """A URL with an IPv6 address, which is no name to encode: treq would fail with `Codepoint not allowed`."""

    def to_uri(self) -> "_WithAddress":
        return self


def _retry_after(headers: Headers) -> int | None:
    """The seconds of Retry-After, given as seconds or as a date (RFC 9110 §10.2.3); None without either."""
    (text,) = headers.getRawHeaders("Retry-After", [""])[:1]
    if text.isascii() and text.isdigit():
        return min(int(text[:20]), RETRY_MOST)
    until = _date(text)
    if until is None:
        return None
    now = _date(headers.getRawHeaders("Date", [""])[0]) or datetime.now(UTC)
    return min(max(ceil((until - now).total_seconds()), 0), RETRY_MOST)


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _message(content: bytes) -> str:
    try:
        return msgspec.json.decode(content, type=ErrorBody).error
    except msgspec.MsgspecError:
        return "not an answer of solisync's: " + content[:100].decode("utf-8", "replace").strip().partition("\n")[0]
