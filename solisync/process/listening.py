"""The listening port: bound by this process, or inherited from a parent or from systemd.

Twisted's own ports lack two things. They configure and clean up an adopted socket too: they change the mode of a unix
socket, and remove its file at the end. So inherited sockets have our Acceptor. And a port that closes resets the
connections that wait to be accepted, so `stop` accepts these first.
"""

import errno
import os
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, cast

from twisted.internet.abstract import FileDescriptor
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.endpoints import UNIXServerEndpoint, serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress, IListeningPort, IProtocolFactory
from twisted.internet.task import deferLater
from twisted.logger import ILogObserver, LogEvent, Logger
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from zope.interface import implementer

from ..errors import FatalError
from .certificates import Certificates

BACKLOG = 1024  # connections that may wait to be accepted; Twisted's 50 would slow down a burst of clients
UNIX_DEFAULTS = "mode=660"  # Twisted's is 666, but peers at a unix socket may report any address as their client's
SHORTAGE_SECONDS = 60.0  # between two lines that a port can't accept connections
PAUSE_SECONDS = 0.1  # the pause before the next attempt to accept when there are no file descriptors left
GIVE_WAY_SECONDS = 0.25  # how long a busy process leaves a connection to the others before it accepts it
GIVE_WAY_ACCEPTS = 8  # the number of connections that it then accepts


def listen(
    reactor: ReactorBase, description: str, factory: IProtocolFactory, *, inherited: socket.socket | None = None
) -> IListeningPort:
    """Listen on an endpoint, or on the socket that was `inherited` from a parent that has bound it.

    Raises FatalError with the reason in one line.
    """
    kind, colon, rest = description.partition(":")
    if kind == "unix":  # the description's own options come later, and win
        rest = f"{UNIX_DEFAULTS}:{rest}"
    try:
        endpoint = serverFromString(_Adopting(reactor, inherited, description), f"{kind}{colon}{rest}")
    except Exception as error:  # a file with a certificate has changed since the settings were read
        raise FatalError(f"solisync: can't listen on {description}: {error}") from None
    if inherited is None and isinstance(endpoint, UNIXServerEndpoint) and not _is_free(endpoint._address):
        raise FatalError(f"solisync: can't listen on {description}: {os.strerror(errno.EADDRINUSE)}")
    outcome: list[IListeningPort | Failure] = []
    endpoint.listen(factory).addBoth(outcome.append)
    (port,) = outcome  # these endpoints listen or fail immediately
    if isinstance(port, Failure):
        reason = port.value.socketError if isinstance(port.value, CannotListenError) else port.value
        raise FatalError(f"solisync: can't listen on {description}: {getattr(reason, 'strerror', None) or reason}")
    return port


def is_private(port: IListeningPort) -> bool:
    """Whether only this machine reaches the port: a unix socket, or a loopback address."""
    address = port.getHost()
    return isinstance(address, UNIXAddress) or ip_address(cast(IPv4Address, address).host).is_loopback


def certificates(port: IListeningPort | None) -> Certificates | None:
    """The certificates of a port, if it is of an `ssl:` endpoint of this process."""
    return getattr(getattr(port, "factory", None), "certificates", None)


def url(port: IListeningPort, description: str) -> str | None:
    """The URL of the port for a client on this machine, or None for a unix socket."""
    address = port.getHost()
    if not isinstance(address, IPv4Address | IPv6Address):
        return None
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.host, address.host)  # noqa: S104
    scheme = "https" if description.startswith("ssl:") else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{address.port}"


def share(port: IListeningPort) -> int:
    """Stop accepting at `port` in this process, and return its descriptor, at which other processes accept."""
    listening = cast(Any, port)
    listening.stopReading()
    # When Twisted closes a port, it would shut down the socket in all processes.
    listening._shouldShutdown = False
    return int(listening.fileno())


async def stop(reactor: ReactorBase, port: IListeningPort) -> None:
    """Accept the connections that wait at `port`, which the kernel would reset, and close the port.

    A busy process leaves such connections to the others. The kernel still resets connections made in the
    microseconds between accepting and closing (docs/decisions.md "Shape").
    """
    listening = cast(Any, port)
    if not getattr(port, "gives_way", False):
        listening.numberAccepts = BACKLOG
        reactor.callLater(0, listening.doRead)  # right before the end: stopListening takes a turn too
    await maybeDeferred(port.stopListening)


class Shortage:
    """Logs at most once a minute that a port can't accept connections.

    Twisted's own port logs three lines for each connection that it has to close; they come to `observe` instead.
    """

    _log = Logger()
    _next = float("-inf")

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds

    def report(self, number: int) -> None:
        """Log the error of this number."""
        if self._seconds() >= self._next:
            self._next = self._seconds() + SHORTAGE_SECONDS
            self._log.error("can't accept connections: {why}", why=os.strerror(number))

    def observe(self, event: LogEvent) -> None:
        """Take a line of Twisted's port about a connection that it could not accept."""
        self.report(errno.EMFILE)


@implementer(IListeningPort)
class Acceptor(FileDescriptor):
    """A port on an inherited socket, where other processes may accept connections too."""

    numberAccepts = 1  # connections at each turn of the reactor, as in tcp.Port; 1 shares them among the processes
    reactor: Any
    gives_way = False  # whether it accepts only connections that other processes leave
    _stopped = False

    def __init__(self, reactor: Any, listening: socket.socket, factory: IProtocolFactory) -> None:
        super().__init__(reactor)
        listening.setblocking(False)
        self._socket = listening
        self._factory = cast(Any, factory)
        self._shortage = Shortage(reactor.seconds)
        self.startListening()

    def startListening(self) -> None:
        """Begin to accept connections."""
        self._factory.doStart()
        self.startReading()

    def stopListening(self) -> Deferred[None]:
        """Stop accepting connections in this process."""
        self._stopped = True
        self.stopReading()
        return deferLater(self.reactor, 0, self._close)

    def _close(self) -> None:
        self._socket.close()
        self._factory.doStop()

    def getHost(self) -> IAddress:
        """The address that the socket is bound to."""
        name = self._socket.getsockname()
        if self._socket.family == socket.AF_UNIX:
            return UNIXAddress(name)
        kind = IPv6Address if self._socket.family == socket.AF_INET6 else IPv4Address
        return cast(IAddress, kind("TCP", *name))

    def fileno(self) -> int:
        return self._socket.fileno()

    def doRead(self) -> None:
        if self.gives_way:
            self._pause(GIVE_WAY_SECONDS, lambda: self._accept(GIVE_WAY_ACCEPTS))
        else:
            self._accept(self.numberAccepts)

    def _accept(self, most: int) -> None:
        for _ in range(most):
            try:
                connection, _ = self._socket.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return  # another process was faster, or the client has gone
            except OSError as error:
                self._pause_for(error)
                return
            with connection:
                connection.setblocking(False)
                try:
                    self.reactor.adoptStreamConnection(connection.fileno(), connection.family, self._factory)
                except OSError as error:
                    if error.errno in (errno.EMFILE, errno.ENFILE):  # otherwise the client has reset the connection
                        self._pause_for(error)
                        return

    def _pause_for(self, error: OSError) -> None:
        self._shortage.report(error.errno or errno.EMFILE)
        self._pause(PAUSE_SECONDS, lambda: None)

    def _pause(self, seconds: float, accept: Callable[[], None]) -> None:
        """Accept no connections for `seconds`; then call `accept`, and continue."""

        def go_on() -> None:
            if not self._stopped:
                self.startReading()
                accept()

        self.stopReading()
        self.reactor.callLater(seconds, go_on)


class _Adopting:
    """The reactor for endpoints, with Acceptors for inherited sockets, a longer backlog, and our certificates."""

    def __init__(self, reactor: Any, inherited: socket.socket | None, description: str) -> None:
        self._reactor = reactor
        self._inherited = inherited
        self._description = description

    def adoptStreamPort(self, descriptor: int, family: int, factory: IProtocolFactory) -> IListeningPort:
        """Listen for a `systemd:` endpoint, which closes the descriptor afterwards."""
        return Acceptor(self._reactor, socket.socket(fileno=os.dup(descriptor)), factory)

    def listenTCP(
        self, port: int, factory: IProtocolFactory, backlog: int = BACKLOG, interface: str = ""
    ) -> IListeningPort:
        """Listen for a `tcp:` endpoint."""
        if self._inherited is not None:
            return Acceptor(self._reactor, self._inherited, factory)
        return self._quiet(self._reactor.listenTCP(port, factory, max(backlog, BACKLOG), interface))

    def _quiet(self, port: Any) -> IListeningPort:
        shortage = Shortage(self._reactor.seconds)
        port._logger = Logger(port._logger.namespace, observer=cast(ILogObserver, shortage.observe))
        return cast(IListeningPort, port)

    def listenSSL(
        self, port: int, factory: IProtocolFactory, contextFactory: Any, backlog: int = BACKLOG, interface: str = ""
    ) -> IListeningPort:
        """Listen for an `ssl:` endpoint."""
        certificates = Certificates(self._description)
        secure = TLSMemoryBIOFactory(certificates, False, factory)
        cast(Any, secure).certificates = certificates
        return self.listenTCP(port, cast(Any, secure), backlog, interface)

    def listenUNIX(
        self, address: str, factory: IProtocolFactory, backlog: int = BACKLOG, mode: int = 0o666, wantPID: int = 0
    ) -> IListeningPort:
        """Listen for a `unix:` endpoint."""
        if self._inherited is not None:
            return Acceptor(self._reactor, self._inherited, factory)
        return self._quiet(self._reactor.listenUNIX(address, factory, max(backlog, BACKLOG), mode, wantPID))


def _is_free(path: str) -> bool:
    """Whether no process listens on a unix socket; remove the socket that a killed process has left.

    Twisted does so only if there is no process with the id in its lock file. In a container, another process soon has
    that id. And it removes the socket of another program, such as systemd, if there is an old lock file beside it.
    """
    with suppress(OSError):
        if not stat.S_ISSOCK(os.stat(path).st_mode):  # other files refuse connections too, and must stay
            return True
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)  # otherwise connecting would wait while the backlog of a running service is full
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            for leftover in (path, f"{path}.lock"):
                with suppress(OSError):
                    os.unlink(leftover)
        except OSError as error:
            return not isinstance(error, BlockingIOError)  # listening will report any other error
        else:
            return False
    return True
