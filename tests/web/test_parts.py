"""Objects are built with the parts of a process by name, so names must agree in type too: mypy doesn't see `make`."""

from importlib import import_module
from inspect import isclass
from pkgutil import iter_modules
from typing import get_type_hints

import pytest

from solisync.checking.queue_worker import Checking
from solisync.housekeeping import Housekeeping
from solisync.process.metrics import Sampler
from solisync.web import console, resources
from solisync.web.parts import Parts
from solisync.web.players_app import Restrictions
from solisync.web.wire.site import Site

PARTS = get_type_hints(Parts)


def resource_classes():
    for package in (resources, console):
        for module in iter_modules(package.__path__, f"{package.__name__}."):
            for kind in vars(import_module(module.name)).values():
                if (
                    isclass(kind)
                    and kind.__module__ == module.name
                    and any(hasattr(each, "declared") for each in vars(kind).values())
                ):
                    yield kind


@pytest.mark.parametrize(
    "kind", [*resource_classes(), Checking, Housekeeping, Restrictions, Sampler, Site], ids=lambda kind: kind.__name__
)
def test_parameter_with_the_name_of_a_part_has_its_type(kind):
    """`Parts.make` passes the part of that name."""
    taken = get_type_hints(kind.__init__)
    assert {name: hint for name, hint in taken.items() if name in PARTS} == {
        name: PARTS[name] for name in taken if name in PARTS
    }


def test_given_values_replace_parts():
    """The caller's value replaces the part. A parameter with neither keeps its default."""
    parts = Parts(**dict.fromkeys(PARTS, "part"))
    assert parts.make(lambda *, bus, now, batch=5: (bus, now, batch), now="given") == ("part", "given", 5)
