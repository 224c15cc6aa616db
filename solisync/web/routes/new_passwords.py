"""The routes that replace passwords: by the old one, by a recovery code, by a reset link."""

from ...access.rate_limit import PASSWORD, Limit
from ...rules.accounts import TokenPair
from ...rules.recovery import CodesLeft, CodesRequest, Recovery, RecoveryCodes, Reset
from ...rules.sessions import PasswordChange
from ..resources import Resources
from ..resources.new_passwords import PASSWORD_ERRORS, RECOVERY_ERRORS
from ..route import Json, Route


def new_passwords(resources: Resources, auth_limit: Limit) -> tuple[Route, ...]:
    """Those without an access token share `auth_limit` with the ones that begin a session."""
    return (
        Route(
            method="PUT",
            path="/api/me/password",
            name="change_password",
            tag="accounts",
            handler=resources.new_passwords.change,
            summary="Change one's password, and end all sessions but a new one",
            protected=True,
            limit=PASSWORD,
            body=Json(PasswordChange),
            answer=TokenPair,
            errors=(*PASSWORD_ERRORS, "user_not_found"),
        ),
        Route(
            method="POST",
            path="/api/me/recovery-codes",
            name="make_recovery_codes",
            tag="accounts",
            handler=resources.new_passwords.make_codes,
            summary="Make recovery codes, which replace all former ones",
            protected=True,
            limit=PASSWORD,
            body=Json(CodesRequest),
            answer=RecoveryCodes,
            errors=("invalid_credentials", "user_not_found"),
        ),
        Route(
            method="GET",
            path="/api/me/recovery-codes",
            name="recovery_codes_left",
            tag="accounts",
            handler=resources.new_passwords.codes_left,
            summary="Show how many recovery codes are left",
            protected=True,
            answer=CodesLeft,
            errors=("user_not_found",),
        ),
        Route(
            method="POST",
            path="/api/auth/recover",
            name="recover",
            tag="accounts",
            handler=resources.new_passwords.recover,
            summary="Spend a recovery code for a new password and a new session",
            limit=auth_limit,
            body=Json(Recovery),
            private=True,
            answer=TokenPair,
            errors=(*RECOVERY_ERRORS, "suspended"),
        ),
        Route(
            method="POST",
            path="/api/auth/reset",
            name="reset",
            tag="accounts",
            handler=resources.new_passwords.reset,
            summary="Spend the token of a reset link for a new password and a new session",
            limit=auth_limit,
            body=Json(Reset),
            private=True,
            answer=TokenPair,
            errors=(*PASSWORD_ERRORS, "suspended"),
        ),
    )
