"""The program of the process that makes timelines: one for each request on standard input, until that ends.

It has no more than a checker has: no settings, no database, no Twisted. It never searches, because the verdict says
where moves were undone.
"""

import os
import sys
from contextlib import suppress

import msgspec

from .confinement import allow, confine
from .messages import READY, Frames, Playback, PlayedBack, compressed_timeline, frame

PRIORITY = 5  # somebody waits for it, but all others come first
CPU_SECONDS = 2  # of one timeline; the kernel ends a process that takes longer

_READ_BYTES = 65_536


def make(playback: Playback) -> PlayedBack:
    """The timeline of a verified replay."""
    try:
        return PlayedBack(compressed_timeline(playback.body, playback.verdict))
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
