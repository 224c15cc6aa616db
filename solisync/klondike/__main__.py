"""`python -m solisync.klondike`: check a replay by hand, and show its game; with `daily`, choose the deals of days."""

import argparse
import os
import sys
import time
from pathlib import Path

from . import ENGINE_VERSION, Reason, Status, Verdict, check, check_literally, daily_maker, make_timeline
from .drawing import draw_game
from .recording import read_recording

EXIT_CODES = {
    Status.VERIFIED: 0,
    Status.REFUTED: 1,
    Status.PENDING: 3,
    Status.UNDECIDED: 3,
    Status.UNREADABLE: 4,
}
EXPLANATIONS = {
    Reason.NO_SEED: "it has no seed from 0 to 2^64-1",
    Reason.NO_MOVES: "it has no moves",
    Reason.SHAPE: "it isn't in the form that clients write",
    Reason.ILLEGAL_MOVE: "a move is not allowed",
    Reason.NOT_WON: "the moves don't win",
    Reason.SCORE: "the score differs",
    Reason.NO_EXPLANATION: "no undos make the moves a won game with that score",
    Reason.BUDGET: "the search takes too long",
    Reason.CRASHED: "the game doesn't accept what the search found",
    Reason.SEED_ROUNDED: "its seed looks rounded, so the moves may be those of another deal",
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["daily"]:
        return daily_maker.main(arguments[1:])
    options = _parser().parse_args(arguments)
    try:
        body = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
    except OSError as error:
        print(f"klondike: {options.file}: {error.strerror}", file=sys.stderr)
        return 2
    if options.literally:
        verdict = check_literally(body)
    else:
        began = time.process_time()
        verdict = check(body, used=lambda: (time.process_time() - began) / max(options.seconds, 0.001))
    try:
        _show(body, verdict, options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has gone; Python would raise the error again at its exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return EXIT_CODES[verdict.status]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m solisync.klondike",
        description="Check an uploaded replay: whether its moves, with some undos, are a won game with its score.",
        epilog="Exit status: 0 verified, 1 refuted, 2 the file can't be read, 3 undecided, 4 not a readable replay.",
    )
    parser.add_argument("file", metavar="FILE", help="the replay, JSON as uploaded; - for standard input")
    parser.add_argument("--literally", action="store_true", help="play the moves as recorded; don't search for undos")
    parser.add_argument("--seconds", type=float, default=5, help="CPU time for the search for undos (default: 5)")
    parser.add_argument("--version", action="version", version=f"engine {ENGINE_VERSION}")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--boards", action="store_true", help="draw the board after each move, as far as they are legal")
    shown.add_argument(
        "--timeline", action="store_true", help="print the timeline of a verified replay as JSON instead"
    )
    return parser


def _show(body: bytes, verdict: Verdict, options: argparse.Namespace) -> None:
    if not options.timeline:
        if options.boards and verdict.status is not Status.UNREADABLE:
            for text in draw_game(read_recording(body), verdict.ruleset, verdict.undo_places):
                print(text, end="\n\n")
        print(_sentence(verdict))
    elif (shown := make_timeline(body, verdict)) is not None:
        print(shown.decode())
    else:
        print(f"klondike: no timeline: {_sentence(verdict)}", file=sys.stderr)


def _sentence(verdict: Verdict) -> str:
    if verdict.status is Status.VERIFIED:
        facts = f"ruleset {verdict.ruleset}, recorded moves: {verdict.moves}, undos: {verdict.undos}"
        return f"verified: won with {verdict.score} points ({facts})"
    if verdict.reason is None:
        return f"{verdict.status}: not won as recorded; only a search for undos can decide"
    return f"{verdict.status}: {EXPLANATIONS[verdict.reason]} ({verdict.reason})"


if __name__ == "__main__":
    sys.exit(main())
