"""The secrets of the services under test, and a search for leaks."""

from tests.harness.constants import DSN_PASSWORD, PASSWORD, PREVIOUS_SECRET, SECRET

SECRETS = (SECRET, PREVIOUS_SECRET, PASSWORD, DSN_PASSWORD, "eyJ")  # every JWT begins with eyJ


def leaked(files, *more):
    """The names of the files that contain one of the SECRETS or of `more`, each with those secrets."""
    found = {}
    for file in files:
        text = file.read_text("utf-8", "replace")
        if secrets := [secret for secret in (*SECRETS, *more) if secret in text]:
            found[file.name] = secrets
    return found
