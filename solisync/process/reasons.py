"""The reasons of an outage, each of which is logged once until the outage is over."""

REASONS_MAX = 100  # for reasons that never repeat: the log has seen enough of them


class Reasons:
    """What has been logged about the present outage."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._logged)

    def is_new(self, reason: str) -> bool:
        """Whether this reason is to be logged, which then has happened."""
        if reason in self._logged or len(self._logged) >= REASONS_MAX:
            return False
        self._logged.add(reason)
        return True

    def forget(self) -> None:
        """The outage is over: the next one is logged anew."""
        self._logged.clear()
