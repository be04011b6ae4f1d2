"""The state.db of Hermes Agent as lines of a chronicle. Never writes: opened read-only, and immutable where nobody can
be writing it.

The schema is that of hermes-agent 0.19.0 (`hermes_state.py`, SCHEMA_SQL); columns that older ones lack are read as
absent. Left out, as Hermes itself hides them: what was undone, sessions of its helpers, its summaries.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.errors import HistoryError
from core.transfer.record import TITLE_CHARS, Choices, Skipped, TransferRecord, from_seconds
from core.types import Address, Role

UNDONE = "messages that were undone"
HELPERS = "messages of helpers (subagents, integrations)"
SUMMARIES = "summaries of compressed conversations"
COPIES = "copies that compression made"
SYSTEM = "messages of the system"
RECALLED = "what tools for recall and memory returned"
EMPTY = "messages without text (calls of tools)"
TIMELESS = "messages without a time"

_SESSION_COLUMNS = ("title", "chat_id", "thread_id")
_MESSAGE_COLUMNS = ("tool_name", "active", "compacted")
_NEEDED = {
    "sessions": {"id", "source", "started_at"},
    "messages": {"id", "session_id", "role", "content", "timestamp"},
}
_ROLES: dict[object, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}
_HELPERS = ("subagent", "tool")
_RECALL_TOOLS = ("session_search", "memory")
_SUMMARY_STARTS = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")
_STRUCTURED = "\0json:"
"""In front of content that is a list of parts (`_CONTENT_JSON_PREFIX`)."""
_PLATFORMS = {"cli": "terminal"}


def inspect(path: Path, title: str) -> None:
    """Raises HistoryError with a sentence when the database at `path` is not one of Hermes."""
    with _translated(title), contextlib.closing(_opened(path)) as connection:
        connection.row_factory = sqlite3.Row
        _columns(connection, title)


def read(path: Path, title: str, choices: Choices) -> Iterator[TransferRecord | Skipped]:
    """Everything in the file, one row in memory at a time; `title` is the file as a person knows it."""
    with _translated(title), contextlib.closing(_opened(path)) as connection:
        connection.row_factory = sqlite3.Row
        columns = _columns(connection, title)
        sessions = f"""
            SELECT id, source, started_at{_maybe(_SESSION_COLUMNS, columns["sessions"])}
            FROM sessions ORDER BY started_at, id
        """
        for session in connection.execute(sessions):
            yield from _session(connection, session, columns["messages"], choices)


def _session(
    connection: sqlite3.Connection, session: sqlite3.Row, columns: set[str], choices: Choices
) -> Iterator[TransferRecord | Skipped]:
    statement = f"""
        SELECT id, role, content, timestamp{_maybe(_MESSAGE_COLUMNS, columns)}
        FROM messages WHERE session_id = :session ORDER BY id
    """
    copied = _Copied(connection, session["id"]) if "compacted" in columns else None
    for row in connection.execute(statement, {"session": session["id"]}):
        line = _line(session, row, choices)
        if copied is not None and copied.has(row) and isinstance(line, TransferRecord):
            line = Skipped(reason=COPIES)
        yield line


def _line(session: sqlite3.Row, row: sqlite3.Row, choices: Choices) -> TransferRecord | Skipped:
    text, at = _text(row["content"]), from_seconds(row["timestamp"]) or from_seconds(session["started_at"])
    if row["active"] == 0 and not row["compacted"]:
        return Skipped(reason=UNDONE)
    if session["source"] in _HELPERS:
        return Skipped(reason=HELPERS)
    if row["role"] not in _ROLES:
        return Skipped(reason=SYSTEM)
    if row["role"] == "tool" and row["tool_name"] in _RECALL_TOOLS:
        return Skipped(reason=RECALLED)
    if text.startswith(_SUMMARY_STARTS):
        return Skipped(reason=SUMMARIES)
    if not text.strip():
        return Skipped(reason=EMPTY)
    if at is None:
        return Skipped(reason=TIMELESS)
    name, source = str(session["id"]), str(session["source"]).replace(":", "-") or "hermes"
    thread, title = session["thread_id"], session["title"]
    return TransferRecord(
        session=f"hermes:{name}",
        title=str(title)[:TITLE_CHARS] if title else None,
        address=Address(
            platform=_PLATFORMS.get(source, source),
            chat_id=str(session["chat_id"] or name),
            thread_id=str(thread) if thread and session["chat_id"] else None,
        ),
        scope=choices.scope,
        role=_ROLES[row["role"]],
        text=text,
        at=at,
        id=str(row["id"]),
    )


class _Copied:
    """Knows the messages that compression in place wrote anew (`archive_and_compact`): what it archives stays in the
    table, and what it keeps is written again, with its old time or that of the summary."""

    def __init__(self, connection: sqlite3.Connection, session_id: object) -> None:
        found = connection.execute(
            """
            SELECT timestamp FROM messages
            WHERE session_id = :session AND (content LIKE '[CONTEXT COMPACTION%' OR content LIKE '[CONTEXT SUMMARY]%')
            """,
            {"session": session_id},
        )
        self._stamps = {row["timestamp"] for row in found}
        self._archived: dict[bytes, set[object]] = {}

    def has(self, row: sqlite3.Row) -> bool:
        """Whether the row repeats one archived before it; rows come in the order of their ids."""
        digest = hashlib.blake2b(f"{row['role']} {row['content']}".encode(errors="replace"), digest_size=12).digest()
        times = self._archived.get(digest)
        is_copy = times is not None and (row["timestamp"] in times or row["timestamp"] in self._stamps)
        if row["compacted"]:
            self._archived.setdefault(digest, set()).add(row["timestamp"])
        return is_copy


def _text(content: object) -> str:
    """The text of a message; parts that are no text become a mark."""
    if isinstance(content, bytes):
        return content.decode("utf-8", "replace")
    text = "" if content is None else str(content)
    if not text.startswith(_STRUCTURED):
        return text
    try:
        parts = json.loads(text.removeprefix(_STRUCTURED))
    except (ValueError, RecursionError):
        return text.removeprefix(_STRUCTURED)
    return "\n".join(_part(part) for part in (parts if isinstance(parts, list) else [parts]))


def _part(part: Any) -> str:
    if isinstance(part, dict):
        if isinstance(part.get("text"), str):
            return str(part["text"])
        kind = str(part.get("type") or "part").removesuffix("_url").removeprefix("input_")
        return f"[{kind}]"
    return str(part)


def _opened(path: Path) -> sqlite3.Connection:
    """Immutable reading takes no lock and makes no file beside it, but must not be done while a write-ahead log waits:
    what is in the log would be missing."""
    logs = (path.with_name(path.name + end) for end in ("-wal", "-journal"))
    is_at_rest = not any(log.exists() and log.stat().st_size for log in logs)
    mode = "mode=ro&immutable=1" if is_at_rest else "mode=ro"
    return sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)


def _columns(connection: sqlite3.Connection, title: str) -> dict[str, set[str]]:
    found = {
        table: {
            row["name"] for row in connection.execute("SELECT name FROM pragma_table_info(:table)", {"table": table})
        }
        for table in _NEEDED
    }
    if all(needed <= found[table] for table, needed in _NEEDED.items()):
        return found
    if {"scope_id", "address_id"} <= found["sessions"]:
        raise HistoryError(
            f"{title} is a state.db of Mneme itself. Write it out with `mneme export` in its own home and import that."
        )
    raise HistoryError(f"{title} is a database, but not of Hermes: it has no sessions and messages as Hermes has them.")


def _maybe(wanted: tuple[str, ...], known: set[str]) -> str:
    """Columns that may be absent, for the end of a list of columns."""
    return "".join(f", {name}" if name in known else f", NULL AS {name}" for name in wanted)


@contextlib.contextmanager
def _translated(title: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.DatabaseError, OSError) as error:
        raise HistoryError(
            f"{title} cannot be read ({error}). Close Hermes, or copy its state.db and import the copy."
        ) from error
