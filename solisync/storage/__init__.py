"""SQL and nothing else: named statements, and a function for each use of them; one module for each noun.

A function that needs BEGIN takes a Transaction; any other takes Statements, so that `autocommit` can run it too. One
whose statements end a transaction returns them as steps for `Transaction.commit_with`, and so the commit is visible
where `transact` is. What only commands and the console run is not prepared on the connections of the service.
"""

from importlib import import_module
from pkgutil import iter_modules

from ..postgres.statement import Statement

STATEMENTS: tuple[Statement, ...] = tuple(
    dict.fromkeys(  # some are used by several nouns
        value
        for module in iter_modules(__path__)
        for value in vars(import_module(f"{__name__}.{module.name}")).values()
        if isinstance(value, Statement) and value.prepared
    )
)
"""The statements to prepare on each connection of the service."""
