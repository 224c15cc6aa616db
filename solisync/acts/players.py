"""Acts on accounts: suspend, lock, end sessions, rename, restore progress, delete, make a reset link."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import structs

from ..errors import BadRequest, Conflict, DatabaseError, Forbidden
from ..players import progress
from ..postgres.statement import Call
from ..postgres.transaction import Transaction
from ..rules.accounts import check_username
from ..rules.analytics import names_of_rename
from ..rules.counting import counts_of
from ..rules.documents import read_stored
from ..rules.games import CountedGame
from ..rules.recovery import RESET_LIFETIME
from ..rules.sessions import ACCESS_LIFETIME
from ..rules.sync import Document
from ..rules.undo import suspension_words
from ..storage.operators import large_accounts
from ..storage.players import accounts, guests, recovery, restrictions, sessions, sync
from ..storage.players.accounts import Player
from ..storage.players.games import adding, missing
from .act import NOTHING, Acting, Done, act
from .large_accounts import erase

LIFETIME = int(ACCESS_LIFETIME.total_seconds())


@act(on="player")
async def suspend(
    transaction: Transaction, player: Player, *, until: datetime | None = None, message: str | None = None
) -> Done:
    """Suspend a player, until the given time or until an operator ends it. Repeated, change the end and the message."""
    former = await restrictions.suspension(transaction, player.id)
    if former is None:
        steps = restrictions.suspending(player.id, until=until, message=message)
        steps += (restrictions.cut_off.call(player.id, lifetime=LIFETIME),)
        return Done(changed=True, after=suspension_words(until, message), steps=steps, sessions_ended=True)
    if (former.until, former.message) == (until, message):
        return NOTHING
    steps = (restrictions.change.call(player.id, until=until, message=message),)
    before, after = suspension_words(former.until, former.message), suspension_words(until, message)
    return Done(changed=True, before=before, after=after, steps=steps)


@act(on="player")
async def unsuspend(transaction: Transaction, player: Player, *, only_ended: bool = False) -> Done:
    """End a suspension and restore visibility; with `only_ended`, only if the suspension's time is over."""
    former = await restrictions.suspension(transaction, player.id)
    if former is None or (only_ended and not former.ended):
        return NOTHING
    steps = await restrictions.lift(transaction, player.id)
    return Done(changed=True, before=suspension_words(former.until, former.message), steps=steps)


@act(on="player")
async def lock(transaction: Transaction, player: Player) -> Done:
    """Lock a player's profile: the player can't change what others see of it."""
    if await restrictions.is_locked(transaction, player.id):
        return NOTHING
    return Done(changed=True, steps=(restrictions.lock.call(player.id),))


@act(on="player")
async def unlock(transaction: Transaction, player: Player) -> Done:
    """Unlock a player's profile. Replays that were held during the lock stay held."""
    if not await restrictions.is_locked(transaction, player.id):
        return NOTHING
    return Done(changed=True, steps=(restrictions.unlock.call(player.id),))


@act(on="player")
async def end_sessions(transaction: Transaction, player: Player, *, access: bool = False) -> Done:
    """End every session of a player; with `access`, their access tokens are refused, too.

    The result is the number of ended sessions.
    """
    ended = await sessions.end_all(transaction, player.id) or 0
    cut = access and await restrictions.is_uncut(transaction, player.id)
    steps = (restrictions.cut_off.call(player.id, lifetime=LIFETIME),) if cut else ()
    after = "access tokens refused too" if access else None
    changed = bool(ended) or cut
    before = f"{ended} sessions"
    return Done(changed=changed, before=before, after=after, steps=steps, sessions_ended=changed, result=ended)


@act(on="player")
async def rename(transaction: Transaction, player: Player, *, username: str) -> Done:
    """Change a player's username, by the rules of registering.

    Raises DatabaseError if the name is taken.
    """
    username = check_username(username)
    if username == player.username:
        return NOTHING
    former = player.username
    await accounts.rename(transaction, player.id, username, names_of_rename(former, username))
    return Done(changed=True, before=former, after=username)


@act(on="player")
async def restore(
    transaction: Transaction, player: Player, *, exported: Document, games: Sequence[CountedGame], now: datetime
) -> Done:
    """Merge exported progress into a player's, like a push from a device of which nothing is known.

    `games` are those of the export that were sent by their ids. What is missing of them is counted first, and devices
    that send them again count them no more. Nothing is lowered. Raises BadRequest if the result is too large.
    """
    saved = await sync.load(transaction, player.id, None)
    assert saved is not None, "the player's row is locked"
    shares, spare = await missing(transaction, player.id, [game.share for game in games])
    payload = structs.replace(exported.payload, user_id=player.id)
    change = progress.restoring(player.id, exported._replace(payload=payload), shares, saved, now)
    if not change.notices:
        return NOTHING
    before = 0 if saved.payload is None else counts_of(read_stored(saved.payload).payload).games_played
    after = change.counts.games_played
    return Done(
        changed=True,
        before=f"{before} games",
        after=f"{after} games",
        steps=(*change.steps, *adding(player.id, shares, spare)),
        notices=change.notices,
        result=after,
    )


@act(on="player", event="account deleted")
async def delete(transaction: Transaction, player: Player, *, username: str | None = None) -> Done:
    """Delete a player and all their data, as the player can; raises BadRequest if `username` is given and differs."""
    if username not in (None, player.username):
        raise BadRequest("bad_field", "username is not that of this player")
    waiting = await large_accounts.waiting_of(transaction, player.id)
    if waiting is not None and waiting.erased:
        return NOTHING
    deleted = await erase(transaction, player.id)
    return Done(changed=deleted, sessions_ended=deleted)


@act(on="player")
async def link(
    transaction: Transaction, player: Player, *, token_digest: bytes, password_hash: str | None = None
) -> Done:
    """Give a player a reset link, by the digest of its token, which replaces an earlier link.

    With `password_hash`, the hash of an unknown password, only the link gives access: the old password, sessions,
    access tokens and recovery codes end. The result is the time when the link expires. Raises Forbidden for a guest.
    """
    if await guests.is_guest(transaction, player.id):
        raise Forbidden("guest", "a guest has no password to reset")
    steps: tuple[Call, ...] = ()
    if password_hash is not None:
        await accounts.reset_password(transaction, player.username, password_hash)
        steps = (restrictions.cut_off.call(player.id, lifetime=LIFETIME),)
    expires_at = await recovery.put_token(transaction, player.id, token_digest, RESET_LIFETIME)
    locked_out = password_hash is not None
    after = "locked out" if locked_out else None
    return Done(changed=True, after=after, steps=steps, sessions_ended=locked_out, result=expires_at)


async def perform_rename(acting: Acting, user_id: str, username: str) -> Done:
    """Perform `rename`; raises Conflict if another player has the name."""
    try:
        return await acting.perform(rename, user_id, username=username)
    except DatabaseError:
        owner = await acting.database.run(accounts.find, None, username.strip())
        if owner is not None and owner.id != user_id:
            raise Conflict("username_taken", "username already taken") from None
        raise
