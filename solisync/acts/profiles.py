"""Acts on the public parts of a player: the leaderboard entry and the avatar."""

from ..errors import NotFound
from ..postgres.transaction import Transaction
from ..rules.leaderboard import OwnEntry, check_display_name
from ..storage.players import avatars, leaderboard, restrictions
from ..storage.players.accounts import Player
from .act import NOTHING, Done, act


@act(on="player")
async def hide(transaction: Transaction, player: Player, *, lock: bool = False) -> Done:
    """Hide a player's entry; with `lock`, also lock the profile, so that the player can't show the entry again.

    The result is the display name of the entry, and whether the profile is locked now.
    """
    entry = await _entry(transaction, player)
    locked = await restrictions.is_locked(transaction, player.id)
    locking = lock and not locked
    lasting = (restrictions.lock.call(player.id),) if locking else ()
    done = await _set_visible(transaction, player, entry, False)
    result = entry.display_name, locked or locking
    if not done.changed and not locking:
        return Done(changed=False, result=result)
    after = "hidden, and locked" if locking else "hidden"
    return Done(changed=True, before=done.before, after=after, steps=done.steps + lasting, result=result)


@act(on="player")
async def show(transaction: Transaction, player: Player) -> Done:
    """Show a player's entry again; the entry of a suspended player appears when the suspension ends."""
    return await _set_visible(transaction, player, await _entry(transaction, player), True)


@act(on="player")
async def name(transaction: Transaction, player: Player, *, display_name: str) -> Done:
    """Change the display name of a player's entry."""
    entry = await _entry(transaction, player)
    chosen = check_display_name(display_name)
    if chosen == entry.display_name:
        return Done(changed=False, result=chosen)
    return Done(
        changed=True,
        before=entry.display_name,
        after=chosen,
        steps=(leaderboard.name.call(player.id, chosen),),
        result=chosen,
    )


@act(on="player")
async def remove_avatar(transaction: Transaction, player: Player) -> Done:
    """Remove a player's avatar."""
    if await avatars.remove(transaction, player.id):
        return Done(changed=True)
    return NOTHING


async def _entry(transaction: Transaction, player: Player) -> OwnEntry:
    entry = await leaderboard.own(transaction, player.id)
    if entry is None or entry.display_name is None:
        raise NotFound("entry_not_found", f"'{player.username}' has no entry on the leaderboard")
    return entry


async def _set_visible(transaction: Transaction, player: Player, entry: OwnEntry, visible: bool) -> Done:
    suspension = await restrictions.suspension(transaction, player.id)
    former = entry.visible if suspension is None else suspension.was_visible
    if former == visible:
        return Done(changed=False, result=entry.display_name)
    steps = ((leaderboard.show if suspension is None else restrictions.show_later).call(player.id, visible),)
    before, after = ("hidden", "visible") if visible else ("visible", "hidden")
    return Done(changed=True, before=before, after=after, steps=steps, result=entry.display_name)
