"""A store for the speed benchmark: our public functions, called on a running loop as the gateway
calls them, and from synchronous code.

Fills the interface of the benchmark's runner (`open`, `fill`, `begin`, `append`, `search`,
`discover`, `scroll`, `browse`, `size`, `close`); run it as ``run.py --stores floor --plugin
tests/bench/speed.py:Mneme``."""

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
    """`Store` for synchronous code: each call is one start of a loop of its own."""

    name = "mneme"

    def __init__(self) -> None:
        self._store = Store()
        self._loop = asyncio.new_event_loop()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store, name)
        return lambda *arguments: self._loop.run_until_complete(method(*arguments))


class Store:
    """One store in one folder."""

    async def open(self, folder: str | Path) -> None:
        """Opens state.db in an empty folder."""
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
        """Imports a session as `mneme import` does: of a file with many, not of one file each."""
        self._waiting.append((session, messages))
        if len(self._waiting) == FILE_SESSIONS:
            await self._import()

    async def filled(self) -> None:
        """Lets the background work of the indexes come to its end."""
        await self._import()
        while await self._recall.tend():
            pass

    async def begin(self, session: Mapping[str, Any]) -> None:
        """Opens a session for appends."""
        address = Address(platform="terminal", chat_id=session["id"])
        started_at = datetime.fromtimestamp(session["started_at"], UTC)
        opened = await self._conversations.create(
            Session(address=address, scope=SCOPE, started_at=started_at)
        )
        self._sessions[session["id"]] = opened.id

    async def append(self, session: str, role: Role, text: str, at: float) -> int:
        """Appends one message; it is durable when this returns."""
        message = Message(
            role=role,
            text=text,
            session_id=self._sessions[session],
            created_at=datetime.fromtimestamp(at, UTC),
        )
        [stored] = await self._conversations.append([message])
        return stored.id

    async def search(self, text: str, limit: int) -> list[int]:
        """The best messages."""
        query = search_query(scopes=SCOPES, text=text, sessions=1, messages=limit)
        return [hit.message_id for hit in (await self._recall.recall(query)).messages]

    async def discover(self, text: str) -> int:
        """The whole tool call: three sessions with windows and bookends, as JSON."""
        return await self._told(search_query(scopes=SCOPES, text=text, sessions=3))

    async def scroll(self, session: str, message: int) -> int:
        """Ten messages on each side of one; the n-th message of the corpus has the number n."""
        findings = await self._recall.recall(search_query(scopes=SCOPES, around=message, window=10))
        json.dumps(to_json(findings), ensure_ascii=False)
        return len(findings.sessions[0].window)

    async def browse(self) -> int:
        """The latest ten sessions."""
        return await self._told(search_query(scopes=SCOPES, sessions=10))

    async def size(self) -> int:
        """Bytes on disk, the log written back into the file."""
        await self._database.checkpoint()
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    async def close(self) -> None:
        """Closes everything."""
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
