"""A row of the table of settings, and how values are shown to admins; solisync.settings.table has the rows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..access.rate_limit import Limit

PREFIX = "SOLISYNC_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A row of the table: a source of a field of Settings or ServingSettings. `read` raises ValueError for a bad value.

    Rows of the same field are adjacent, and only one of them may be set.
    """

    variable: str
    metavar: str = ""  # for an option with a value, named as the variable
    flag: str | None = None  # for an option without a value: the value that it sets
    switch: str = ""  # for an option without a value: its name
    read: Callable[[str], Any]
    show: Callable[[Any], str] | None = None  # the value for admins; None for a secret
    default: str | None = None
    missing: str | None = None  # for a required setting: the error if it isn't set
    help: str

    @property
    def field(self) -> str:
        """The name in Settings or ServingSettings, which a variable shares with the one for its file."""
        return self._name.removesuffix("_file")

    @property
    def option(self) -> str:
        """The name on the command line, or "" if there is only the variable."""
        return self._name.replace("_", "-") if self.metavar else self.switch

    @property
    def _name(self) -> str:
        return self.variable.removeprefix(PREFIX).lower()

    @property
    def description(self) -> str:
        """The help text of the option, with the variable and the default."""
        if self.flag:
            return f"{self.help} [{self.variable}={self.flag}]"
        return f"{self.help} [{self.variable}{f', else {self.default}' if self.default else ''}]"


def shown_switch(value: bool) -> str:
    """The switch as in the settings: on or off."""
    return "on" if value else "off"


def shown_list(values: Iterable[object]) -> str:
    """The values, sorted."""
    return ", ".join(sorted(map(str, values)))


def shown_limit(value: Limit | None) -> str:
    """The limit as in the settings, 0 for None."""
    return "0" if value is None else f"{value.most}/{value.seconds}"


def shown_links(values: Iterable[tuple[str, str]]) -> str:
    """The names with their addresses, as in the settings."""
    return ", ".join(f"{name}={address}" for name, address in values)
