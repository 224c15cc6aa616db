"""Checks of settings, host and database, for `solisync doctor` and the console: each returns findings."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check: `level` is ok, note (may be intended) or wrong; `advice` is the remedy."""

    level: str
    subject: str
    text: str
    advice: str | None = None

    @property
    def record(self) -> dict[str, object]:
        """The fields of the finding, for JSON."""
        return asdict(self)


def fine(subject: str, text: str) -> Finding:
    """A check that has passed."""
    return Finding("ok", subject, text)


def note(subject: str, text: str, advice: str | None = None) -> Finding:
    """A check that has found something which may be intended."""
    return Finding("note", subject, text, advice)


def wrong(subject: str, text: str, advice: str) -> Finding:
    """A check that has found something which keeps the service from working as it should."""
    return Finding("wrong", subject, text, advice)
