"""The mapping of the original database's players to players here."""

from ..rules.analytics import name_of
from .players import Found
from .rows import Fate, ReportedEvent, User
from .sqlite_values import Unusable
from .tally import Tally


class Owners:
    """The players that differ from the file: refused, deleted here since an import, or renamed."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._refused: set[object] = set()  # ids
        self._deleted: set[object] = set()
        self._refused_names: set[str | None] = set()  # in the form of events
        self._names: dict[str | None, str | None] = {}  # names that differ here, or None for deleted players

    def settle(self, user: User, found: Found) -> None:
        """Count a player by their fate, which the database has found."""
        name = name_of(user.username)
        match found.fate:
            case Fate.TAKEN:
                self.refuse(user.id, user.username, f"another player is called {user.username} here")
            case Fate.DELETED:
                self._deleted.add(user.id)
                self._names |= {user.id: None, name: None}
                self._tally.present("users")
            case Fate.PRESENT:
                self._tally.present("users")
                if found.username != user.username:
                    self._names[name] = name_of(found.username)
                if found.password_differs:
                    self._tally.warn("users", user.id, "has a new password there; the old one stays here")
            case Fate.NEW:
                self._tally.imported("users")

    def refuse(self, user_id: object, username: object, reason: str) -> None:
        """Count a player that isn't imported."""
        self._refused.add(user_id)
        for name in (user_id, username):
            if isinstance(name, str):
                self._refused_names.add(name_of(name))
        self._tally.refuse("users", user_id, reason)

    def are_here(self, table: str, row_id: object, owner: object) -> bool:
        """Whether the player `owner` is here; if not, count the row of that player."""
        if owner in self._refused:
            self._tally.refuse(table, row_id, "belongs to a refused player")
        elif owner in self._deleted:
            self._tally.present(table)
        else:
            return True
        return False

    def rename(self, reported: ReportedEvent) -> ReportedEvent:
        """Return the event with its player's name here; raise Unusable for a refused player."""
        name = reported.name
        if name is not None and name in self._refused_names:
            raise Unusable("belongs to a refused player")
        return reported._replace(name=self._names.get(name, name))
