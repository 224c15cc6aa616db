"""Checks of settings, host and database, for `solisync doctor` and the console: each returns findings."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: `level` is ok, note (may be intended) or wrong; `advice` is the remedy."""

    level: str
    subject: str
    text: str
    advice: str | None = None

    @property
    def record(self) -> dict[str, object]:
        """The fields of the finding, for JSON."""
        return asdict(self)


def fine(subject: str, text: str) -> Finding:
    """The finding of a check that passed."""
    return Finding("ok", subject, text)


def note(subject: str, text: str, advice: str | None = None) -> Finding:
    """A finding that may be intended."""
    return Finding("note", subject, text, advice)


def wrong(subject: str, text: str, advice: str) -> Finding:
    """A finding that keeps the service from working properly."""
    return Finding("wrong", subject, text, advice)
