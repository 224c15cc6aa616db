"""Coalesces the writes of one reactor turn: replies are sent at its end."""

from functools import partial
from typing import Any

from twisted.internet import tcp
from twisted.internet.base import ReactorBase
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

_log = Logger()


class EndOfTurn:
    """Sends, once in each turn, what connections have written in it; the reactor watches only those that are full.

    Fast path: replaces two calls of the kernel and an event of the reactor for each reply, 15,000 instructions, see
    docs/performance.md. For TCP and unix sockets; under TLS, Twisted's way remains.
    """

    def __init__(self, *, reactor: ReactorBase) -> None:
        self._reactor: Any = reactor
        self._written: dict[Any, None] = {}
        self._next: IDelayedCall | None = None

    def adopt(self, transport: Any) -> None:
        """Send what this transport is given at the end of each turn, until `release`."""
        if isinstance(transport, tcp.Server) and hasattr(self._reactor, "_disconnectSelectable"):
            vars(transport)["startWriting"] = partial(self._add, transport)

    def release(self, transport: Any) -> None:
        """Leave a transport alone, whose connection is lost."""
        vars(transport).pop("startWriting", None)
        self._written.pop(transport, None)

    def _add(self, transport: Any) -> None:
        self._written[transport] = None
        if self._next is None:
            self._next = self._reactor.callLater(0, self._send)

    def _send(self) -> None:
        written, self._written = self._written, {}
        self._next = None
        for transport in written:
            if transport.fileno() < 0:
                continue  # one that was sent before has cut this one
            try:
                why = transport.doWrite()
            except Exception as error:
                _log.failure("could not send a reply")
                why = error
            if why:
                self._reactor._disconnectSelectable(transport, why, False)
            elif transport.dataBuffer:
                self._reactor.addWriter(transport)
