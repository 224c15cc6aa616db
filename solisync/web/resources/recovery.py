"""Lost passwords over HTTP: recovery codes and reset links (docs/protocol.md "Lost passwords")."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ...access.passwords import Passwords
from ...access.tokens import Tokens
from ...errors import NotFound, Unauthorized
from ...postgres.database import Database
from ...postgres.transaction import Statements, Transaction
from ...process.audit import audit
from ...process.metrics import Metrics
from ...rules.accounts import TokenPair, check_new_password, username_to_look_up
from ...rules.recovery import CodesLeft, CodesRequest, Recovery, RecoveryCodes, Reset, digest, new_codes, read_code
from ...rules.sessions import RefreshRecord
from ...storage import recovery, sessions
from ...storage.accounts import Player
from .accounts import Accounts

RECOVERY_ERRORS: tuple[Code, ...] = (
    "username_characters",
    "password_length",
    "password_too_long",
    "invalid_credentials",
)
RESET_ERRORS: tuple[Code, ...] = ("password_length", "password_too_long", "invalid_credentials")
