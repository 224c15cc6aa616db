"""The routes that replace passwords: by the old one, by a recovery code, by a reset link."""

from ...access.rate_limit import PASSWORD, Limit
from ...rules.accounts import TokenPair
from ...rules.recovery import CodesLeft, CodesRequest, Recovery, RecoveryCodes, Reset
from ...rules.sessions import PasswordChange
from ..resources import Resources
from ..resources.new_passwords import PASSWORD_ERRORS, RECOVERY_ERRORS
from ..route import Json, Route, get, post, put


def new_passwords(resources: Resources, auth_limit: Limit) -> tuple[Route, ...]:
    """Those without an access token share `auth_limit` with the ones that begin a session."""
    return (
        put(
            "/api/me/password",
            resources.new_passwords.change,
            name="change_password",
            tag="accounts",
            summary="Change one's password, and end all sessions but a new one",
            protected=True,
            limit=PASSWORD,
            body=Json(PasswordChange),
            answer=TokenPair,
            errors=(*PASSWORD_ERRORS, "user_not_found"),
        ),
        post(
            "/api/me/recovery-codes",
            resources.new_passwords.make_codes,
            name="make_recovery_codes",
            tag="accounts",
            summary="Make recovery codes, which replace all former ones",
            protected=True,
            limit=PASSWORD,
            body=Json(CodesRequest),
            answer=RecoveryCodes,
            errors=("invalid_credentials", "user_not_found"),
        ),
        get(
            "/api/me/recovery-codes",
            resources.new_passwords.codes_left,
            name="recovery_codes_left",
            tag="accounts",
            summary="Show how many recovery codes are left",
            protected=True,
            answer=CodesLeft,
            errors=("user_not_found",),
        ),
        post(
            "/api/auth/recover",
            resources.new_passwords.recover,
            name="recover",
            tag="accounts",
            summary="Spend a recovery code for a new password and a new session",
            limit=auth_limit,
            body=Json(Recovery),
            private=True,
            answer=TokenPair,
            errors=(*RECOVERY_ERRORS, "suspended"),
        ),
        post(
            "/api/auth/reset",
            resources.new_passwords.reset,
            name="reset",
            tag="accounts",
            summary="Spend the token of a reset link for a new password and a new session",
            limit=auth_limit,
            body=Json(Reset),
            private=True,
            answer=TokenPair,
            errors=(*PASSWORD_ERRORS, "suspended"),
        ),
    )
