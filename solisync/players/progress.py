"""Changes of a player's stored progress, by a push, games, a join or an operator's restore: docs/sync.md."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from ..errors import BadRequest
from ..events.notices import BoardsChanged, Notice, ProgressStored
from ..postgres.statement import Call
from ..rules.counting import NO_GAMES, Basis, GameCounts, add, counts_of, with_counts
from ..rules.documents import default_document, is_news, read_stored, revision
from ..rules.game_effects import Added, with_games, with_shares
from ..rules.games import ReceivedGame, Share
from ..rules.guests import joined
from ..rules.leaderboard import bests_of
from ..rules.merge import merge
from ..rules.sync import PAYLOAD_MAX_BYTES, Document, SyncConflict, check_bounds
from ..storage.players import sync
from ..storage.players.sync import Saved

DAY = timedelta(days=1)


class Change(NamedTuple):
    """Merged progress: the encoded `payload` to answer, and what to do with it.

    `steps` store it, and improve the entry on the leaderboard. `shown` is whether the public leaderboard changes.
    `notices` are for the streams, once the steps are committed.
    """

    payload: bytes
    counts: GameCounts
    conflicts: list[SyncConflict]
    basis: Basis
    steps: tuple[Call, ...]
    shown: bool
    notices: tuple[Notice, ...]


def pushed(player: str, document: Document, saved: Saved, now: datetime) -> Change:
    """Merge a device's progress, and record what the device knows; raises BadRequest if the result is too large.

    Without a session in `saved`, nothing is known about the device, and the higher counters hold.
    """
    stored = None if saved.payload is None else read_stored(saved.payload)
    check_bounds(document, stored)  # before the merge, which would be too expensive for a larger document
    before = NO_GAMES if stored is None else counts_of(stored.payload)
    total = add(counts_of(document.payload), before, saved.known)
    latest, had_all = now.date() + DAY, total.had_all_of(saved.counts or before)
    merged, conflicts = merge(document, stored, now, latest=latest, had_all=had_all)
    if total.basis is Basis.COUNTED:
        merged = with_counts(merged, total.counts)
    change = _change(player, saved, stored, merged, now, conflicts=conflicts, basis=total.basis)
    known = saved.known.after(counts_of(document.payload), change.counts, total.basis)
    return change._replace(steps=(*change.steps, sync.remembering(player, saved, known)))


def joining(player: str, guest: bytes, saved: Saved, shared: GameCounts, now: datetime) -> Change:
    """Add a guest's stored progress, less the `shared` games, to the player's; raises BadRequest if it is too large."""
    stored = None if saved.payload is None else read_stored(saved.payload)
    merged, conflicts = joined(read_stored(guest), stored, player, shared, now)
    return _change(player, saved, stored, merged, now, conflicts=conflicts)


def with_new_games(
    player: str,
    games: list[ReceivedGame],
    latest: datetime | None,
    saved: Saved,
    now: datetime,
    win_seconds: int | None = None,
) -> tuple[Change, Added]:
    """Add finished games to the player's progress; return also what was added."""
    stored = None if saved.payload is None else read_stored(saved.payload)
    added = with_games(stored or default_document(player, now), games, latest, now, win_seconds)
    return _change(player, saved, stored, added.document, now, bounded=False), added


def restoring(player: str, exported: Document, shares: Sequence[Share], saved: Saved, now: datetime) -> Change:
    """Add what is missing of exported games to the player's progress, and merge the export like a push."""
    if saved.payload is not None and shares:
        counted = with_shares(read_stored(saved.payload), shares, now)
        saved = replace(saved, payload=counted.encode(), counts=None)
    change = pushed(player, exported, saved, now)
    if shares and not any(isinstance(notice, ProgressStored) for notice in change.notices):
        # the totals of the export brought nothing more, but the games did
        change = change._replace(notices=(ProgressStored(player, revision(change.payload), None), *change.notices))
    return change


def _change(
    player: str,
    saved: Saved,
    stored: Document | None,
    merged: Document,
    now: datetime,
    *,
    conflicts: list[SyncConflict] | None = None,
    basis: Basis = Basis.COUNTED,
    bounded: bool = True,
) -> Change:
    if bounded:
        check_bounds(merged, stored)
    payload = merged.encode()
    if bounded and len(payload) > max(PAYLOAD_MAX_BYTES, len(saved.payload or b"")):
        raise BadRequest("sync_too_large", "sync payload too large")
    former = saved.counts or (NO_GAMES if stored is None else counts_of(stored.payload))
    counts = counts_of(merged.payload).with_most_draws(former)
    bests = bests_of(merged.payload.stats)
    improved = saved.standing.improved_by(bests)
    shown = improved and bool(saved.standing.visible)
    steps = sync.saving(player, payload, counts, bests if improved else None, now, first=saved.payload is None)
    notices: tuple[Notice, ...] = (BoardsChanged(("leaderboard",)),) if shown else ()
    if is_news(merged, stored):
        notices = (ProgressStored(player, revision(payload), saved.session), *notices)
    return Change(payload, counts, conflicts or [], basis, steps, shown, notices)
