"""The site alone, in memory, with a clock that the test controls."""

from twisted.internet import task
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

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


class Pages(Resource):
    """GET /now answers immediately, /later when the test wants, /big with 3.5 pieces; POST returns its body's size.

    GET /pieces answers with the pieces of `pieces`, an async generator function. GET /stream is one of `streams`.
    """

    isLeaf = True
    big = b"x" * (7 * PIECE_BYTES // 2)

    def __init__(self):
        super().__init__()
        self.waiting = []
        self.streams = []

    def render_GET(self, request):
        if request.path == b"/later":
            self.waiting.append(request)
            return NOT_DONE_YET
        if request.path == b"/broken":
            raise LookupError("no such page")
        if request.path == b"/stream":
            self.streams.append(Streamed())
            request.answer(Reply(stream=self.streams[-1], content_type="text/event-stream"))
            return NOT_DONE_YET
        if request.path == b"/pieces":
            request.answer(Reply(pieces=self.pieces()))
            return NOT_DONE_YET
        body = self.big if request.path == b"/big" else b"{}"
        request.answer(Reply(body=body))
        return NOT_DONE_YET

    def render_POST(self, request):
        request.answer(Reply(body=str(len(request.body.read())).encode()))
        return NOT_DONE_YET

    def answer(self):
        request = self.waiting.pop(0)
        request.answer(Reply(body=b"{}"))


def admit(request, size):
    """Return the refusal of a body that is too large for an app without routes."""
    return BODY_TOO_LARGE if size is not None and size > MAX_BODY else None


class Bench:
    """A site and its connections, with a clock that the test controls."""

    def __init__(self, **settings):
        self.clock = task.Clock()
        self.pages = Pages()
        options = {
            "trusted_proxies": (),
            "cors_origins": frozenset(),
            "admit": admit,
            **settings,
        }
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
