"""Where the repository is, and the secrets that every service under test gets."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECRET = "canary-secret-0123456789abcdef0123456789"
PREVIOUS_SECRET = "canary-previous-secret-0123456789abcdef"
PASSWORD = "canary password"
DSN_PASSWORD = "canary-dsn-password"
FAST_BCRYPT = 4
