"""The timers of a connection: one for all deadlines of reading, one for a client that does not read."""

import socket
from collections.abc import Callable
from struct import error as struct_error
from struct import unpack_from
from typing import Any

from twisted.internet.interfaces import IDelayedCall

UNREAD_SECONDS = 30.0
TAKEN_BYTES = 65_536  # what a client must take in that time
_ACKED_AT = 120  # in struct tcp_info


class OneTimer:
    """Replaces TimeoutMixin of Twisted's; `timeoutConnection` is called at the deadline that `setTimeout` has set.

    Fast path: replaces a timer for each of a request's four deadlines, 60,000 instructions, see docs/performance.md. A
    timer that is due before the deadline is left alone, and set again when it rings.
    """

    callLater: Callable[..., Any]
    timeoutConnection: Callable[[], None]
    timeOut: float | None
    _seconds: Callable[[], float]
    _deadline: float | None = None
    _timer: IDelayedCall | None = None

    def setTimeout(self, period: float | None) -> float | None:
        """Set the deadline to be `period` from now, or none; returns the period that was set before."""
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
    """Cuts a connection whose client takes less than TAKEN_BYTES in UNREAD_SECONDS, while it runs."""

    def __init__(self, transport: Any, *, call_later: Callable[..., IDelayedCall]) -> None:
        self._transport = transport
        self._call_later = call_later
        self._timer: IDelayedCall | None = None
        self._acknowledged = 0  # bytes, when the timer was started

    def start(self) -> None:
        """Begin to count, unless the timer runs already."""
        if self._timer is None:
            self._acknowledged = acknowledged_bytes(self._transport)
            self._timer = self._call_later(UNREAD_SECONDS, self._check_progress)

    def stop(self) -> None:
        """Let the client take its time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_progress(self) -> None:
        # The kernel takes more from the transport only when a third of its own buffer is free, which may be a MiB: for
        # a client on a slow line that can take longer than UNREAD_SECONDS.
        self._timer = None
        if acknowledged_bytes(self._transport) - self._acknowledged < TAKEN_BYTES:
            self._transport.abortConnection()
        else:
            self.start()


def acknowledged_bytes(transport: Any) -> int:
    """How many bytes the client has acknowledged on this connection; 0 where that can't be told, as of a unix socket.

    The field tcpi_bytes_acked of Linux' struct tcp_info.
    """
    try:
        handle = getattr(transport, "transport", transport).getHandle()  # below TLS is a transport, too
        info = handle.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKED_AT + 8)
        (count,) = unpack_from("Q", info, _ACKED_AT)
    except (AttributeError, OSError, struct_error):
        return 0
    return int(count)
