"""Replies leave at the end of the turn in which they were written, and the reactor watches only who is full."""

from twisted.internet import tcp
from twisted.internet.error import ConnectionLost
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from solisync.web.wire.turns import EndOfTurn


class Reactor(Clock):
    def __init__(self):
        super().__init__()
        self.watched, self.lost = [], []

    def addWriter(self, transport):
        self.watched.append(transport)

    def _disconnectSelectable(self, transport, why, is_read):
        self.lost.append((transport, why))


class Socket(tcp.Server):
    """A transport whose socket takes `room` bytes."""

    def __init__(self, room=100, result=None):
        self.room, self.result = room, result
        self.sent, self.dataBuffer, self.open = b"", b"", True

    def fileno(self):
        return 7 if self.open else -1

    def write(self, data):
        self.dataBuffer += data
        self.startWriting()

    def doWrite(self):
        if isinstance(self.result, LookupError):
            raise self.result
        self.sent, self.dataBuffer = self.sent + self.dataBuffer[: self.room], self.dataBuffer[self.room :]
        return self.result


def adopted(*sockets):
    reactor = Reactor()
    turns = EndOfTurn(reactor=reactor)
    for socket in sockets:
        turns.adopt(socket)
    return reactor, turns


def test_what_is_written_in_a_turn_leaves_together_at_its_end():
    """One call for all connections, and none without anything to send."""
    one, other = Socket(), Socket()
    reactor, _ = adopted(one, other)
    one.write(b"a")
    one.write(b"b")
    other.write(b"c")
    assert (one.sent, other.sent, len(reactor.getDelayedCalls())) == (b"", b"", 1)
    reactor.advance(0)
    assert (one.sent, other.sent, reactor.watched, reactor.getDelayedCalls()) == (b"ab", b"c", [], [])
    one.write(b"d")
    reactor.advance(0)
    assert one.sent == b"abd"


def test_the_reactor_watches_a_socket_that_is_full():
    """Until it has taken the rest, as Twisted does."""
    socket = Socket(room=2)
    reactor, _ = adopted(socket)
    socket.write(b"abc")
    reactor.advance(0)
    assert (socket.sent, reactor.watched) == (b"ab", [socket])


def test_a_connection_that_is_lost_meanwhile_is_left_alone():
    """Whether its channel has said so, or another one of the same turn has closed it."""
    said, cut, whole = Socket(), Socket(), Socket()
    reactor, turns = adopted(said, cut, whole)
    for socket in (said, cut, whole):
        socket.write(b"a")
    turns.release(said)
    turns.release(said)
    cut.open = False
    reactor.advance(0)
    assert (said.sent, cut.sent, whole.sent, reactor.lost) == (b"", b"", b"a", [])
    assert "startWriting" not in vars(said)


def test_a_connection_that_can_not_be_written_to_is_lost_and_the_others_are_served(warnings, no_lost_failures):
    """Whether the socket says so or sending fails."""
    gone, broken, whole = Socket(result=ConnectionLost()), Socket(result=LookupError("a bug")), Socket()
    reactor, _ = adopted(gone, broken, whole)
    for socket in (gone, broken, whole):
        socket.write(b"a")
    reactor.advance(0)
    assert reactor.lost == [(gone, gone.result), (broken, broken.result)]
    assert whole.sent == b"a"
    assert [event["log_failure"].type for event in warnings if "log_failure" in event] == [LookupError]
    warnings.clear()
    no_lost_failures.clear()


def test_other_transports_are_left_alone():
    """Those under TLS, and those of reactors that close connections otherwise."""
    transport = StringTransport()
    adopted(transport)
    assert "startWriting" not in vars(transport)
    socket = Socket()
    EndOfTurn(reactor=Clock()).adopt(socket)
    assert "startWriting" not in vars(socket)
