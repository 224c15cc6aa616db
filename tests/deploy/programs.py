"""Which programs the tests of deploy/ need, and which they only use where they are installed."""

import shutil

import pytest


def optional(program):
    """Marks for a test that is skipped without this program, and that doesn't belong to every day."""
    reason = f"{program} is not installed"
    return [pytest.mark.needs(), pytest.mark.skipif(shutil.which(program) is None, reason=reason)]
