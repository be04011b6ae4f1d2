"""Fills a state.db with sessions and messages for tests of recall, by SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from core.store.database import Database
from core.store.rows import keep_address, keep_scope
from core.types import Address, Scope

START = 1_700_000_000.0
ANA = Scope.account("telegram", "1")
BEN = Scope.account("telegram", "2")
ROOM = Scope.room("discord", "9")


class Annals:
    """Writes through the real tables and triggers. Each session gets an address of its own; every message is a minute
    after the one before."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._at = START
        self._chats = 0

    async def session(
        self,
        lines: Sequence[str | tuple[str, str]] = (),
        *,
        scope: Scope = ANA,
        platform: str = "telegram",
        title: str | None = None,
        parent_id: int | None = None,
        external_id: str | None = None,
        sender: str = "Ana",
    ) -> list[int]:
        """Makes a session; its lines are texts, said by user and assistant in turn, or (role, text). Returns the id of
        the session, then those of the messages."""
        self._chats += 1
        chat_id = str(self._chats)

        def work(connection: sqlite3.Connection) -> int:
            address_id = keep_address(connection, Address(platform=platform, chat_id=chat_id))
            scope_id = keep_scope(connection, scope)
            row = connection.execute(
                """
                INSERT INTO sessions (address_id, scope_id, external_id, parent_id, root_id, title, started_at, last_at)
                VALUES (:address, :scope, :external, :parent,
                    (SELECT COALESCE(root_id, id) FROM sessions WHERE id = :parent), :title, :at, :at)
                RETURNING id
                """,
                {
                    "address": address_id,
                    "scope": scope_id,
                    "external": external_id,
                    "parent": parent_id,
                    "title": title,
                    "at": self._at,
                },
            ).fetchall()[0]
            return int(row["id"])

        session_id = await self.database.write(work)
        turns = [
            line if isinstance(line, tuple) else (("user", "assistant")[n % 2], line) for n, line in enumerate(lines)
        ]
        return [session_id, *[await self.say(session_id, text, role=role, sender=sender) for role, text in turns]]

    async def say(
        self,
        session_id: int,
        text: str,
        *,
        role: str = "user",
        kind: str = "chat",
        tools: str | None = None,
        sender: str = "Ana",
        external_id: str | None = None,
    ) -> int:
        """Appends a message; returns its id."""
        self._at += 60

        def work(connection: sqlite3.Connection) -> int:
            row = connection.execute(
                """
                INSERT INTO messages (session_id, address_id, role, kind, text, tools, external_id, sender_id,
                    sender_name, created_at)
                SELECT :session, address_id, :role, :kind, :text, :tools, :external, :sender, :sender, :at
                FROM sessions WHERE id = :session
                RETURNING id
                """,
                {
                    "session": session_id,
                    "role": role,
                    "kind": kind,
                    "text": text,
                    "tools": tools,
                    "external": external_id,
                    "sender": sender if role == "user" else None,
                    "at": self._at,
                },
            ).fetchall()[0]
            connection.execute(
                "UPDATE sessions SET last_at = :at, messages = messages + 1 WHERE id = :session",
                {"at": self._at, "session": session_id},
            )
            return int(row["id"])

        return await self.database.write(work)

    async def execute(self, statement: str, **parameters: object) -> list[tuple[object, ...]]:
        """One statement on the writer, its rows as tuples."""

        def work(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
            return [tuple(row) for row in connection.execute(statement, parameters)]

        return await self.database.write(work)
