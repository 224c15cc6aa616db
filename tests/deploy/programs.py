"""Programs that the tests of deploy/ need, and programs that they use only if installed."""

import shutil

import pytest


def optional(program):
    """Marks for a test that is skipped without this program, and left out of everyday runs."""
    reason = f"{program} is not installed"
    return [pytest.mark.needs(), pytest.mark.skipif(shutil.which(program) is None, reason=reason)]
