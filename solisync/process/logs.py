"""Log lines: text for people, or a JSON object in each line for programs (docs/operations.md "Logs").

Only the fields in FIELDS reach a JSON line, because other values of an event may be secrets. Each line that is logged
while a request is being handled gets the request's id and client.
"""

import json
import os
import re
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache, lru_cache
from time import time
from typing import IO, Any, cast

from twisted.logger import ILogObserver, LogEvent, Logger, LogLevel, formatEvent
from zope.interface import provider

FORMATS = ("text", "json")
LEVELS = ("info", "warn", "error")
AUDIT = "solisync.audit"  # the namespace of the audit trail, which no level leaves out
FIELDS = (
    *("event", "reason", "user_id", "admin", "client"),
    *("method", "route", "path", "status", "milliseconds", "request_id"),
)
REASONS_MAX = 100  # the most reasons to log in an outage, in case they all differ

# The client and the id of the request that is being handled.
serving: ContextVar[dict[str, object]] = ContextVar("serving", default={})  # noqa: B039  the default is never changed

# Fast path: a system call for each line, part of 73 of 493 thousand instructions a request, see docs/performance.md.
_pid = cache(os.getpid)
os.register_at_fork(after_in_child=_pid.cache_clear)

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def quick_info(logger: Logger, text: str, **fields: object) -> None:
    """Like `logger.info`. Fast path: replaces it, 30,000 instructions, see docs/performance.md."""
    fields |= {
        "log_logger": logger,
        "log_level": LogLevel.info,
        "log_namespace": logger.namespace,
        "log_source": None,
        "log_format": text,
        "log_time": time(),
    }
    logger.observer(fields)


def observer(style: str, out: IO[str], level: str = "info") -> ILogObserver:
    """Make a log observer that writes each event of a `level` or above, and the audit trail, to `out` immediately.

    `style` is one of FORMATS, `level` one of LEVELS.
    """
    least = LogLevel.levelWithName(level)
    line = _json_line if style == "json" else _text_line
    flushes_itself = getattr(out, "line_buffering", False)  # as standard error does

    @provider(ILogObserver)
    def observe(event: LogEvent) -> None:
        # Twisted's ports announce themselves by its older way to log; the service has better lines for that.
        if event.get("log_namespace") == "log_legacy" and not event.get("isError"):
            return
        if event.get("log_level", LogLevel.info) < least and event.get("log_namespace") != AUDIT:
            return
        try:
            out.write(line(event))
            if not flushes_itself:
                out.flush()
        except (OSError, ValueError):
            pass  # a full disk or a closed terminal must not stop the service, and there is no other log

    return cast(ILogObserver, observe)


def _text_line(event: LogEvent) -> str:
    message = event_text(event)
    request = serving.get()
    if request:
        message += f" [{request['client']} {request['request_id']}]"
    body = _printable(message).replace("\n", "\n\t")  # so that a client's text can't look like a separate line
    return f"{_time(event)} {_pid()} {_level(event)} {_source(event)}: {body}\n"


def _json_line(event: LogEvent) -> str:
    line: dict[str, object] = {
        "time": _time(event),
        "level": _level(event),
        "source": _source(event),
        "pid": _pid(),
    }
    known = serving.get() | event
    line |= {name: known[name] for name in FIELDS if known.get(name) is not None}
    failure = event.get("log_failure")
    line["message"] = _message(event)
    if failure is not None:
        line["traceback"] = failure.getTraceback()
    return json.dumps(line, default=str) + "\n"


def event_text(event: LogEvent) -> str:
    """Return the message, followed by the traceback if there is one."""
    message = _message(event)
    failure = event.get("log_failure")
    return message if failure is None else f"{message}\n{failure.getTraceback().rstrip()}"


def _message(event: LogEvent) -> str:
    """Return the message as Twisted's formatEvent would."""
    # Fast path: formatEvent, nine tenths of its time, see docs/performance.md. It remains for formats with calls in
    # them, and for events that don't fit their format.
    template = event.get("log_format")
    if isinstance(template, str) and "()" not in template:
        try:
            return template.format_map(event)
        except Exception:
            return formatEvent(event)
    return formatEvent(event)


def _time(event: LogEvent) -> str:
    second, part = divmod(event["log_time"], 1)
    return f"{_second(int(second))}.{int(part * 1000):03d}Z"


@lru_cache(1)
def _second(whole: int) -> str:
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _level(event: LogEvent) -> str:
    level: Any = event.get("log_level") or LogLevel.info
    return str(level.name)


def _source(event: LogEvent) -> str:
    return str(event.get("log_namespace") or event.get("log_system") or "-")


def _printable(text: str) -> str:
    return text if text.isprintable() else _UNPRINTABLE.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


class Reasons:
    """The logged reasons of an outage; each is logged only once during the outage."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._logged)

    def is_new(self, reason: str) -> bool:
        """Whether to log this reason; from then on it counts as logged."""
        if reason in self._logged or len(self._logged) >= REASONS_MAX:
            return False
        self._logged.add(reason)
        return True

    def forget(self) -> None:
        """End the outage: the reasons of the next one are logged again."""
        self._logged.clear()
