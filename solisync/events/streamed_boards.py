"""The boards that streams name, and notifying the streams at most once a second that a board has changed."""

from collections.abc import Callable, Iterable, Iterator

from twisted.internet.base import ReactorBase
from twisted.internet.task import Cooperator

from ..rules.events import BoardEvent
from .live_errors import LiveErrors
from .stream import EncodedEvent, Stream

QUIET_SECONDS = 1.0


class StreamedBoards:
    """Notifies streams of changes to the boards that they name by `tell`, all of them in one round a second."""

    def __init__(
        self,
        *,
        reactor: ReactorBase,
        cooperator: Cooperator,
        tell: Callable[[Stream, EncodedEvent], None],
        errors: LiveErrors,
    ) -> None:
        self._reactor = reactor
        self._cooperator = cooperator
        self._tell = tell
        self._errors = errors
        self._streams: dict[str, dict[Stream, None]] = {}
        self._changed: dict[str, None] = {}
        self._round = False  # whether a round or the pause after it is running

    def add(self, stream: Stream) -> None:
        """Notify this stream from now on."""
        for board in stream.boards:
            self._streams.setdefault(board, {})[stream] = None

    def remove(self, stream: Stream) -> None:
        """Stop notifying this stream."""
        for board in stream.boards:
            streams = self._streams.get(board, {})
            streams.pop(stream, None)
            if not streams:
                self._streams.pop(board, None)

    def change(self, boards: Iterable[str]) -> None:
        """Notify streams that these boards have changed; without names, that all boards may have changed."""
        wanted = [*boards]
        named = filter(self._streams.__contains__, wanted) if wanted else self._streams
        self._changed.update(dict.fromkeys(named))
        if self._changed and not self._round:
            self._begin()

    def _begin(self) -> None:
        self._round = bool(self._changed)
        if self._round:
            changed, self._changed = self._changed, {}
            telling = self._cooperator.cooperate(self._telling(changed)).whenDone()
            telling.addErrback(self._errors.failed, "not all streams have received a change of a board")
            telling.addCallback(lambda _: self._reactor.callLater(QUIET_SECONDS, self._begin))

    def _telling(self, boards: Iterable[str]) -> Iterator[None]:
        for board in boards:
            event = EncodedEvent(BoardEvent(board))
            for stream in [*self._streams.get(board, ())]:
                self._tell(stream, event)
                yield
