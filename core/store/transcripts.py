"""Sessions as people look at them: lists, texts, costs. Only reads, and only what the scopes allow."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from core.store import codec, rows
from core.store.database import Database
from core.store.indexes import plainly
from core.store.sight import scope_parameter, visible
from core.types import Message, Scope, Session, Usage

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

    async def usage(self, scopes: frozenset[Scope], since: datetime) -> Usage:
        """Tokens of all sessions in these scopes since a moment: sums of whole sessions, single calls of older ones."""
        values = {"scopes": scope_parameter(scopes), "since": rows.timestamp(since)}

        def work(connection: sqlite3.Connection) -> Usage:
            row = connection.execute(
                f"""
                SELECT COALESCE(SUM(input), 0) AS input, COALESCE(SUM(output), 0) AS output,
                    COALESCE(SUM(cache_read), 0) AS cache_read, COALESCE(SUM(cache_write), 0) AS cache_write
                FROM (
                    SELECT input_tokens AS input, output_tokens AS output, cache_read_tokens AS cache_read,
                        cache_write_tokens AS cache_write
                    FROM sessions WHERE {visible()} AND started_at >= :since
                    UNION ALL
                    SELECT json_extract(messages.usage, '$.input'), json_extract(messages.usage, '$.output'),
                        json_extract(messages.usage, '$.cache_read'), json_extract(messages.usage, '$.cache_write')
                    FROM sessions CROSS JOIN messages ON messages.session_id = sessions.id
                    WHERE {visible()} AND sessions.started_at < :since AND sessions.last_at >= :since
                    AND messages.created_at >= :since AND messages.usage IS NOT NULL
                )
                """,
                values,
            ).fetchone()
            return Usage(
                input=row["input"],
                output=row["output"],
                cache_read=row["cache_read"],
                cache_write=row["cache_write"],
            )

        return await self._database.read(work)
