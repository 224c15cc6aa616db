"""Requests of the client, and their answers."""

from typing import Any, TypeVar, cast

import msgspec
import treq
from twisted.web.iweb import IResponse

from ..rules.accounts import RefreshRequest, TokenPair
from ..rules.shapes import ErrorBody
from ..rules.surrogates import decode

T = TypeVar("T")
Body = msgspec.Struct | msgspec.Raw | bytes

JSON = "application/json"
REQUEST_SECONDS = 20.0


class ApiError(Exception):
    """An error answer: its `status`, `code` and `message`, and `retry_after` in seconds when the service gave one.

    `code` is one of docs/protocol.md "Error codes", and None when the answer is not the service's, but a proxy's.
    """

    def __init__(self, status: int, message: str, *, code: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(f"{status} {message}")
        self.status = status
        self.code = code
        self.message = message
        self.retry_after = retry_after


class Transport:
    """Sends requests to the service at `url`, with the tokens of a player once there are any."""

    def __init__(self, url: str, *, http: Any = treq, headers: dict[str, str] | None = None) -> None:
        self._url = url.rstrip("/")
        self._http = http
        self._headers = headers or {}
        self.tokens: TokenPair | None = None
        self.retry_seconds = 1.0  # when to open a stream again, as the service has said last

    def _note_retry(self, seconds: float) -> None:
        self.retry_seconds = seconds

    async def refresh(self) -> TokenPair:
        """Exchange the refresh token for a new pair."""
        assert self.tokens is not None, "register or log in first"
        return await self._begin("/api/auth/refresh", RefreshRequest(self.tokens.refresh_token))

    async def _begin(self, path: str, body: msgspec.Struct) -> TokenPair:
        self.tokens = await self._call("POST", path, TokenPair, body=body)
        return self.tokens

    async def _as_player(
        self, method: str, path: str, shape: type[T], body: Body | None = None, content_type: str = JSON
    ) -> T:
        assert self.tokens is not None, "register or log in first"
        try:
            return await self._call(
                method, path, shape, body=body, content_type=content_type, token=self.tokens.access_token
            )
        except ApiError as error:
            if error.status != 401 or error.code == "invalid_credentials":  # the password that was sent, not the token
                raise
        tokens = await self.refresh()
        return await self._call(method, path, shape, body=body, content_type=content_type, token=tokens.access_token)

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
        """Send one request; returns the answer decoded into `shape`, undecoded for bytes, or unread for an IResponse.

        A body of bytes is sent as it is, any other as JSON.
        """
        headers = dict(self._headers)
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        options = {"timeout": REQUEST_SECONDS, "unbuffered": shape is IResponse}
        response = await self._http.request(method, self._url + path, headers=headers, data=data, **options)
        if response.code == 200 and shape is IResponse:
            return cast(T, response)
        content = await response.content()
        if response.code == 200 and shape is bytes:
            return cast(T, content)
        if response.code == 200:
            return decode(content, shape)
        code = response.headers.getRawHeaders("Error-Code", [None])[0]
        retry_after = response.headers.getRawHeaders("Retry-After", [None])[0]
        raise ApiError(
            response.code, _message(content), code=code, retry_after=int(retry_after) if retry_after else None
        )


def _message(content: bytes) -> str:
    try:
        return msgspec.json.decode(content, type=ErrorBody).error
    except msgspec.MsgspecError:
        return "not an answer of solisync's: " + content[:100].decode("utf-8", "replace").strip().partition("\n")[0]
