"""The private names of Twisted that the wire uses."""

import ast
import inspect
import re
import textwrap

from twisted.internet import posixbase
from twisted.protocols import basic, policies
from twisted.python import components
from twisted.web import http, server

from solisync.web import wire
from solisync.web.wire import body, channel, deadlines, lean_request, parse, request, sending, streaming, turns

MODULES = (body, channel, deadlines, lean_request, parse, request, sending, streaming, turns)
TWISTED = (
    http.HTTPChannel,
    basic.LineReceiver,
    policies.TimeoutMixin,
    http.Request,
    server.Request,
    components.Componentized,
    posixbase._DisconnectSelectableMixin,
)


def private_names(source):
    """Return the private attributes that a piece of code uses, and the private names that its classes define."""
    names = set()
    for node in ast.walk(ast.parse(textwrap.dedent(source))):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.ClassDef):
            names |= {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            targets = [
                part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)] for part in node.body
            ]
            names |= {target.id for part in targets for target in part if isinstance(target, ast.Name)}
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


def test_every_private_name_of_twisted_is_listed():
    """The list for upgrades has the names that are Twisted's, and no other; unlisted names don't collide."""
    twisted = {name for kind in TWISTED for name in private_names(inspect.getsource(kind))} | set(vars(http))
    used = {name for module in MODULES for name in private_names(inspect.getsource(module))}
    assert set(re.findall(r"\b_\w+", wire.__doc__)) == used & twisted
