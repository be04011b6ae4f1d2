"""Reads the home of Hermes Agent: conversations in state.db, notes in memories/.

Messages that Hermes itself hides are skipped, such as undone messages, sessions of subagents and
summaries.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from core.notes.edits import parse_entries
from core.notes.notebook import FILES
from core.store.archive import SkippedRecord, TransferConversation, TransferRecord
from core.store.sqlite.hermes import open_hermes
from core.transfer.formats import (
    HIDDEN,
    ImportOptions,
    build_conversation,
    build_record,
    parse_seconds,
)
from core.transfer.json_stream import MAX_VALUE_BYTES
from core.types import Address, Role

_ROLES: dict[object, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}
# The sources of sessions without a person.
_HELPER_SOURCES = ("subagent", "tool")
_RECALL_TOOLS = ("session_search", "memory")
_SUMMARY_STARTS = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")
# Hermes writes this before content that is a list of parts (`_CONTENT_JSON_PREFIX`).
_JSON_PREFIX = "\0json:"
# Mneme's names of platforms that Hermes calls by another name.
_PLATFORMS = {"cli": "terminal"}
_SELECT_SESSIONS = "SELECT * FROM sessions ORDER BY started_at, id"
_SELECT_MESSAGES = "SELECT * FROM messages WHERE session_id = :id ORDER BY id"


def read_hermes(
    stream: BinaryIO, title: str, options: ImportOptions
) -> Iterator[TransferRecord | SkippedRecord]:
    """Yield a record for each message, with one message in memory at a time.

    Each session becomes a conversation. If a session continues another session, the conversation
    has that session as its parent.
    """
    with open_hermes(Path(stream.name), title) as store:
        for session in map(dict, store.execute(_SELECT_SESSIONS)):
            conversation = _build_conversation(session, options)
            summary_times = {
                row["timestamp"]
                for row in store.execute(_SELECT_MESSAGES, session)
                if str(row["content"]).startswith(_SUMMARY_STARTS)
            }
            # The times of compacted messages, by a digest of role and content.
            compacted_times: dict[int, set[object]] = {}
            for row in map(dict, store.execute(_SELECT_MESSAGES, session)):
                # Hermes' compression (`archive_and_compact`) writes recent messages a second time.
                # Such a copy has the time of the original message or of the summary.
                digest = hash((row["role"], row["content"]))
                is_copy = (
                    digest in compacted_times
                    and row["timestamp"] in compacted_times[digest] | summary_times
                )
                if row.get("compacted"):
                    compacted_times.setdefault(digest, set()).add(row["timestamp"])
                if is_copy or _is_hidden(session, row):
                    yield SkippedRecord(reason=HIDDEN)
                    continue
                at = parse_seconds(row["timestamp"]) or parse_seconds(session["started_at"])
                yield build_record(
                    conversation, _ROLES[row["role"]], _text_of(row["content"]), at, str(row["id"])
                )


def read_notes(store: Path) -> dict[str, list[str]]:
    """Read the notes next to a state.db, by target.

    "memory" contains the assistant's own notes, and "user" contains notes about the person.
    """
    notes = {}
    for target, name in FILES.items():
        path = store.parent / "memories" / name
        with contextlib.suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
            entries = parse_entries(file.read(MAX_VALUE_BYTES))
            if entries:
                notes[target] = entries
    return notes


def _build_conversation(session: Mapping[str, Any], options: ImportOptions) -> TransferConversation:
    """Return the conversation for a session. If the session has no chat id, its own id is used."""
    session_id = str(session["id"])
    chat_id = session.get("chat_id")
    thread_id = session.get("thread_id")
    parent_id = session.get("parent_session_id")
    platform = str(session["source"]).replace(":", "-") or "hermes"
    address = Address(
        platform=_PLATFORMS.get(platform, platform),
        chat_id=str(chat_id or session_id),
        thread_id=str(thread_id) if chat_id and thread_id else None,
    )
    return build_conversation(
        address,
        options,
        session.get("title"),
        name=f"hermes:{session_id}",
        parent=f"hermes:{parent_id}" if parent_id else None,
    )


def _is_hidden(session: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Return whether Hermes hides a message.

    Hermes hides undone messages, summaries, messages of helper sessions and the results of recall.
    """
    is_undone = row.get("active") == 0 and not row.get("compacted")
    is_of_helper = session["source"] in _HELPER_SOURCES
    is_of_recall = row["role"] == "tool" and row.get("tool_name") in _RECALL_TOOLS
    if is_undone or is_of_helper or is_of_recall or row["role"] not in _ROLES:
        return True
    return _text_of(row["content"]).startswith(_SUMMARY_STARTS)


def _text_of(content: object) -> str:
    """Return the text of a message, whose content may be a JSON list of parts."""
    if isinstance(content, bytes):
        return content.decode("utf-8", "replace")
    text = "" if content is None else str(content)
    if not text.startswith(_JSON_PREFIX):
        return text
    document = text.removeprefix(_JSON_PREFIX)
    try:
        parts = json.loads(document)
    except (ValueError, RecursionError):
        return document
    if not isinstance(parts, list):
        parts = [parts]
    return "\n".join(_part_text(part) for part in parts)


def _part_text(part: Any) -> str:
    """Return the text of a part.

    A part without text is replaced with its kind, such as "[image]".
    """
    if not isinstance(part, dict):
        return str(part)
    text = part.get("text")
    if isinstance(text, str):
        return text
    kind = str(part.get("type") or "part").removesuffix("_url").removeprefix("input_")
    return f"[{kind}]"
