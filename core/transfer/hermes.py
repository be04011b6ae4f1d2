"""The home of Hermes Agent: conversations in its state.db, notes in memories/MEMORY.md and USER.md. Left out, as Hermes
itself hides them: what was undone, sessions of subagents, summaries."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from core.notes.notebook import FILES, entries_of
from core.store.archive import Conversation, Skipped, TransferRecord
from core.store.sqlite.database import open_hermes
from core.transfer.formats import HIDDEN, VALUE_BYTES, Choices, conversation_of, from_seconds, mapping, record_of
from core.types import Address, Role

_ROLES: dict[object, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}
_HELPERS = ("subagent", "tool")
_RECALL_TOOLS = ("session_search", "memory")
_SUMMARY_STARTS = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")
_STRUCTURED = "\0json:"
"""In front of content that is a list of parts (`_CONTENT_JSON_PREFIX`)."""
_PLATFORMS = {"cli": "terminal"}
_SESSIONS = "SELECT * FROM sessions ORDER BY started_at, id"
_MESSAGES = "SELECT * FROM messages WHERE session_id = :id ORDER BY id"


def read(stream: BinaryIO, title: str, choices: Choices) -> Iterator[TransferRecord | Skipped]:
    """Every message, one in memory at a time; a session that continues another has it as its parent."""
    with open_hermes(Path(stream.name), title) as store:
        for session in map(dict, store.execute(_SESSIONS)):
            conversation = _conversation(session, choices)
            rows = store.execute(_MESSAGES, session)
            summarized = {row["timestamp"] for row in rows if str(row["content"]).startswith(_SUMMARY_STARTS)}
            archived: dict[int, set[object]] = {}
            for row in map(dict, store.execute(_MESSAGES, session)):
                # What compression in place (`archive_and_compact`) wrote again has its old time or the summary's.
                digest = hash((row["role"], row["content"]))
                is_copy = digest in archived and row["timestamp"] in archived[digest] | summarized
                if row.get("compacted"):
                    archived.setdefault(digest, set()).add(row["timestamp"])
                at = from_seconds(row["timestamp"]) or from_seconds(session["started_at"])
                role = _ROLES.get(row["role"], "user")
                record = record_of(conversation, role, _text(row["content"]), at, str(row["id"]))
                yield Skipped(reason=HIDDEN) if is_copy or _is_hidden(session, row) else record


def _conversation(session: Mapping[str, Any], choices: Choices) -> Conversation:
    number, chat = str(session["id"]), session.get("chat_id")
    thread, parent = session.get("thread_id"), session.get("parent_session_id")
    source = str(session["source"]).replace(":", "-") or "hermes"
    thread_id = str(thread) if chat and thread else None
    address = Address(platform=_PLATFORMS.get(source, source), chat_id=str(chat or number), thread_id=thread_id)
    parent_name = f"hermes:{parent}" if parent else None
    return conversation_of(address, choices, session.get("title"), f"hermes:{number}", parent_name)


def notes(store: Path) -> dict[str, list[str]]:
    """The notes beside a state.db, by target: "memory" (its own) and "user" (about the person)."""
    found = {}
    for target, name in FILES.items():
        path = store.parent / "memories" / name
        with contextlib.suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
            found[target] = entries_of(file.read(VALUE_BYTES))
    return {target: entries for target, entries in found.items() if entries}


def _is_hidden(session: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    return (
        (row.get("active") == 0 and not row.get("compacted"))
        or session["source"] in _HELPERS
        or row["role"] not in _ROLES
        or (row["role"] == "tool" and row.get("tool_name") in _RECALL_TOOLS)
        or _text(row["content"]).startswith(_SUMMARY_STARTS)
    )


def _text(content: object) -> str:
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
    if not isinstance(part, dict):
        return str(part)
    kind = str(mapping(part).get("type") or "part").removesuffix("_url").removeprefix("input_")
    return part["text"] if isinstance(part.get("text"), str) else f"[{kind}]"
