"""Standard streams for a process that was started without some of them, as by `<&-` or by a careless supervisor."""

import os
import sys


def open_missing() -> None:
    """Open /dev/null for each standard stream that is closed.

    Python leaves None in its place, and the next file or socket would get its number.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # its number is the lowest that is free: this one
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
