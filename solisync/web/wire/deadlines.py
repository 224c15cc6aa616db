"""The timers of a connection: one for all deadlines of reading, and one for a client that doesn't read."""

import socket
from collections.abc import Callable
from struct import error as struct_error
from struct import unpack_from
from typing import Any

from twisted.internet.interfaces import IDelayedCall

UNREAD_SECONDS = 30.0
TAKEN_BYTES = 65_536  # which a client must take in that time
_ACKED_AT = 120  # in struct tcp_info


class OneTimer:
    """Replaces Twisted's TimeoutMixin: calls `timeoutConnection` at the deadline that `setTimeout` has set.

    Fast path: replaces a timer for each of a request's four deadlines, 60,000 instructions, see docs/performance.md. A
    timer that is due before the deadline keeps running, and is set again when it fires.
    """

    callLater: Callable[..., Any]
    timeoutConnection: Callable[[], None]
    timeOut: float | None
    _seconds: Callable[[], float]
    _deadline: float | None = None
    _timer: IDelayedCall | None = None

    def setTimeout(self, period: float | None) -> float | None:
        """Set the deadline to `period` seconds from now, or clear it with None; returns the previous period."""
        before, self.timeOut = self.timeOut, period
        self._deadline = None if period is None else self._seconds() + period
        if self._timer is not None and self._deadline is not None and self._timer.getTime() > self._deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None and period is not None:
            self._timer = self.callLater(period, self._ring)
        return before

    def _ring(self) -> None:
        self._timer = None
        if self._deadline is not None:
            left = self._deadline - self._seconds()
            if left > 0:
                self._timer = self.callLater(left, self._ring)
            else:
                self.timeoutConnection()

    def stop_timer(self) -> None:
        """Forget the deadline and the timer."""
        self._deadline = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class UnreadTimer:
    """While it runs, cuts the connection if its client takes less than TAKEN_BYTES in UNREAD_SECONDS."""

    def __init__(self, transport: Any, *, call_later: Callable[..., IDelayedCall]) -> None:
        self._transport = transport
        self._call_later = call_later
        self._timer: IDelayedCall | None = None
        self._acknowledged = 0  # bytes at the start of the timer

    def start(self) -> None:
        """Start the timer, unless it runs already."""
        if self._timer is None:
            self._acknowledged = acknowledged_bytes(self._transport)
            self._timer = self._call_later(UNREAD_SECONDS, self._check_progress)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_progress(self) -> None:
        # Acknowledged bytes are counted, because the kernel takes more from the transport only when a third of its
        # buffer is free. That may be a MiB, for which a client on a slow line needs more than UNREAD_SECONDS.
        self._timer = None
        if acknowledged_bytes(self._transport) - self._acknowledged < TAKEN_BYTES:
            self._transport.abortConnection()
        else:
            self.start()


def acknowledged_bytes(transport: Any) -> int:
    """Return the number of bytes that the client has acknowledged, or 0 if unknown, as on a unix socket.

    Reads the field tcpi_bytes_acked of Linux's struct tcp_info.
    """
    try:
        handle = getattr(transport, "transport", transport).getHandle()  # TLS wraps the TCP transport
        info = handle.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKED_AT + 8)
        (count,) = unpack_from("Q", info, _ACKED_AT)
    except (AttributeError, OSError, struct_error):
        return 0
    return int(count)
