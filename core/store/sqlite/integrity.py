"""Find damage in state.db: quickly at every start, and thoroughly once a day, in small slices."""

from __future__ import annotations

from datetime import datetime, timedelta

from core.errors import StoreDamagedError, word_clause
from core.ports import Clock
from core.store.engine import Connection
from core.store.rows import get_meta, set_meta
from core.store.sqlite.database import Database

MAX_REPORTED_PROBLEMS = 5
CHECKED_AT_KEY = "integrity_checked_at"
"""The key in `state_meta` for the time when the last full check ended, in ISO 8601."""
FULL_CHECK_INTERVAL = timedelta(days=1)
# The check of `sqlite_schema` also checks the list of free pages.
_SELECT_TABLES = """SELECT name FROM sqlite_schema WHERE type = 'table'
UNION ALL SELECT 'sqlite_schema' ORDER BY name"""


async def find_damage(database: Database) -> list[str]:
    """Check the file, and return one sentence per problem.

    At most `MAX_REPORTED_PROBLEMS` problems of each kind are reported.
    """

    def check(connection: Connection) -> list[str]:
        problems = _run_check(connection, f"PRAGMA integrity_check({MAX_REPORTED_PROBLEMS})")
        broken_rows = connection.execute("PRAGMA foreign_key_check").fetchall()
        for row in broken_rows[:MAX_REPORTED_PROBLEMS]:
            problems.append(word_clause("damage_row", table=row[0]))
        return problems

    return await database.read(check)


def _run_check(connection: Connection, pragma: str) -> list[str]:
    """Run a check and return its problems."""
    rows = [str(row[0]) for row in connection.execute(pragma) if row[0] != "ok"]
    return [line for row in rows for line in row.splitlines()]


class IntegrityCheck:
    """Checks the file in slices, each in a transaction of its own, in a reader's thread.

    A slice checks one table, so that the write-ahead log can be truncated between two slices. The
    first check is quick. Once a day, a full check also compares each table with its indexes. Only
    `find_damage`, which reads the whole file at once, finds pages that belong to no table.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._is_quick_check_due = True
        self._is_quick = False
        # The tables that the current check must still check, or None if no check is running.
        self._tables: list[str] | None = None

    async def run_slice(self) -> bool:
        """Check the next slice, if one is due. Returns whether another slice is due at once.

        Problems are recorded in the database's `damage`.
        """
        if self._tables is None and not await self._begin_check():
            return False
        if self._tables:
            await self._check_table(self._tables.pop())
            return True
        self._tables = None
        if self._is_quick:
            return True
        await self._store_time()
        return False

    async def _begin_check(self) -> bool:
        """List the tables for the next check. Returns False if none is due or can be listed."""
        self._is_quick = self._is_quick_check_due
        if not self._is_quick and not await self._is_full_check_due():
            return False
        self._is_quick_check_due = False
        try:
            rows = await self._database.fetch_all(_SELECT_TABLES)
        except StoreDamagedError:
            # The database has recorded the damage itself.
            return False
        self._tables = [row["name"] for row in rows]
        return True

    async def _store_time(self) -> None:
        """Store the current time as the end of the last full check."""
        now = self._clock.now().isoformat()
        await self._database.write(lambda connection: set_meta(connection, CHECKED_AT_KEY, now))

    async def _is_full_check_due(self) -> bool:
        """Return whether the last full check ended at least a day ago.

        The first full check of a new home is due after a day. If the last one seems to have ended
        in the future, the clock was wrong then, and a check is due.
        """
        text = await self._database.read(lambda connection: get_meta(connection, CHECKED_AT_KEY))
        if not text:
            await self._store_time()
            return False
        return abs(self._clock.now() - datetime.fromisoformat(text)) >= FULL_CHECK_INTERVAL

    async def _check_table(self, name: str) -> None:
        check = "quick_check" if self._is_quick else "integrity_check"
        quoted_name = name.replace('"', '""')
        pragma = f'PRAGMA {check}("{quoted_name}")'
        try:
            problems = await self._database.read(lambda connection: _run_check(connection, pragma))
        except StoreDamagedError:
            # The database has recorded the damage itself.
            return
        if problems:
            self._database.note_damage("; ".join(problems[:MAX_REPORTED_PROBLEMS]))
