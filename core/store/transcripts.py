"""Sessions as people look at them: lists and texts. Only reads, and only what the scopes allow."""

from __future__ import annotations

import sqlite3

from core.store import codec, rows
from core.store.scope_filter import scope_parameter, visible
from core.store.sqlite.database import Database
from core.store.sqlite.text_index import plainly
from core.types import Message, Scope, Session

LIMIT = 1_000
"""Most sessions of one list, whatever was asked for."""

SAID = """(messages.kind = 'chat' OR messages.kind = 'quote' AND messages.role = 'assistant') AND messages.text <> ''
AND (messages.role <> 'tool' OR messages.blocks IS NULL)"""
"""What a person reads of a session: also an answer that repeats history (kind quote), nothing of tools. A tool's line
that was imported has no blocks: it is text like the rest."""


class Transcripts:
    """Fills the role `core.ports.Transcripts` over state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def recent(self, scopes: frozenset[Scope], limit: int, text: str | None = None) -> list[Session]:
        """The sessions that something was said in, latest first, at most 1,000; with `text`, those that have it in
        their title or in their first message, whatever its case, width or accents' encoding. No character is special.
        """
        values = {
            "scopes": scope_parameter(scopes),
            "needle": plainly(codec.maybe_clean(text)).strip() or None,
            "limit": max(0, min(limit, LIMIT)),
        }

        def work(connection: sqlite3.Connection) -> list[Session]:
            found = connection.execute(
                f"""
                {rows.SESSIONS}
                WHERE {visible()} AND sessions.messages > 0 AND (
                    :needle IS NULL OR instr(plainly(sessions.title), :needle) OR instr(plainly((
                        SELECT text FROM messages WHERE session_id = sessions.id
                        AND kind = 'chat' AND role IN ('user', 'assistant') AND text <> '' ORDER BY id LIMIT 1
                    )), :needle)
                )
                ORDER BY sessions.last_at DESC, sessions.id DESC LIMIT :limit
                """,
                values,
            )
            return [rows.session_of(row) for row in found]

        return await self._database.read(work)

    async def transcript(self, session_id: int, scopes: frozenset[Scope]) -> list[Message]:
        """All that was said in a session, oldest first; empty for one that is not theirs."""
        values = {"session": rows.bounded(session_id), "scopes": scope_parameter(scopes)}

        def work(connection: sqlite3.Connection) -> list[Message]:
            found = connection.execute(
                f"""
                SELECT {rows.MESSAGE_COLUMNS} FROM sessions JOIN messages ON messages.session_id = sessions.id
                WHERE sessions.id = :session AND {visible()} AND {SAID} ORDER BY messages.id
                """,
                values,
            )
            return [rows.message_of(row) for row in found]

        return await self._database.read(work)
