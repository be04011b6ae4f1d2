"""Finds a message by the id that its platform gave it. Only reads, and only what may be seen."""

from __future__ import annotations

import sqlite3

from core.store import codec
from core.store.rows import MESSAGE_COLUMNS, message_of, place
from core.store.scope_filter import scope_parameter, visible
from core.store.sqlite.database import Database
from core.types import Address, Message, Scope


class Originals:
    """Messages as people point at them: with a reply, or from a menu."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, address: Address, external_id: str, scopes: frozenset[Scope]) -> Message | None:
        """What was said there under this id and is part of the talk; None when it does not exist or is not of these
        scopes, which is the same answer."""

        def work(connection: sqlite3.Connection) -> Message | None:
            row = connection.execute(
                f"""
                SELECT {MESSAGE_COLUMNS} FROM addresses
                JOIN messages ON messages.address_id = addresses.id JOIN sessions ON sessions.id = messages.session_id
                WHERE addresses.platform = :platform AND addresses.chat_id = :chat_id
                    AND addresses.thread_id = :thread_id AND messages.external_id = :external_id
                    AND messages.kind = 'chat' AND {visible()}
                """,
                {**place(address), "external_id": codec.clean(external_id), "scopes": scope_parameter(scopes)},
            ).fetchone()
            return None if row is None else message_of(row)

        return await self._database.read(work)
