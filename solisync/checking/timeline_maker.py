"""The program of the process that makes timelines: one for each request on its standard input, until that ends.

Like a checker it has no settings, no database and no Twisted. It never searches, because the verdict has the undos.
"""

import os
import sys
import zlib
from contextlib import suppress

import msgspec

from ..klondike import evidence
from .confinement import allow, confine
from .messages import READY, Frames, Playback, PlayedBack, compressed_timeline, frame

PRIORITY = 5  # a client waits for the timeline, but all other clients come first
CPU_SECONDS = 2  # for a timeline; the kernel ends a process that takes longer

_READ_BYTES = 65_536


def make(playback: Playback) -> PlayedBack:
    """Make the timeline of a verified replay; without a verdict, of the moves that are legal as recorded."""
    try:
        if playback.verdict is not None:
            return PlayedBack(compressed_timeline(playback.body, playback.verdict))
        if (found := evidence(playback.body)) is None:
            return PlayedBack(None)
        return PlayedBack(None if found.timeline is None else zlib.compress(found.timeline), proved=found.proved)
    except (ValueError, MemoryError) as error:
        return PlayedBack(None, str(error) or "it takes too much memory")


def run() -> None:
    """Answer one request after the other."""
    frames, decode = Frames(), msgspec.msgpack.Decoder(Playback).decode
    _send(READY)
    while data := os.read(0, _READ_BYTES):
        for payload in frames.feed(data):
            allow(CPU_SECONDS)
            _send(msgspec.msgpack.encode(make(decode(payload))))


def _send(payload: bytes) -> None:
    sys.stdout.buffer.write(frame(payload))
    sys.stdout.buffer.flush()


def main(priority: int = PRIORITY) -> None:
    """Work at this priority, a nice value, until standard input ends."""
    confine(priority)
    with suppress(BrokenPipeError):
        run()


if __name__ == "__main__":
    main()
