"""Gives access to an account that the owner names, without a pairing code."""

from __future__ import annotations

from datetime import datetime

from core.store import rows
from core.store.engine import Connection, Database
from core.store.ownership.people import APPROVE_ACCOUNT, ensure_account
from core.types import Account


async def admit(database: Database, account: Account, now: datetime, by: str) -> None:
    """Give access to an account, also if it was removed or blocked before.

    `by` says how, such as ``page``. The key of its text is in the table `[PEOPLE_WHY]`.
    """

    def approve(connection: Connection) -> None:
        ensure_account(connection, account, None)
        values = {**rows.field_values(account), "now": now, "by": by}
        connection.execute(APPROVE_ACCOUNT, values)

    await database.write(approve)
