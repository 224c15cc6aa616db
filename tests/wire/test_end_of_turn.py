"""Replies are sent at the end of the turn in which they were written, and the reactor watches only full sockets."""

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
    """A transport whose socket accepts `room` bytes."""

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


def test_replies_of_a_turn_are_sent_together_at_its_end():
    """One call serves all connections, and none is made without bytes to send."""
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


def test_reactor_watches_a_full_socket():
    """The socket is watched until it has taken the rest, as in Twisted."""
    socket = Socket(room=2)
    reactor, _ = adopted(socket)
    socket.write(b"abc")
    reactor.advance(0)
    assert (socket.sent, reactor.watched) == (b"ab", [socket])


def test_connection_lost_in_the_turn_is_skipped():
    """Its own channel has reported the loss, or another one of the turn has closed it."""
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


def test_failed_write_loses_only_its_connection(warnings, no_lost_failures):
    """The socket reports the failure, or sending raises an error."""
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


def test_other_transports_are_unchanged():
    """Transports with TLS, and those of other reactors, close connections differently."""
    transport = StringTransport()
    adopted(transport)
    assert "startWriting" not in vars(transport)
    socket = Socket()
    EndOfTurn(reactor=Clock()).adopt(socket)
    assert "startWriting" not in vars(socket)
