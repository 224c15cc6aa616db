"""SQL and nothing else: one module for each resource, and one function for each statement or group of statements.

A function that needs a transaction takes a Transaction. Every other function takes Statements, so that `Database.run`
accepts it too. A function whose statements end a transaction returns them as steps for `Transaction.commit_with`, which
keeps the commit visible at the call of `transact`. Statements of commands and the console alone are not prepared on the
service's connections.
"""

from importlib import import_module
from pkgutil import iter_modules

from ..postgres.declared import statements_of

EVERY = dict.fromkeys(  # several modules share some of them
    statement
    for module in iter_modules(__path__)
    for statement in statements_of(import_module(f"{__name__}.{module.name}"))
)
STATEMENTS = tuple(statement for statement in EVERY if statement.prepared)
"""The statements to prepare on each connection of the service."""
