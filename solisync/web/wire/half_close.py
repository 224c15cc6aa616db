"""Connections whose client has closed its sending side: what it has asked is still answered (RFC 9112 §9.6).

At that end of the input, a client that waits for its reply (`nc -N`) and one that has hung up look the same. They
differ in what comes back when something is sent to them: nothing, or a reset. So a reply that takes long is preceded
by an interim response, which any client may ignore, and for those that have hung up the request is cancelled.

For TCP and unix sockets; Twisted ends a TLS connection at the end of its input.
"""

from socket import SO_ERROR, SOL_SOCKET

from twisted.internet.interfaces import IDelayedCall

from .backpressure import BackpressureChannel

PROBE_SECONDS = 0.5
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"  # may be discarded by who did not ask for it (RFC 9110 §15.2.1)


class HalfCloseProbe:
    """Finds out whether a client that sends no more has hung up, while its request is handled; cuts the connection."""

    def __init__(self, channel: BackpressureChannel) -> None:
        self._channel = channel
        self._timer: IDelayedCall | None = None
        self._probed = False

    def start(self) -> None:
        """Look every PROBE_SECONDS for a reset, until the request is answered."""
        if self._timer is None:
            self._timer = self._channel.callLater(PROBE_SECONDS, self._look_for_reset)

    def stop(self) -> None:
        """Look no more: the connection is lost."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_for_reset(self) -> None:
        self._timer = None
        channel = self._channel
        if not channel._handlingRequest or not channel.requests:  # Twisted "handles" while it sends the last reply
            return
        # To read on would not tell: after the end of its input a socket keeps saying that there is none.
        if channel.transport.getHandle().getsockopt(SOL_SOCKET, SO_ERROR):
            channel.cut()
            return
        request = channel.requests[0]
        if not self._probed and not request.startedWriting and request.clientproto == b"HTTP/1.1":
            self._probed = True
            channel.transport.write(INTERIM)
        if channel.streaming is None:  # else a heartbeat will tell
            self.start()
