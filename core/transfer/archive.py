"""All of history in and out: what another system knew comes in, what is known here goes out as JSON lines.

The format is in `chronicle.py`; files of other systems are read in `core/histories`. An import that is repeated or was
cut off changes nothing twice. Tool calls and what tools returned are not exported, nor are commands.

What an import stores in one transaction: whole sessions, as many as a writer beside it may wait for. Pure.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from core.errors import HistoryError, StoreError
from core.store import archive
from core.store.rows import scope_parameter, visible
from core.store.sessions import SAID
from core.store.sqlite import index_maintenance
from core.store.sqlite.database import Database
from core.store.sqlite.index_maintenance import indexed_at_once
from core.store.sqlite.stale import write_text
from core.transfer import record as json_lines
from core.transfer.record import ImportReport, Skipped, TransferRecord
from core.types import Scope

Batch = Sequence[Sequence[TransferRecord]]
"""Lines of some sessions, each session's in the order of their times."""

LINES = 500
CHARS = 500_000
"""A transaction has at most so many lines, and ends with the line that makes it so long. It then takes some 30 ms."""


def cut(sessions: Iterable[Sequence[TransferRecord]]) -> Iterator[Batch]:
    """Sessions as batches; in pieces only where one alone is too much. No batch has two pieces of one session."""
    batch: list[Sequence[TransferRecord]] = []
    count = chars = 0
    for session in sessions:
        for piece in _pieces(sorted(session, key=lambda line: line.at)):
            size = sum(len(line.text) for line in piece)
            if batch and (count + len(piece) > LINES or chars + size > CHARS):
                yield batch
                batch, count, chars = [], 0, 0
            batch.append(piece)
            count, chars = count + len(piece), chars + size
            if len(piece) < len(session):
                yield batch
                batch, count, chars = [], 0, 0
    if batch:
        yield batch


def _pieces(lines: Sequence[TransferRecord]) -> Iterator[Sequence[TransferRecord]]:
    piece: list[TransferRecord] = []
    chars = 0
    for line in lines:
        piece.append(line)
        chars += len(line.text)
        if len(piece) == LINES or chars >= CHARS:
            yield piece
            piece, chars = [], 0
    if piece:
        yield piece


BUFFER_LINES = 2000
BUFFER_CHARS = 8_000_000
"""How much waits in memory for the rest of its session."""
MERGE_SEGMENTS = 32
"""When the indexes have grown by so many segments they are merged, in small steps: at 64 FTS5 would do it by itself, in
one that takes as long as ten transactions."""
MERGE_PAGES = 200
PROGRESS_LINES = 1000
REASONS = 100
"""How many refused lines are reported with their reason."""
PAGE_MESSAGES = 500
PAGE_SESSIONS = 500


class Archive:
    """Import and export of history in state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._unmerged = 0

    async def import_lines(self, lines: Iterable[bytes | str], progress: Callable[[int], None]) -> ImportReport:
        """Takes in JSON lines. A bad line is refused with its number and the rest is kept."""
        return await self.import_records(json_lines.read(lines), progress)

    async def import_records(
        self, records: Iterable[TransferRecord | Skipped | None], progress: Callable[[int], None]
    ) -> ImportReport:
        """Takes in messages, some sessions a transaction, or a part of one when it is long or comes in pieces.

        `progress` hears now and then how many records are done. A message is known by (session, id); without an id the
        n-th equal (session, at, role, text) of the file is the n-th equal one stored. When the records end with a
        HistoryError, what came before is taken and the report says it in `broken`. Sessions whose messages came in
        another order than that of their times are put in order at the end.
        """
        tally = _Tally()
        waiting: dict[tuple[Scope, str], list[TransferRecord]] = {}
        buffered = buffered_chars = 0
        await self._database.write(archive.start)
        try:
            for record in _until_broken(records, tally):
                tally.lines += 1
                if isinstance(record, TransferRecord):
                    waiting.setdefault((record.scope, record.session), []).append(record)
                    buffered += 1
                    buffered_chars += len(record.text)
                elif record is not None:
                    tally.leave_out(record)
                if tally.lines % PROGRESS_LINES == 0:
                    progress(tally.lines)
                if buffered >= BUFFER_LINES or buffered_chars >= BUFFER_CHARS:
                    await self._store(waiting, tally)
                    buffered = buffered_chars = 0
            await self._store(waiting, tally)
        finally:
            await self._database.write(archive.finish)
        await self._put_in_order(sorted(tally.pieced))
        progress(tally.lines)
        return tally.report()

    async def export(self, scopes: frozenset[Scope], session_id: int | None = None) -> AsyncIterator[str]:
        """Every message of these scopes, or of one session, as a line without its end; oldest session first."""
        store = await self._database.write(archive.store_name)
        wanted = {"scopes": scope_parameter(scopes), "only": session_id, "limit": PAGE_MESSAGES}
        place = {"session": 0, "message": 0}
        while True:

            def work(
                connection: sqlite3.Connection, values: Mapping[str, object] = {**wanted, **place}
            ) -> list[tuple[int, int, str]]:
                return archive.page(connection, store, values)

            found = await self._database.read(work)
            for after_session, after_message, line in found:
                place = {"session": after_session, "message": after_message}
                yield line
            if len(found) < PAGE_MESSAGES:
                return

    async def left_out(self, scopes: frozenset[Scope], session_id: int | None = None) -> int:
        """How many messages of these scopes, or of one session, `export` drops. What was erased does not count: there
        is nothing left of it."""
        values = {"scopes": scope_parameter(scopes), "only": session_id}

        def work(connection: sqlite3.Connection) -> int:
            row = connection.execute(
                f"""
                SELECT COUNT(*) AS count FROM messages JOIN sessions ON sessions.id = messages.session_id
                WHERE {visible()} AND (:only IS NULL OR messages.session_id = :only) AND NOT ({SAID})
                AND (messages.text <> '' OR messages.blocks IS NOT NULL)
                """,
                values,
            ).fetchone()
            return int(row["count"])

        return await self._database.read(work)

    async def _store(self, waiting: dict[tuple[Scope, str], list[TransferRecord]], tally: _Tally) -> None:
        """Empties `waiting`, in transactions that are short enough for others to write between them."""
        for batch in cut(waiting.values()):

            def work(connection: sqlite3.Connection, batch: Batch = batch) -> list[tuple[int, bool, int]]:
                with indexed_at_once(connection):
                    return [archive.store(connection, lines) for lines in batch]

            await self._note(batch, tally)
            stored = await write_text(self._database, work)
            for lines, (session_id, is_new, taken) in zip(batch, stored, strict=True):
                tally.met.add(session_id)
                if not is_new:
                    tally.pieced.add(session_id)
                tally.taken += taken
                tally.known += len(lines) - taken
                tally.scopes[lines[0].scope] += len(lines)
            if any(taken for _, _, taken in stored):
                await self._merge(1)
        waiting.clear()

    async def _note(self, batch: Batch, tally: _Tally) -> None:
        """Counts the messages without an id in those sessions that were there before this import."""

        def find(connection: sqlite3.Connection) -> list[int | None]:
            return [archive.find(connection, lines[0]) for lines in batch]

        there = {session_id for session_id in await self._database.read(find) if session_id is not None}
        for session_id in sorted(there - tally.met):
            after: int | None = 0
            while after is not None:
                note = partial(archive.note_stored, session_id=session_id, after=after)
                after = await self._database.write(note)

    async def _merge(self, segments: int) -> None:
        self._unmerged += segments
        if self._unmerged < MERGE_SEGMENTS:
            return
        self._unmerged = 0
        # A damaged index is the business of those who tend it, and a full disk is met at the next message.
        with contextlib.suppress(StoreError):
            while await self._database.write(lambda connection: index_maintenance.merge(connection, MERGE_PAGES)):
                pass

    async def _put_in_order(self, session_ids: Sequence[int]) -> None:
        """Renumbers what came late into these sessions, in small transactions: others write meanwhile."""
        for start in range(0, len(session_ids), PAGE_SESSIONS):
            part = session_ids[start : start + PAGE_SESSIONS]

            def find(connection: sqlite3.Connection, part: Sequence[int] = part) -> dict[int, list[tuple[int, int]]]:
                return archive.disordered(connection, part)

            for moves in (await self._database.read(find)).values():
                for step in archive.steps(moves):

                    def work(connection: sqlite3.Connection, step: Sequence[tuple[int, int]] = step) -> None:
                        archive.renumber(connection, step)

                    await write_text(self._database, work)
                    # What goes is written down like what comes.
                    await self._merge(2)


class _Tally:
    """What an import has done so far."""

    def __init__(self) -> None:
        self.lines = 0
        self.taken = 0
        self.known = 0
        self.met: set[int] = set()
        """Ids of the sessions that the file has."""
        self.pieced: set[int] = set()
        """Those of them that were there before, or came in more than one piece."""
        self.scopes: Counter[Scope] = Counter()
        """How many messages the file has of each scope, taken now or known."""
        self.broken: str | None = None
        self._refused = 0
        self._reasons: list[str] = []
        self._skipped: Counter[str] = Counter()

    def leave_out(self, record: Skipped) -> None:
        """Counts what is not taken; of refused lines the first are told one by one."""
        if record.line is None:
            self._skipped[record.reason] += 1
            return
        self._refused += 1
        if len(self._reasons) < REASONS:
            self._reasons.append(f"line {record.line}: {record.reason}")

    def report(self) -> ImportReport:
        return ImportReport(
            lines=self.lines,
            taken=self.taken,
            known=self.known,
            refused=self._refused,
            sessions=len(self.met),
            reasons=tuple(self._reasons),
            skipped=tuple(self._skipped.most_common()),
            broken=self.broken,
            scopes=tuple((scope.key, number) for scope, number in self.scopes.most_common()),
        )


def _until_broken(
    records: Iterable[TransferRecord | Skipped | None], tally: _Tally
) -> Iterator[TransferRecord | Skipped | None]:
    try:
        yield from records
    except HistoryError as error:
        tally.broken = str(error)
