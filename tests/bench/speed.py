"""A store for the speed benchmark. It calls Mneme's public functions on a running event loop, as
the gateway does, and from synchronous code.

It has the methods that the runner of the benchmark calls: `open`, `fill`, `begin`, `append`,
`search`, `discover`, `scroll`, `browse`, `size` and `close`. Run it as ``run.py --stores floor
--plugin tests/bench/speed.py:Mneme``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from core.search.recall import Recall
from core.search.rendering import to_json
from core.store.archive import Archive
from core.store.query import SearchQuery
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.transfer.formats import read_lines
from core.types import Address, Message, Role, Scope, Session
from tests.fixtures.clock import SteadyClock
from tests.fixtures.search_queries import search_query

SCOPE = Scope.account("terminal", "local")
SCOPES = frozenset((SCOPE,))
FILE_SESSIONS = 100


class Mneme:
    """A `Store` for synchronous code. Each call starts its event loop again."""

    name = "mneme"

    def __init__(self) -> None:
        self._store = Store()
        self._loop = asyncio.new_event_loop()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store, name)
        return lambda *arguments: self._loop.run_until_complete(method(*arguments))


class Store:
    """A store in a folder."""

    async def open(self, folder: str | Path) -> None:
        """Open state.db in an empty folder."""
        self._stack = contextlib.AsyncExitStack()
        self._folder = Path(folder)
        self._database = await self._stack.enter_async_context(
            Database.open(self._folder / "state.db")
        )
        self._conversations = Conversations(self._database, SteadyClock())
        self._recall = Recall(self._database, SteadyClock())
        self._archive = Archive(self._database)
        self._sessions: dict[str, int] = {}
        self._waiting: list[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]] = []

    async def fill(self, session: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> None:
        """Import a session as `mneme import` does, from a file with many sessions."""
        self._waiting.append((session, messages))
        if len(self._waiting) == FILE_SESSIONS:
            await self._import()

    async def filled(self) -> None:
        """Wait until the background work of the indexes is done."""
        await self._import()
        while await self._recall.tend():
            pass

    async def begin(self, session: Mapping[str, Any]) -> None:
        """Open a session for appends."""
        address = Address(platform="terminal", chat_id=session["id"])
        started_at = datetime.fromtimestamp(session["started_at"], UTC)
        opened = await self._conversations.create(
            Session(address=address, scope=SCOPE, started_at=started_at)
        )
        self._sessions[session["id"]] = opened.id

    async def append(self, session: str, role: Role, text: str, at: float) -> int:
        """Append one message. It is durable when this returns."""
        message = Message(
            role=role,
            text=text,
            session_id=self._sessions[session],
            created_at=datetime.fromtimestamp(at, UTC),
        )
        [stored] = await self._conversations.append([message])
        return stored.id

    async def search(self, text: str, limit: int) -> list[int]:
        """Return the best messages."""
        query = search_query(scopes=SCOPES, text=text, sessions=1, messages=limit)
        return [hit.message_id for hit in (await self._recall.recall(query)).messages]

    async def discover(self, text: str) -> int:
        """Call the search tool, and return three sessions with context as JSON."""
        return await self._told(search_query(scopes=SCOPES, text=text, sessions=3))

    async def scroll(self, session: str, message: int) -> int:
        """Return ten messages on each side of a message.

        Message n of the corpus has the number n.
        """
        findings = await self._recall.recall(search_query(scopes=SCOPES, around=message, window=10))
        json.dumps(to_json(findings), ensure_ascii=False)
        return len(findings.sessions[0].window)

    async def browse(self) -> int:
        """Return the latest ten sessions."""
        return await self._told(search_query(scopes=SCOPES, sessions=10))

    async def size(self) -> int:
        """Return the bytes on the disk after the log is written back into the file."""
        await self._database.checkpoint()
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    async def close(self) -> None:
        """Close the store."""
        await self._stack.aclose()

    async def _import(self) -> None:
        lines = (
            line for session, messages in self._waiting for line in self._lines(session, messages)
        )
        await self._archive.import_records(read_lines(lines), lambda _: None)
        self._waiting = []

    async def _told(self, query: SearchQuery) -> int:
        findings = await self._recall.recall(query)
        json.dumps(to_json(findings), ensure_ascii=False)
        return len(findings.sessions)

    @staticmethod
    def _lines(session: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> Iterable[str]:
        for number, message in enumerate(messages):
            yield json.dumps(
                {
                    "session": session["id"],
                    "role": message["role"],
                    "text": message["text"],
                    "at": datetime.fromtimestamp(message["ts"], UTC).isoformat(),
                    "id": str(number),
                },
                ensure_ascii=False,
            )
