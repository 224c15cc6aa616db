"""Acts on replays: unlist, list again, check, delete."""

from ..errors import NotFound, existing
from ..postgres.transaction import Transaction
from ..storage.players.accounts import Player
from ..storage.replays import own_replays, rechecks, replays
from .act import NOTHING, Done, act


@act(on="replay")
async def unlist(transaction: Transaction, player: Player, *, replay_id: str) -> Done:
    """Take a replay off the public lists and boards, and hold it, so that its player can't list it."""
    return await _hold(transaction, replay_id, True)


@act(on="replay")
async def list_again(transaction: Transaction, player: Player, *, replay_id: str) -> Done:
    """Release a held replay, which lists it unless its player has hidden it."""
    return await _hold(transaction, replay_id, False)


@act(on="replay")
async def check(transaction: Transaction, player: Player, *, replay_id: str, again: bool = False) -> Done:
    """Queue a replay for checking, before all others, if it has no verdict; with `again`, even if it has one."""
    added = existing((await rechecks.enqueue(transaction, [replay_id], again=again)).get(replay_id), "replay_not_found")
    return Done(changed=added, queued=added)


@act(on="replay", name="delete_replay")
async def delete(transaction: Transaction, player: Player, *, replay_id: str) -> Done:
    """Delete a replay."""
    deleted = await own_replays.delete(transaction, player.id, replay_id)
    if deleted is None or not deleted.existed:
        raise NotFound("replay_not_found")
    return Done(changed=True)


async def _hold(transaction: Transaction, replay_id: str, held: bool) -> Done:
    now = existing(await replays.hold(transaction, replay_id, held), "replay_not_found")
    hidden = not held and not now.listed
    return Done(changed=True, after="hidden by its player" if hidden else None) if now.changed else NOTHING
