"""Merging into a player's stored progress, by a push, a join or an operator's restore: docs/sync.md."""

from datetime import datetime, timedelta
from typing import NamedTuple

from ..errors import BadRequest
from ..events.notices import BoardsChanged, Notice, ProgressStored
from ..postgres.statement import Call
from ..rules.counting import NO_GAMES, Basis, GameCounts, add, counts_of, with_counts
from ..rules.documents import is_news, read_stored, revision
from ..rules.guests import joined
from ..rules.leaderboard import bests_of
from ..rules.merge import merge
from ..rules.sync import PAYLOAD_MAX_BYTES, Document, SyncConflict, check_bounds
from ..storage.players import sync
from ..storage.players.sync import Saved

DAY = timedelta(days=1)


class Change(NamedTuple):
    """Merged progress: the encoded `payload` to answer, and what to do with it.

    `steps` store it, and improve the entry on the leaderboard. `remembering` records what the session's device knows,
    once it is answered. `shown` is whether the public leaderboard changes. `notices` are for the streams, once the
    steps are committed.
    """

    payload: bytes
    counts: GameCounts
    conflicts: list[SyncConflict]
    basis: Basis
    steps: tuple[Call, ...]
    remembering: Call
    shown: bool
    notices: tuple[Notice, ...]


def pushed(player: str, document: Document, saved: Saved, now: datetime) -> Change:
    """Merge a device's progress; raises BadRequest if the result is too large.

    Without a session in `saved`, nothing is known about the device, and the higher counters hold.
    """
    stored = None if saved.payload is None else read_stored(saved.payload)
    check_bounds(document, stored)  # before the merge, which would be too expensive for a larger document
    before = NO_GAMES if stored is None else counts_of(stored.payload)
    total = add(counts_of(document.payload), before, saved.known)
    latest, knew_all = now.date() + DAY, total.knew(saved.counts or before)
    merged, conflicts = merge(document, stored, now, latest=latest, knew_all=knew_all)
    if total.basis is Basis.COUNTED:
        merged = with_counts(merged, total.counts)
    return _change(player, saved, stored, document, merged, conflicts, total.basis, now)


def joining(player: str, guest: bytes, saved: Saved, now: datetime) -> Change:
    """Add a guest's stored progress to the player's; raises BadRequest if the result is too large."""
    stored, document = None if saved.payload is None else read_stored(saved.payload), read_stored(guest)
    merged, conflicts = joined(document, stored, player, now)
    return _change(player, saved, stored, document, merged, conflicts, Basis.COUNTED, now)


def _change(
    player: str,
    saved: Saved,
    stored: Document | None,
    document: Document,
    merged: Document,
    conflicts: list[SyncConflict],
    basis: Basis,
    now: datetime,
) -> Change:
    check_bounds(merged, stored)
    payload = merged.encode()
    if len(payload) > PAYLOAD_MAX_BYTES:
        raise BadRequest("sync_too_large", "sync payload too large")
    told = saved.counts or (NO_GAMES if stored is None else counts_of(stored.payload))
    counts = counts_of(merged.payload).with_most_draws(told)
    bests = bests_of(merged.payload.stats)
    improved = saved.standing.improved_by(bests)
    shown = improved and bool(saved.standing.visible)
    steps = sync.saving(player, payload, counts, bests if improved else None, now, first=saved.payload is None)
    known = saved.known.after(counts_of(document.payload), counts, basis)
    notices: tuple[Notice, ...] = (BoardsChanged(("leaderboard",)),) if shown else ()
    if is_news(merged, stored):
        notices = (ProgressStored(player, revision(payload), saved.session), *notices)
    return Change(payload, counts, conflicts, basis, steps, sync.remembering(player, saved, known), shown, notices)
