"""A searcher for the recall benchmark. It calls Mneme's public functions over a state.db in a
temporary folder.

It has the methods that the harness of the benchmark calls: `index`, `search`, `search_sessions` and
`close`. Run it as ``run.py DATA --plugin tests/bench/locomo.py:Mneme``. Questions are passed to
`Recall` unchanged.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from core.search.recall import Recall
from core.store import engine
from core.store.query import SearchQuery, SearchResults
from core.store.sqlite.database import Database
from core.types import Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.search_queries import with_fields

if TYPE_CHECKING:
    from tests.fixtures.postgres import PostgresServer

SCOPE = Scope.account("terminal", "owner")
SESSIONS = 10
LIMIT = 300


class Mneme:
    """A store with its search.

    The result for the last text is kept, because the harness asks two questions about each text.
    """

    name = "mneme"

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._stack = contextlib.AsyncExitStack()
        self._folder = tempfile.TemporaryDirectory()
        self._last: tuple[str, int, SearchResults] | None = None

    def index(self, sessions: Sequence[Mapping[str, Any]]) -> None:
        """Store all sessions and update the indexes."""
        self._runner.run(self._index(sessions))

    def search(self, text: str, count: int) -> list[tuple[str, str]]:
        """Return the best messages of all sessions, as pairs of a session and a message of the
        data.
        """
        findings = self._ask(text, count)
        return [self._names[hit.message_id] for hit in findings.messages][:count]

    def search_sessions(self, text: str, count: int) -> list[str]:
        """Return the best sessions."""
        found = self._ask(text, LIMIT).sessions
        return [str(one.session.external_id) for one in found][:count]

    def close(self) -> None:
        """Close the store and delete its folder."""
        self._runner.run(self._stack.aclose())
        self._runner.close()
        self._folder.cleanup()

    def _ask(self, text: str, count: int) -> SearchResults:
        if self._last is None or self._last[0] != text:
            query = with_fields(
                SearchQuery(scopes=frozenset({SCOPE})), text=text, sessions=SESSIONS, messages=count
            )
            self._last = (text, count, self._runner.run(self._recall.recall(query)))
        return self._last[2]

    def _open(self) -> AbstractAsyncContextManager[engine.Database]:
        return Database.open(Path(self._folder.name) / "state.db")

    async def _index(self, sessions: Sequence[Mapping[str, Any]]) -> None:
        database = await self._stack.enter_async_context(self._open())
        self._database = database
        self._recall = Recall(database, SteadyClock())
        await database.write(lambda connection: _fill(connection, sessions))
        while await self._recall.tend():
            pass
        rows = await database.read(
            lambda connection: connection.execute(
                "SELECT messages.id, sessions.external_id, messages.external_id FROM messages "
                "JOIN sessions ON sessions.id = messages.session_id"
            ).fetchall()
        )
        self._names = {row[0]: (row[1], row[2].partition("/")[2]) for row in rows}


class MnemeOnPostgres(Mneme):
    """Like `Mneme`, with the store on a PostgreSQL server that this process starts.

    Run it as ``run.py DATA --plugin tests/bench/locomo.py:MnemeOnPostgres``.
    """

    name = "mneme, PostgreSQL"

    def _open(self) -> AbstractAsyncContextManager[engine.Database]:
        # Imported here because the other one needs no server.
        from core.store.postgres.database import Database as PostgresDatabase

        server = _start_server()
        name = server.create_database()
        self._stack.callback(server.drop_database, name)
        return PostgresDatabase.open(server.url_of(name))


@cache
def _start_server() -> PostgresServer:
    """Start the PostgreSQL server of this process, which stops at its end."""
    from tests.fixtures.postgres import MISSING, PostgresServer, find_programs

    programs = find_programs()
    if programs is None:
        raise SystemExit(MISSING)
    server = PostgresServer(programs)
    atexit.register(server.close)
    server.start()
    return server


def _fill(connection: engine.Connection, sessions: Sequence[Mapping[str, Any]]) -> None:
    connection.execute("INSERT INTO scopes (id, key) VALUES (1, :key)", {"key": SCOPE.key})
    connection.execute("INSERT INTO addresses (id, platform, chat_id) VALUES (1, 'import', '1')")
    for number, session in enumerate(sessions, 1):
        last = session["messages"][-1]["ts"]
        connection.execute(
            """
            INSERT INTO sessions (id, address_id, scope_id, external_id, started_at, last_at, ended_at, message_count)
            VALUES (:id, 1, 1, :external, :started, :last, :last, :messages)
            """,
            {
                "id": number,
                "external": session["id"],
                "started": session["started_at"],
                "last": last,
                "messages": len(session["messages"]),
            },
        )
        connection.executemany(
            """
            INSERT INTO messages (session_id, address_id, role, text, external_id, sender_id, sender_name, created_at)
            VALUES (:session, 1, :role, :text, :id, :speaker, :speaker, :ts)
            """,
            [
                {**said, "session": number, "id": f"{number}/{said['id']}"}
                for said in session["messages"]
            ],
        )
