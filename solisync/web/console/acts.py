"""Routes that perform acts on players and replays, with their bodies and answers (docs/console.md "Acts")."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field
from msgspec.structs import replace
from twisted.internet.base import ReactorBase
from twisted.logger import Logger

from ...access.passwords import Passwords
from ...access.rate_limit import ADMIN_ACTS, ADMIN_GRAVE
from ...acts import players, profiles, replays
from ...acts.act import Act, Acting, Done, Why
from ...acts.record import undo_after
from ...errors import BadRequest, DatabaseError, NotFound, Unavailable
from ...events.notices import Publish
from ...postgres.database import Database
from ...rules.administration import MANY, Acted, Message, Note, Reason, Until, check_suspension
from ...rules.documents import read_pushed
from ...rules.games import CountedGame
from ...rules.recovery import digest, new_reset_token, on_site, reset_path
from ...rules.shapes import Checked
from ...settings.settings import ServingSettings
from ...storage.operators.acts import Actor
from .declaring import NO_PLAYER, NO_REPLAY, post, put

MANY_SECONDS = 10.0  # time for suspending several players; the client sends the others in another request


class ActBody(Checked, frozen=True, kw_only=True):
    """The reason for the act; the reason `other` requires a note."""

    reason: Reason
    note: Note | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reason == "other" and not (self.note or "").strip():
            raise ValueError("note: the reason 'other' needs one")


class SuspensionBody(ActBody, frozen=True, kw_only=True):
    """Whether the player is suspended; repeat it to change end and message."""

    suspended: bool
    until: Until | None = None
    message: Message | None = None


class SuspensionsBody(ActBody, frozen=True, kw_only=True):
    """Players to suspend."""

    ids: Annotated[list[str], Meta(min_length=1, max_length=MANY)]
    until: Until | None = None
    message: Message | None = None


class LockBody(ActBody, frozen=True, kw_only=True):
    """Whether the player's profile is locked."""

    locked: bool


class EndSessionsBody(ActBody, frozen=True, kw_only=True):
    """With `access`, the server refuses access tokens too, within a second."""

    access: bool = False


class LinkBody(ActBody, frozen=True, kw_only=True):
    """With `lock_out`, the old password, sessions, access tokens and recovery codes end immediately."""

    lock_out: bool = False


class RestoreBody(ActBody, frozen=True, kw_only=True):
    """The progress to merge into the player's, and the games that it has by their ids."""

    progress: Annotated[
        Raw,
        Meta(
            description="`progress` of an export",
            extra_json_schema={"type": "object", "additionalProperties": True},
        ),
    ]
    games: Annotated[list[CountedGame], Meta(description="`games` of the same export")] = field(default_factory=list)


class UsernameBody(ActBody, frozen=True, kw_only=True):
    """The new username."""

    username: str


class EntryBody(ActBody, frozen=True, kw_only=True):
    """The new name of the leaderboard entry, whether it is visible, or both."""

    display_name: str | UnsetType = UNSET
    visible: bool | UnsetType = UNSET


class DeletionBody(ActBody, frozen=True, kw_only=True):
    """The username of the player to delete, as a confirmation."""

    username: str


class ListedBody(ActBody, frozen=True, kw_only=True):
    """Whether the replay is listed; an unlisted one is held, so its player can't list it."""

    listed: bool


class CheckBody(ActBody, frozen=True, kw_only=True):
    """With `again`, the replay is checked even if it has a verdict."""

    again: bool = False


class EndedSessions(Acted, frozen=True, kw_only=True):
    """The number of sessions that were ended."""

    ended: int


class NewLink(Acted, frozen=True, kw_only=True):
    """A reset link, which no later request returns: its path, and the whole link if `SOLISYNC_SITE_URL` is set."""

    path: str
    url: str | None
    expires_at: datetime


class Suspended(Struct, frozen=True, kw_only=True):
    """Ids of players who are now suspended, who don't exist, and who are left for another request."""

    suspended: list[str]
    missing: list[str]
    left: list[str]


@dataclass(frozen=True, kw_only=True)
class Acts:
    """Performs acts in the name of admins. A request that changes nothing succeeds, too."""

    tag: ClassVar[str] = "players"
    _log: ClassVar[Logger] = Logger()

    settings: ServingSettings
    database: Database
    publish: Publish
    forget: Callable[[], None]
    passwords: Passwords
    reactor: ReactorBase
    now: Callable[[], datetime]

    @put("/players/{user_id}/suspension", name="suspend", limit=ADMIN_ACTS, errors=NO_PLAYER)
    async def suspension(self, user_id: str, body: SuspensionBody, actor: Actor) -> Acted:
        """Suspend a player, or end the suspension."""
        if not body.suspended:
            return await self._act(players.unsuspend, user_id, body, actor)
        message = check_suspension(body.until, body.message, self.now())
        return await self._act(players.suspend, user_id, body, actor, until=body.until, message=message)

    @post("/suspensions", name="suspend_several", summary="Suspend up to 100 players", limit=ADMIN_GRAVE)
    async def suspensions(self, body: SuspensionsBody, actor: Actor) -> Suspended:
        """Suspend several players, each in its own transaction, within MANY_SECONDS.

        If the database fails in between, the answer says who is suspended and who is left.
        """
        message = check_suspension(body.until, body.message, self.now())
        acting, wanted = self._acting(body, actor), list(dict.fromkeys(body.ids))
        given = {"until": body.until, "message": message}
        suspended: list[str] = []
        deadline = self.reactor.seconds() + MANY_SECONDS
        for number, user_id in enumerate(wanted):
            if self.reactor.seconds() > deadline:
                return _suspended(wanted[:number], suspended, wanted[number:])
            try:
                await acting.perform(players.suspend, user_id, **given)
                suspended.append(user_id)
            except NotFound:
                continue
            except (DatabaseError, Unavailable) as error:
                if not suspended:
                    raise
                left = len(wanted) - number
                self._log.error("{left} of several players are left to suspend: {error}", left=left, error=error)
                return _suspended(wanted[:number], suspended, wanted[number:])
        return _suspended(wanted, suspended, [])

    @put("/players/{user_id}/lock", limit=ADMIN_ACTS, errors=NO_PLAYER)
    async def lock(self, user_id: str, body: LockBody, actor: Actor) -> Acted:
        """Lock a player's profile, or end the lock."""
        return await self._act(players.lock if body.locked else players.unlock, user_id, body, actor)

    @post("/players/{user_id}/sessions/end", summary="End all sessions of a player", limit=ADMIN_ACTS, errors=NO_PLAYER)
    async def end_sessions(self, user_id: str, body: EndSessionsBody, actor: Actor) -> EndedSessions:
        """End all sessions of a player; the body may also end their access tokens."""
        done = await self._acting(body, actor).perform(players.end_sessions, user_id, access=body.access)
        return EndedSessions(changed=done.changed, ended=done.result)

    @post(
        "/players/{user_id}/password-link",
        summary="Make a link with which a player sets a new password",
        limit=ADMIN_GRAVE,
        errors=(*NO_PLAYER, "guest"),
    )
    async def link(self, user_id: str, body: LinkBody, actor: Actor) -> NewLink:
        """Make a reset link, which replaces an earlier one."""
        token = new_reset_token()
        unknown = await self.passwords.hash_of_nothing() if body.lock_out else None
        given = {"token_digest": digest(token), "password_hash": unknown}
        done = await self._acting(body, actor).perform(players.link, user_id, **given)
        path, site = reset_path(token), self.settings.site_url
        return NewLink(changed=True, path=path, url=site and on_site(site, path), expires_at=done.result)

    @put(
        "/players/{user_id}/username",
        name="rename",
        limit=ADMIN_ACTS,
        errors=(*NO_PLAYER, "username_length", "username_characters", "username_taken"),
    )
    async def username(self, user_id: str, body: UsernameBody, actor: Actor) -> Acted:
        """Change a player's username."""
        done = await players.perform_rename(self._acting(body, actor), user_id, body.username)
        return self._acted(players.rename, user_id, done)

    @post(
        "/players/{user_id}/progress/restore",
        name="restore_progress",
        summary="Merge exported progress into a player's",
        limit=ADMIN_ACTS,
        errors=(*NO_PLAYER, "sync_too_large", "sync_too_many"),
    )
    async def restore(self, user_id: str, body: RestoreBody, actor: Actor) -> Acted:
        """Merge the progress of an export into a player's, as if a device pushed it; nothing is lowered."""
        exported = read_pushed(bytes(body.progress)).document
        return await self._act(
            players.restore, user_id, body, actor, exported=exported, games=body.games, now=self.now()
        )

    @put(
        "/players/{user_id}/entry",
        name="set_entry",
        summary="Rename, hide or show a player's entry on the leaderboard",
        limit=ADMIN_ACTS,
        errors=(*NO_PLAYER, "display_name_empty", "display_name_length", "display_name_characters"),
    )
    async def entry(self, user_id: str, body: EntryBody, actor: Actor) -> Acted:
        """Change the display name of a player's leaderboard entry, hide the entry, or show it."""
        if body.display_name is UNSET and body.visible is UNSET:
            raise BadRequest("bad_field", "display_name or visible is needed")
        acted = []
        if body.display_name is not UNSET:
            acted.append(await self._act(profiles.name, user_id, body, actor, display_name=body.display_name))
        if body.visible is not UNSET:
            acted.append(await self._act(profiles.show if body.visible else profiles.hide, user_id, body, actor))
        return _together(acted)

    @post("/players/{user_id}/avatar/remove", limit=ADMIN_ACTS, errors=NO_PLAYER)
    async def remove_avatar(self, user_id: str, body: ActBody, actor: Actor) -> Acted:
        """Remove a player's avatar."""
        return await self._act(profiles.remove_avatar, user_id, body, actor)

    @post(
        "/players/{user_id}/delete",
        name="delete_player",
        summary="Delete a player and all their data",
        limit=ADMIN_GRAVE,
        errors=NO_PLAYER,
    )
    async def delete(self, user_id: str, body: DeletionBody, actor: Actor) -> Acted:
        """Delete a player; the body must contain the username."""
        return await self._act(players.delete, user_id, body, actor, username=body.username)

    @put(
        "/replays/{replay_id}/listed",
        name="set_listed",
        tag="replays",
        summary="Unlist a replay, or list it again",
        limit=ADMIN_ACTS,
        errors=NO_REPLAY,
    )
    async def listed(self, replay_id: str, body: ListedBody, actor: Actor) -> Acted:
        """Take a replay off the lists and hold it, or list it again."""
        return await self._act(replays.list_again if body.listed else replays.unlist, replay_id, body, actor)

    @post("/replays/{replay_id}/check", tag="replays", limit=ADMIN_ACTS, errors=NO_REPLAY)
    async def check(self, replay_id: str, body: CheckBody, actor: Actor) -> Acted:
        """Check a replay before all others."""
        return await self._act(replays.check, replay_id, body, actor, again=body.again)

    @post("/replays/{replay_id}/delete", tag="replays", limit=ADMIN_ACTS, errors=NO_REPLAY)
    async def delete_replay(self, replay_id: str, body: ActBody, actor: Actor) -> Acted:
        """Delete a replay."""
        return await self._act(replays.delete, replay_id, body, actor)

    def _acting(self, body: ActBody, actor: Actor) -> Acting:
        why = Why(body.reason, body.note)
        return Acting(database=self.database, publish=self.publish, forget=self.forget, by=actor, why=why)

    async def _act(self, act: Act, target: str, body: ActBody, actor: Actor, **given: Any) -> Acted:
        done = await self._acting(body, actor).perform(act, target, **given)
        return self._acted(act, target, done)

    def _acted(self, act: Act, target: str, done: Done) -> Acted:
        undo = undo_after(act, done, target, self.now())
        return Acted(changed=done.changed, settled=done.settled, undo=undo)


def _together(acted: Sequence[Acted]) -> Acted:
    """Return the answer to a request for several acts of one route, whose `undo` reverses all that has changed."""
    undone = [each.undo for each in acted if each.undo is not None]
    body = {name: value for each in undone for name, value in each.body.items()}
    return Acted(
        changed=any(each.changed for each in acted),
        settled=all(each.settled for each in acted),
        undo=replace(undone[0], body=body) if undone else None,
    )


def _suspended(tried: list[str], suspended: list[str], left: list[str]) -> Suspended:
    return Suspended(suspended=suspended, missing=[each for each in tried if each not in suspended], left=left)
