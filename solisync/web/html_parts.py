"""HTML for parts of pages: the operator's links, the deal of a day, and a player's replays."""

from collections.abc import Iterator, Sequence
from html import escape
from urllib.parse import quote

from ..klondike.deal import deal
from ..klondike.drawing import card_name
from ..klondike.rules import COLUMNS, FACE_DOWN, card_text
from ..rules.replay_lists import Recent
from ..rules.texts import in_words, machine_time, recorded_on, score, suit_of, time_taken

_TEXT = "\ufe0e"  # a variation selector: the character before it is text, not an emoji
_MARKS = {"verified": "✓ Verified", "pending": "Checking …", "refuted": "✗ Score rejected"}
_HEADS = ("Score", "Time", "Check", "Draw", "Mode", "Played")


Links = Sequence[tuple[str, str]]  # names, and addresses


def footer_links(links: Links) -> str:
    """Return the links of the footer."""
    shown = " ".join(f'<a href="{escape(address)}">{escape(name)}</a>' for name, address in links)
    return f'<nav aria-label="More">{shown}</nav>' if links else ""


def player_name(name: str, *, linked: bool) -> str:
    """Return the name of a player, if `linked` with a link to the player's page."""
    text = escape(name)
    return f'<a href="/players/{quote(name, safe="")}">{text}</a>' if linked else text


def deal_drawing(seed: int) -> str:
    """Return the seven columns of a deal; for screen readers, a picture whose name lists the face-up cards."""
    board = deal(seed)
    columns = [board[pile] for pile in COLUMNS]
    name = f"The cards that lie face up: {', '.join(card_text(column[-1]) for column in columns)}."
    drawn = "".join(f"<span>{''.join(map(_card, column))}</span>" for column in columns)
    return f'<div class="deal" role="img" aria-label="{name}">{drawn}</div>'


def _card(card: int) -> str:
    if card >= FACE_DOWN:
        return "<i></i>"
    name = card_name(card)
    return f'<b class="{suit_of(card)}" data-card="{card}">{name[:-1]}<br>{name[-1]}{_TEXT}</b>'


def replay_table(replays: Sequence[Recent]) -> str:
    """Return the replays of one player as a table, equal to the tables that the pages' scripts make."""
    heads = "".join(f'<th role="columnheader"{_number(head)}>{head}</th>' for head in _HEADS)
    rows = "\n".join(f'<tr role="row">{"".join(_cells(replay))}</tr>' for replay in replays)
    return (
        f'<table role="table" class="rows"><caption class="unseen">Newest first</caption>'
        f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>\n<tbody role="rowgroup">\n{rows}\n</tbody></table>'
    )


def _cells(replay: Recent) -> Iterator[str]:
    mark = f'<span class="mark {replay.verdict}">{_MARKS.get(replay.verdict, "Not verified")}</span>'
    day, time = recorded_on(replay.recorded_at), machine_time(replay.recorded_at)
    received = replay.received_at.isoformat()
    played = f'<time datetime="{escape(time)}" data-received="{received}">{escape(day)}</time>'
    yield f'<th role="rowheader"><a href="/replays/{replay.id}">{score(replay.final_score)} points</a></th>'
    yield f'<td role="cell" class="number">{time_taken(replay.time_seconds)}</td>'
    for cell in (mark, escape(in_words(replay.draw_mode)), escape(in_words(replay.mode)), played):
        yield f'<td role="cell">{cell}</td>'


def _number(head: str) -> str:
    return ' class="number"' if head == "Time" else ""
