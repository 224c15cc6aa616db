"""The places of the repository and its commands, the time limit of waits, and the secrets of all services."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
SECRET = "canary-secret-0123456789abcdef0123456789"
PREVIOUS_SECRET = "canary-previous-secret-0123456789abcdef"
PASSWORD = "canary password"
DSN_PASSWORD = "canary-dsn-password"
NO_DATA_DIR = "/dev/null/solisync"  # which can't be made: keeps services from marking an installed embedded database
FAST_BCRYPT = 4

# The limit of every wait for something that must happen, in seconds. A wait ends when it has happened, so the limit
# says nothing about speed: it only stops tests that hang. It is long enough for two searches of 5 s of processor time
# on a machine with ten other busy processes.
PATIENCE = 180
