"""Where the repository and its commands are, how long a test waits, and the secrets of every service under test."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
SECRET = "canary-secret-0123456789abcdef0123456789"
PREVIOUS_SECRET = "canary-previous-secret-0123456789abcdef"
PASSWORD = "canary password"
DSN_PASSWORD = "canary-dsn-password"
NO_DATA_DIR = "/nonexistent/solisync"  # a service with another database would mark the embedded one that is installed
FAST_BCRYPT = 4

# The bound of every wait for something that must happen, in seconds. A wait ends when it has happened, so that this
# says nothing about speed: it only ends what hangs, and is long enough for two searches of 5 s of processor time on a
# machine with ten other processes at work.
PATIENCE = 180
