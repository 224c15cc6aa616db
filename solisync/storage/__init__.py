"""SQL and nothing else: a function for each statement, or for several that belong together; a module for each resource.

A function that needs BEGIN takes a Transaction; any other takes Statements, so that `Database.run` accepts it too. A
function whose statements end a transaction returns them as steps for `Transaction.commit_with`, and so the commit is
visible where `transact` is. What only commands and the console run is not prepared on the connections of the service.
"""

from importlib import import_module
from pkgutil import iter_modules

from ..postgres.declared import statements_of

EVERY = dict.fromkeys(  # some are used by several modules
    statement
    for module in iter_modules(__path__)
    for statement in statements_of(import_module(f"{__name__}.{module.name}"))
)
STATEMENTS = tuple(statement for statement in EVERY if statement.prepared)
"""The statements to prepare on each connection of the service."""
