"""The site alone, in memory, with a clock that the test controls."""

from twisted.internet import task
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from solisync.process.metrics import Metrics
from solisync.rules.shapes import MAX_BODY
from solisync.web.wire.reply import BODY_TOO_LARGE, Reply
from solisync.web.wire.sending import PIECE_BYTES
from solisync.web.wire.site import Site


class Transport(StringTransport):
    """A transport in memory that remembers how it was closed, and can be full."""

    full = False

    def __init__(self, peer=None):
        super().__init__(peerAddress=peer or IPv4Address("TCP", "192.0.2.1", 12345))

    def write(self, data):
        super().write(data)
        if self.full:
            self.producer.pauseProducing()

    def unregisterProducer(self):
        self.producer = None  # real transports allow repeated calls too

    def drained(self):
        """Return the bytes that were sent, and ask for more."""
        sent = self.value()
        self.clear()
        self.producer.resumeProducing()
        return sent

    @property
    def closing(self):
        return "abort" if self.disconnected else "close" if self.disconnecting else None


class Streamed:
    """The body of a stream, with its outlet and what has happened to it."""

    outlet = None
    drained_times = 0
    end = None

    def begin(self, outlet):
        self.outlet = outlet

    def drained(self):
        self.drained_times += 1

    def lost(self, *, unread):
        self.end = "unread" if unread else "left"


class Pages:
    """GET /now answers immediately, /later when the test wants, /big with 3.5 pieces; POST returns its body's size.

    GET /pieces answers with the pieces of `pieces`, an async generator function. GET /stream is one of `streams`.
    """

    big = b"x" * (7 * PIECE_BYTES // 2)

    def __init__(self):
        self.waiting = []
        self.streams = []

    def admit(self, request, size):
        """Refuse a body that is too large, as an app without routes."""
        if size is not None and size > MAX_BODY:
            raise BODY_TOO_LARGE()

    def render(self, request):
        if request.method == b"POST":
            request.answer(Reply(body=str(len(request.body.read())).encode()))
        elif request.path == b"/later":
            self.waiting.append(request)
        elif request.path == b"/broken":
            raise LookupError("no such page")
        elif request.path == b"/stream":
            self.streams.append(Streamed())
            request.answer(Reply(stream=self.streams[-1], content_type="text/event-stream"))
        elif request.path == b"/pieces":
            request.answer(Reply(pieces=self.pieces()))
        else:
            request.answer(Reply(body=self.big if request.path == b"/big" else b"{}"))

    def answer(self):
        request = self.waiting.pop(0)
        request.answer(Reply(body=b"{}"))


class Bench:
    """A site and its connections, with a clock that the test controls."""

    def __init__(self, *, admit=None, **settings):
        self.clock = task.Clock()
        self.pages = Pages()
        if admit is not None:
            self.pages.admit = admit
        options = {"trusted_proxies": (), "cors_origins": frozenset(), **settings}
        self.site = Site(self.pages, self.clock, metrics=Metrics(), **options)
        self.connections = self.site.connections

    def connect(self, data=b"", peer=None):
        channel = self.site.buildProtocol(None)
        transport = Transport(peer)
        channel.makeConnection(transport)
        if data:
            channel.dataReceived(data)
        return channel, transport

    def disconnect(self, channel):
        channel.connectionLost(Failure(ConnectionDone()))
