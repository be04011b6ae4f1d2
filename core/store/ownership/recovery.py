"""Take over the unfinished work of a dead gateway."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from core.store import rows
from core.store.engine import Connection, Database, in_list
from core.store.mailbox import (
    DELETE_DONE,
    DELETE_LETTERS,
    EXPIRE_ITEMS,
    EXPIRED_ERROR,
    RELEASE_ITEMS,
    close_entries,
)
from core.store.message_ids import RETENTION
from core.store.ownership.chats import CHAT_OF_ITEM, IS_UNOWNED
from core.store.visibility import encode_list
from core.types import Address

_SELECT_INCOGNITO = """
SELECT platform, chat_id, thread_id
FROM incognito_addresses JOIN addresses ON addresses.id = incognito_addresses.address_id
ORDER BY incognito_addresses.at, addresses.id
"""
_SELECT_ENTRIES = f"SELECT id FROM inbox WHERE address_id = ({rows.ADDRESS_ID})"


_SELECT_POSTING = f"""
SELECT 1 FROM outbox WHERE done_at IS NULL AND dead_at IS NULL AND posted LIKE '%"?%'
AND ({in_list(CHAT_OF_ITEM, "chats")} OR {IS_UNOWNED}) LIMIT 1
"""


async def is_posting(database: Database, chats: Collection[str]) -> bool:
    """Return whether a dead gateway was posting a message in one of its chats when it died.

    The platform may still be working on that request.
    """
    values = {"chats": encode_list(list(chats))}
    return await database.fetch_one(_SELECT_POSTING, values) is not None


async def recover_chats(database: Database, chats: Collection[str], now: datetime) -> None:
    """Make the outbox items due that a dead gateway held for these chats.

    If an answer was never written, its item expires, unless its turn will run again.
    """
    values = {"chats": encode_list(list(chats))}
    await _recover_items(database, in_list(CHAT_OF_ITEM, "chats"), values, now)


async def recover_unowned(database: Database, now: datetime) -> None:
    """Make the held outbox items of chats without a gateway due.

    The front gateway delivers them.
    """
    await _recover_items(database, IS_UNOWNED, {}, now)


async def _recover_items(
    database: Database, condition: str, more: Mapping[str, object], now: datetime
) -> None:
    values = {"now": now, "error": EXPIRED_ERROR, **more}

    def write(connection: Connection) -> None:
        for statement in (EXPIRE_ITEMS, RELEASE_ITEMS):
            connection.execute(f"{statement} AND {condition}", values)

    await database.write(write)


async def recover_incognito(
    database: Database, is_lost: Callable[[Address], bool], now: datetime
) -> Sequence[Address]:
    """Return the incognito addresses whose gateway is dead, and close their inbox entries.

    The texts of these conversations are lost.
    """

    def write(connection: Connection) -> Sequence[Address]:
        marked = [rows.read_address(row) for row in connection.execute(_SELECT_INCOGNITO)]
        lost = [address for address in marked if is_lost(address)]
        for address in lost:
            entries = connection.execute(_SELECT_ENTRIES, rows.address_values(address)).fetchall()
            close_entries(connection, [row["id"] for row in entries], now)
        return lost

    return await database.write(write)


async def delete_old_rows(database: Database, now: datetime) -> None:
    """Delete outbox items that were delivered long ago, and old dead letters."""

    def write(connection: Connection) -> None:
        for statement in (DELETE_DONE, DELETE_LETTERS):
            connection.execute(statement, {"before": now - RETENTION})

    await database.write(write)
