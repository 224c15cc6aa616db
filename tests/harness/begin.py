"""A program that starts as from a shell, and then becomes the given command.

Its first argument selects how: `foreground` with standard input as its controlling terminal, `nohup` the same with
SIGHUP ignored, `setsid` in a session without a terminal.
"""

import fcntl
import runpy
import signal
import sys
import termios


def main():
    """Become the command."""
    _, how, *sys.argv = sys.argv
    if how in ("foreground", "nohup"):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if how == "nohup":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
