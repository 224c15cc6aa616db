"""One connection: reads requests one after the other (RFC 9112), within limits and deadlines.

A connection reads a head, then a body; then it keeps what it receives until the reply is sent. In its last state it
drops what it receives: while it sends a stream or an error, or closes.
"""

from enum import Enum

from twisted.internet.address import UNIXAddress
from twisted.internet.interfaces import IHalfCloseableProtocol, ISSLTransport, ITCPTransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from ...errors import Unavailable
from ...rules.shapes import MAX_BODY
from .body import Chunks, MalformedChunks
from .deadlines import INTERIM, Deadline, HalfCloseProbe
from .parse import read_beginning, read_head
from .reply import BAD_REQUEST, TIMED_OUT, Abandoned, encode_head
from .request import Request, SiteParts
from .sending import Sender
from .streaming import ConnectionOutlet, StreamBody
from .transport import SocketTransport, below_tls

HEADER_SECONDS = 10.0
BODY_SECONDS = 30.0
LINGER_SECONDS = 2.0
LINGER_BYTES = 8 * MAX_BODY
EAGER_BYTES = 16_384  # of later requests that are read while one is answered, so that a lost connection is noticed
ANSWERS_PER_TURN = 16  # otherwise a pipelining connection would occupy the reactor until its buffer is empty


class State(Enum):
    """What a connection does with the bytes that it receives; see above."""

    HEAD = 1
    BODY = 2
    REPLY = 3
    LAST = 4


_HEAD, _BODY, _REPLY, _LAST = State


@implementer(IHalfCloseableProtocol)
class HttpConnection(Protocol):
    """One connection. One deadline bounds reading: from the first byte of a request, then from the end of its head.

    `request` is the one that is received or answered. `peer` is an address, or None on a unix socket. `paused` means
    that the connection waits for its turn.
    """

    transport: SocketTransport  # type: ignore[assignment]  # Protocol declares less
    request: Request | None = None
    persistent = True  # whether another request may follow
    paused = False
    streaming: ConnectionOutlet | None = None
    state = _HEAD
    probe: HalfCloseProbe | None = None  # once the client has closed its sending half
    _buffer = b""
    _seen = 0  # bytes of an incomplete head in the buffer
    _chunks: Chunks  # the decoder of a chunked body
    _answered_in_turn = 0
    _reading = False  # whether `_read` runs
    _stopped = False  # whether the transport has stopped reading
    _input_ended = False
    _dropped = 0  # bytes received in the last state

    def __init__(self, site: SiteParts) -> None:
        self.site = site
        self._connections = site.connections

    def connectionMade(self) -> None:
        if ITCPTransport.providedBy(self.transport):
            self.transport.setTcpNoDelay(True)
        peer = self.transport.getPeer()  # asks the kernel, so once and not for each request
        self.peer = None if isinstance(peer, UNIXAddress) else peer.host
        reactor, connections = self.site.reactor, self._connections
        self.sender = Sender(self.transport, reactor=reactor, unread=connections.unread, on_sent=self._on_sent)
        self.deadline = Deadline(self._on_deadline, reactor=reactor)
        self.deadline.set(HEADER_SECONDS)
        connections.end_of_turn.adopt(self.transport)
        connections.register(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._connections.end_of_turn.release(self.transport)
        if self.probe is not None:
            self.probe.stop()
            self.probe = None
        if self.streaming is None:
            self._end()
        else:  # thousands of streams may end at the same time when a network fails
            self._connections.stream_ends.run(self._end)

    def _end(self) -> None:
        self._connections.unregister(self)
        self.state = _LAST
        if self.streaming is not None:
            self.streaming.lost()
        self.sender.stop()
        self.deadline.stop()
        self._buffer = b""
        request, self.request = self.request, None
        if request is not None:
            request.lost()

    def dataReceived(self, data: bytes) -> None:
        if self.state is _LAST:
            self._dropped += len(data)
            if self._dropped > LINGER_BYTES:
                self.cut()
            return
        self._connections.idle.pop(self, None)
        self._buffer = self._buffer + data if self._buffer else data
        if self.state is not _REPLY and not self.paused:
            self._read()
        elif self.paused or len(self._buffer) > EAGER_BYTES:
            self._stop_reading()

    def _read(self) -> None:
        """Read the buffer until a request waits for more bytes, for its reply, or for the connection's turn."""
        self._reading, self._answered_in_turn = True, 0
        try:
            while self._buffer and not self.paused and (self.state is _HEAD or self.state is _BODY):
                if not (self._read_head() if self.state is _HEAD else self._read_body()):
                    break
        finally:
            self._reading = False
        if self.state is _HEAD and not self.paused and self._input_ended:
            self.close()
        elif self.paused and self._buffer:
            self._stop_reading()

    def _read_head(self) -> bool:
        """Read one head and begin its request; returns whether the rest of the buffer can be read."""
        try:
            head = read_head(self._buffer, self._seen)
        except Abandoned as error:
            self.refuse(error)
            return False
        if head is None:
            if not self._seen:
                self.deadline.set(HEADER_SECONDS)
            self._seen = len(self._buffer)
            return False
        self._seen, self._buffer = 0, self._buffer[head.end :]
        self.state = _BODY
        self.persistent = head.persistent and not self._connections.draining
        self.request = request = Request(self, head)
        if head.length == 0:
            request.admit(0)
            self._handle(request)
            return True
        if head.length is None:
            self._chunks = Chunks()
        self.deadline.set(BODY_SECONDS)
        request.admit(head.length)
        if self.state is _BODY and head.expects_interim:
            self.transport.write(INTERIM)
        return True

    def _read_body(self) -> bool:
        """Read a part of the body, and handle its request at the end; returns whether the rest can be read."""
        request, data = self.request, self._buffer
        assert request is not None
        if request.length is None:
            try:
                data, self._buffer = self._chunks.decode(data)
            except MalformedChunks:
                self.refuse(BAD_REQUEST())
                return False
            ended = self._chunks.ended
        else:
            left = request.length - request.body.received
            data, self._buffer = data[:left], data[left:]
            ended = len(data) == left
        if data:
            request.receive(data)
        if self.state is not _BODY:
            return False
        if ended:
            self._handle(request)
        elif self._buffer:
            self._connections.rotation.add(self)
        return True

    def _handle(self, request: Request) -> None:
        if self.state is _BODY:  # else it was refused
            self.state = _REPLY
            self.release_body()
            self.deadline.clear()
            request.handle()

    def hold_body(self, size: int) -> None:
        """Count `size` bytes of an unfinished body; may refuse this body, or an older one of another connection."""
        self._connections.unfinished.hold(self, size)

    def release_body(self) -> None:
        """Stop counting an unfinished body."""
        self._connections.unfinished.release(self)

    def begin_stream(self, request: Request, body: StreamBody) -> None:
        """Send a stream, the last reply of the connection."""
        self.state, self._buffer, self.persistent = _LAST, b"", False
        self.deadline.stop()
        self._resume_reading()
        self.streaming = ConnectionOutlet(self, request, body)
        body.begin(self.streaming)

    def request_done(self) -> None:
        """Continue with the next request when the transport has taken the reply."""
        self.request = None
        if self.sender.busy and self.state is _REPLY:
            self._stop_reading()  # or the next request would wait in memory
        else:
            self._go_on()

    def _on_sent(self) -> None:
        if self.streaming is not None:
            self.streaming.drained()
        elif self.state is _REPLY and self.request is None:
            self._go_on()

    def _go_on(self) -> None:
        if not self.persistent:
            if self._stopped:
                self._close_in_stages()
            else:
                self.close()
            return
        self.state = _HEAD
        self._resume_reading()
        self.deadline.set(self.site.idle_seconds)
        self._answered_in_turn += 1
        if self._answered_in_turn == ANSWERS_PER_TURN:
            self._connections.rotation.add(self)
        if not self._buffer:
            self._connections.idle[self] = None
        if not self._reading:
            self._read()

    def parse_on(self) -> None:
        """Read more of the buffer, in the connection's turn."""
        self.paused = False
        self._resume_reading()
        self._read()

    def _stop_reading(self) -> None:
        if not self._stopped:
            self._stopped = True
            self.transport.pauseProducing()

    def _resume_reading(self) -> None:
        if self._stopped:
            self._stopped = False
            self.transport.resumeProducing()

    @property
    def is_idle(self) -> bool:
        """Whether no byte of a request has arrived."""
        return self.state is _HEAD and not self._buffer

    def _on_deadline(self) -> None:
        if self.state is _LAST:
            self.cut()
        elif self.is_idle:
            self.close_idle()
        else:
            self.refuse(TIMED_OUT())

    def refuse(self, error: Abandoned) -> None:
        """Send an error and close in stages; cut the connection after LINGER_SECONDS."""
        if self.state is _LAST:
            return
        request = self.request or Request(self, read_beginning(self._buffer))
        self.state, self._buffer, self.persistent = _LAST, b"", False
        self.release_body()
        request.body.drop(Unavailable())
        reply = error.reply()
        self.site.access_log.refused(
            reply.status, str(error), client=request.caller.name, request_id=request.request_id
        )
        head = encode_head(reply, request.request_id, request.cors_headers())
        self.transport.write(head if request.method == b"HEAD" else head + reply.body)
        self.deadline.set(LINGER_SECONDS)
        self._end_sending()

    def _close_in_stages(self) -> None:
        """Close the sending half, and drop what arrives until the client closes, or doesn't read on.

        Closing with unread bytes would reset the connection, and the client could lose the end of the reply. See
        RFC 9112 §9.6.
        """
        self.state, self._buffer = _LAST, b""
        self.sender.await_client()
        self._resume_reading()
        self._end_sending()

    def _end_sending(self) -> None:
        """Close the sending half, if the transport has one; the client may still send."""
        # TLS has no half-closed connections: loseWriteConnection would end the TCP connection below.
        if ISSLTransport.providedBy(self.transport) or not hasattr(self.transport, "loseWriteConnection"):
            self.close()
        else:
            self.transport.unregisterProducer()
            self.transport.loseWriteConnection()

    def readConnectionLost(self) -> None:
        """Handle the end of the input, which the transport reports again when its reading is resumed."""
        self._input_ended = True
        if self.state is _REPLY or self.streaming is not None:
            if not self._buffer:
                self.persistent = False
            if self.streaming is not None:
                self.streaming.probe()
            self.probe = self.probe or HalfCloseProbe(self)
            self.probe.start()
        elif not self.paused:
            self.close()

    def writeConnectionLost(self) -> None:
        """Ignore the end of the sending half, which the service itself has closed."""

    def drain(self) -> None:
        """Close after the current request; if there is none, the next request is the last."""
        if self.state is not _HEAD:
            self.persistent = False

    def close_if_idle(self) -> None:
        """Close unless a request has begun to arrive or is being handled."""
        if self.is_idle:
            self.close_idle()

    def close_idle(self) -> None:
        """Close, and don't wait for the client.

        TLS waits for the client's confirmation, which one that reads nothing now, or has vanished, doesn't send. It
        need not wait (RFC 8446 §6.1).
        """
        self.close()
        below_tls(self.transport).loseConnection()

    def close(self) -> None:
        """Close when everything is sent."""
        self.state, self._buffer = _LAST, b""
        self._connections.idle.pop(self, None)
        self.sender.close()

    def cut(self) -> None:
        """Close the connection immediately, dropping unsent bytes."""
        self.transport.abortConnection()
