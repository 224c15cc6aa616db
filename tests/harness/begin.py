"""A program that begins as a shell would begin it, and then becomes the command that it was given.

Its first argument says how: `foreground`, with the terminal at standard input for its own; `nohup`, the same with
SIGHUP ignored; `setsid`, in a session without a terminal.
"""

import fcntl
import runpy
import signal
import sys
import termios


def main():
    """Begin."""
    _, how, *sys.argv = sys.argv
    if how in ("foreground", "nohup"):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if how == "nohup":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
