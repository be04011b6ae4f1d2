"""A store for the speed benchmark: our public functions, driven from synchronous code over a loop of its own.

Fills the interface of the benchmark's runner (`open`, `fill`, `begin`, `append`, `search`, `discover`, `scroll`,
`browse`, `size`, `close`); run it as ``run.py --stores floor --plugin tests/bench/speed.py:Mneme``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from core.search.recall import Recall
from core.search.results import to_json
from core.store.archive import Archive
from core.store.query import SearchQuery
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.transfer.formats import read_lines
from core.types import Address, Message, Role, Scope, Session
from tests.fixtures.clock import SteadyClock

T = TypeVar("T")
SCOPE = Scope.account("terminal", "local")
SCOPES = frozenset((SCOPE,))
FILE_SESSIONS = 100


class Mneme:
    """One store in one folder."""

    name = "mneme"

    def open(self, folder: Path) -> None:
        """Opens state.db in an empty folder."""
        self._runner = asyncio.Runner()
        self._stack = contextlib.AsyncExitStack()
        self._folder = Path(folder)
        self._database = self._run(self._stack.enter_async_context(Database.open(self._folder / "state.db")))
        self._conversations = Conversations(self._database, SteadyClock())
        self._recall = Recall(self._database, SteadyClock())
        self._archive = Archive(self._database)
        self._sessions: dict[str, int] = {}
        self._waiting: list[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]] = []

    def fill(self, session: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> None:
        """Imports a session as `mneme import` does: of a file with many, not of one file each."""
        self._waiting.append((session, messages))
        if len(self._waiting) == FILE_SESSIONS:
            self._import()

    def filled(self) -> None:
        """Lets the background work of the indexes come to its end."""
        self._import()

        async def tend() -> None:
            while await self._recall.tend():
                pass

        self._run(tend())

    def begin(self, session: Mapping[str, Any]) -> None:
        """Opens a session for appends."""
        opened = self._run(
            self._conversations.create(
                Session(
                    address=Address(platform="terminal", chat_id=session["id"]),
                    scope=SCOPE,
                    started_at=datetime.fromtimestamp(session["started_at"], UTC),
                )
            )
        )
        self._sessions[session["id"]] = opened.id

    def append(self, session: str, role: Role, text: str, at: float) -> int:
        """Appends one message; it is durable when this returns."""
        message = Message(
            role=role, text=text, session_id=self._sessions[session], created_at=datetime.fromtimestamp(at, UTC)
        )
        [stored] = self._run(self._conversations.append([message]))
        return stored.id

    def search(self, text: str, limit: int) -> list[int]:
        """The best messages."""
        query = SearchQuery(scopes=SCOPES, text=text, limit=1, messages=limit)
        return [hit.message_id for hit in self._run(self._recall.recall(query)).messages]

    def discover(self, text: str) -> int:
        """The whole tool call: three sessions with windows and bookends, as JSON."""
        return self._told(SearchQuery(scopes=SCOPES, text=text, limit=3))

    def scroll(self, session: str, message: int) -> int:
        """Ten messages on each side of one; the n-th message of the corpus has the number n."""
        findings = self._run(self._recall.recall(SearchQuery(scopes=SCOPES, around=message, window=10)))
        json.dumps(to_json(findings), ensure_ascii=False)
        return len(findings.sessions[0].window)

    def browse(self) -> int:
        """The latest ten sessions."""
        return self._told(SearchQuery(scopes=SCOPES, limit=10))

    def size(self) -> int:
        """Bytes on disk, the log written back into the file."""
        self._run(self._database.checkpoint())
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    def close(self) -> None:
        """Closes everything."""
        self._run(self._stack.aclose())
        self._runner.close()

    def _import(self) -> None:
        lines = (line for session, messages in self._waiting for line in self._lines(session, messages))
        self._run(self._archive.import_records(read_lines(lines), lambda _: None))
        self._waiting = []

    def _told(self, query: SearchQuery) -> int:
        findings = self._run(self._recall.recall(query))
        json.dumps(to_json(findings), ensure_ascii=False)
        return len(findings.sessions)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        # Not `self._runner.run`: where signals are handled it describes the task, with all of its result, as a text.
        return self._runner.get_loop().run_until_complete(work)

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
