"""Connections whose client has closed its sending side: what it has asked is still answered (RFC 9112 §9.6).

At that end of the input, a client that waits for its reply (`nc -N`) and one that has hung up look the same. They
differ in what comes back when something is sent to them: nothing, or a reset. So a reply that takes long is preceded
by an interim response, which any client may ignore, and for those that have hung up the request is cancelled.
"""

from socket import SO_ERROR, SOL_SOCKET

from twisted.internet.interfaces import IDelayedCall, IHalfCloseableProtocol
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from .backpressure import BackpressureChannel

PROBE_SECONDS = 0.5
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"  # may be discarded by who did not ask for it (RFC 9110 §15.2.1)


@implementer(IHalfCloseableProtocol)
class HalfCloseChannel(BackpressureChannel):
    """Answers the requests that have arrived in full before the end of the input, then closes.

    For TCP and unix sockets; Twisted ends a TLS connection at the end of its input.
    """

    _probe: IDelayedCall | None = None
    _probed = False

    def readConnectionLost(self) -> None:
        """The input has ended. The transport says so again whenever it is asked to read on."""
        if self._handlingRequest:
            if not self._dataBuffer:
                self.persistent = False
            if self._probe is None:
                self._probe = self.callLater(PROBE_SECONDS, self._look_for_reset)
        elif not self.paused:
            self.loseConnection()

    def writeConnectionLost(self) -> None:
        """The sending side has been closed, by the service itself."""

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._probe is not None:
            self._probe.cancel()
        super().connectionLost(reason)

    def _look_for_reset(self) -> None:
        self._probe = None
        if not self._handlingRequest or not self.requests:  # Twisted goes on "handling" while it sends the last reply
            return
        # To read on would not tell: after the end of its input a socket keeps saying that there is none.
        if self.transport.getHandle().getsockopt(SOL_SOCKET, SO_ERROR):
            self.cut()
            return
        request = self.requests[0]
        if not self._probed and not request.startedWriting and request.clientproto == b"HTTP/1.1":
            self._probed = True
            self.transport.write(INTERIM)
        self._probe = self.callLater(PROBE_SECONDS, self._look_for_reset)
