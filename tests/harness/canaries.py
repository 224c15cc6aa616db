"""The secrets of the services under test, and where they have leaked to."""

from tests.harness.constants import DSN_PASSWORD, PASSWORD, PREVIOUS_SECRET, SECRET

SECRETS = (SECRET, PREVIOUS_SECRET, PASSWORD, DSN_PASSWORD, "eyJ")  # every JWT begins with eyJ


def leaked(files, *more):
    """The names of the files in which one of the SECRETS or of `more` stands, each with those."""
    found = {}
    for file in files:
        text = file.read_text("utf-8", "replace")
        if secrets := [secret for secret in (*SECRETS, *more) if secret in text]:
            found[file.name] = secrets
    return found
