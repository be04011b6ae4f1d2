"""All of history in and out as JSON lines: what another system knew comes in, what is known here goes out.

The format is in `chronicle.py`. An import that is repeated or was cut off changes nothing twice. Tool calls and what
tools returned are not exported.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from core.records import ImportReport
from core.store import archive_rows
from core.store.chronicle import Chronicle
from core.store.database import Database
from core.store.sight import scope_parameter, visible
from core.store.stale import write_text
from core.types import Scope

BUFFER_LINES = 2000
"""How many lines wait in memory for the rest of their session."""
PROGRESS_LINES = 1000
REASONS = 100
"""How many refused lines are reported with their reason."""
PAGE_MESSAGES = 500


class Archive:
    """Import and export of history in state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def import_lines(self, lines: Iterable[bytes | str], progress: Callable[[int], None]) -> ImportReport:
        """Takes in JSON lines; one transaction a session, or a part of one when it is very long or comes in pieces.

        `progress` hears now and then how many lines are done. A bad line is refused with its number and the rest is
        kept. A line is known by (session, id); without an id the n-th equal (session, at, role, text) of the file is
        the n-th equal one stored.
        """
        report = ImportReport()
        waiting: dict[tuple[Scope, str], list[Chronicle]] = {}
        buffered = 0
        met: set[int] = set()
        await self._database.write(archive_rows.start)
        try:
            for number, line in enumerate(lines, start=1):
                report = replace(report, lines=number)
                try:
                    parsed = _parsed(line, number)
                except ValueError as error:
                    report = _refused(report, number, error)
                    continue
                finally:
                    if number % PROGRESS_LINES == 0:
                        progress(number)
                if parsed is not None:
                    waiting.setdefault((parsed.scope, parsed.session), []).append(parsed)
                    buffered += 1
                if buffered >= BUFFER_LINES:
                    report = await self._store(waiting, report, met)
                    buffered = 0
            report = await self._store(waiting, report, met)
        finally:
            await self._database.write(archive_rows.finish)
        progress(report.lines)
        return replace(report, sessions=len(met))

    async def export(self, scopes: frozenset[Scope], session_id: int | None = None) -> AsyncIterator[str]:
        """Every message of these scopes, or of one session, as a line without its end; oldest session first."""
        store = await self._database.write(archive_rows.store_name)
        wanted = {"scopes": scope_parameter(scopes), "only": session_id, "limit": PAGE_MESSAGES}
        place = {"session": 0, "message": 0}
        while True:

            def work(
                connection: sqlite3.Connection, values: Mapping[str, object] = {**wanted, **place}
            ) -> list[tuple[int, int, str]]:
                return archive_rows.page(connection, store, values)

            found = await self._database.read(work)
            for after_session, after_message, line in found:
                place = {"session": after_session, "message": after_message}
                yield line
            if len(found) < PAGE_MESSAGES:
                return

    async def left_out(self, scopes: frozenset[Scope]) -> int:
        """How many messages of these scopes have tool blocks, which `export` drops."""
        values = {"scopes": scope_parameter(scopes)}

        def work(connection: sqlite3.Connection) -> int:
            row = connection.execute(
                f"""
                SELECT COUNT(*) AS count FROM messages JOIN sessions ON sessions.id = messages.session_id
                WHERE {visible()} AND messages.kind IN ('chat', 'quote')
                AND (messages.tools IS NOT NULL OR messages.role = 'tool' AND messages.blocks IS NOT NULL)
                """,
                values,
            ).fetchone()
            return int(row["count"])

        return await self._database.read(work)

    async def _store(
        self, waiting: dict[tuple[Scope, str], list[Chronicle]], report: ImportReport, met: set[int]
    ) -> ImportReport:
        """Empties `waiting`, one transaction for each session; adds the sessions' ids to `met`."""
        while waiting:
            lines = waiting.pop(next(iter(waiting)))

            def work(connection: sqlite3.Connection, lines: Sequence[Chronicle] = lines) -> tuple[int, int]:
                return archive_rows.store(connection, lines, met)

            session_id, taken = await write_text(self._database, work)
            met.add(session_id)
            report = replace(report, taken=report.taken + taken, known=report.known + len(lines) - taken)
        return report


def _parsed(line: bytes | str, number: int) -> Chronicle | None:
    """The line, or None when it is blank. The mark that some editors put in front of a file is no part of it."""
    if number == 1:
        line = line.removeprefix(b"\xef\xbb\xbf") if isinstance(line, bytes) else line.removeprefix("\ufeff")
    return Chronicle.parse(line) if line.strip() else None


def _refused(report: ImportReport, number: int, error: ValueError) -> ImportReport:
    reasons = report.reasons
    if len(reasons) < REASONS:
        reasons = (*reasons, f"line {number}: {error}")
    return replace(report, refused=report.refused + 1, reasons=reasons)
