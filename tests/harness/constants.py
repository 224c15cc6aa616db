"""Where the repository and its commands are, and the secrets that every service under test gets."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
SECRET = "canary-secret-0123456789abcdef0123456789"
PREVIOUS_SECRET = "canary-previous-secret-0123456789abcdef"
PASSWORD = "canary password"
DSN_PASSWORD = "canary-dsn-password"
FAST_BCRYPT = 4
