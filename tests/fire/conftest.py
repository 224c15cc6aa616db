"""The fire suite: each promise of solisync under attack, with the figure it was kept by.

`make test` runs each in its short form. `make fire` (pytest --fire) runs the long forms and what needs other programs,
marked `needs(program, …)` or `long`, and prints every figure again at the end.
"""

import pytest


@pytest.fixture
def full(request):
    """Whether this is the long run, of `make fire`."""
    return request.config.getoption("--fire")
