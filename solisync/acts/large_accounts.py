"""What acts on large accounts leave for later, in batches: docs/moderation.md "Large accounts"."""

from collections.abc import Callable

from ..access.rate_limit import buckets_of
from ..events.notices import BoardsChanged, Publish
from ..postgres.database import Database
from ..postgres.transaction import Transaction
from ..storage.operators import large_accounts
from ..storage.operators.large_accounts import Waiting
from ..storage.players import accounts

BATCH = 2_000  # replays that a transaction hides, shows or deletes


async def erase(transaction: Transaction, user_id: str) -> bool:
    """Delete an account, or begin to delete a large one; False if it doesn't exist any more."""
    if await large_accounts.begin_erasure(transaction, user_id):
        return True
    return await accounts.delete(transaction, user_id, buckets_of(user_id))


async def settle(
    database: Database, publish: Publish, account: Waiting, goes_on: Callable[[], bool] = lambda: True
) -> None:
    """Do what is left of a large account, while `goes_on()` after each batch. An interruption keeps what is done."""
    while await database.run(large_accounts.settle, account.id, BATCH):
        if not goes_on():
            return
    if account.erased:
        await database.transact(accounts.delete, account.id, buckets_of(account.id))
    publish(BoardsChanged())
