"""What the doctor says about one thing."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """`level` is ok, note (may be intended) or wrong; `advice` says what to do, if there is something to do."""

    level: str
    subject: str
    text: str
    advice: str | None = None

    @property
    def record(self) -> dict[str, object]:
        """The same for programs."""
        return asdict(self)


def fine(subject: str, text: str) -> Finding:
    """All is well."""
    return Finding("ok", subject, text)


def note(subject: str, text: str, advice: str | None = None) -> Finding:
    """Something to know, or to change if it isn't intended."""
    return Finding("note", subject, text, advice)


def wrong(subject: str, text: str, advice: str) -> Finding:
    """Something that keeps the service from working as it should."""
    return Finding("wrong", subject, text, advice)
