"""The private names of Twisted that the wire uses."""

import ast
from pathlib import Path

from solisync.web import wire


def test_wire_uses_one_private_name_of_twisted():
    """A new version of Twisted may change any of them: `EndOfTurn` uses one, and does without where it is missing."""
    used, own = set(), set()
    for module in Path(wire.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.Attribute):
                (own if isinstance(node.ctx, ast.Store) else used).add(node.attr)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                own.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                own.add(node.id)
    private = {name for name in used - own if name.startswith("_") and not name.startswith("__")}
    assert private == {"_disconnectSelectable"}
