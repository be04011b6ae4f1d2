"""Find the parts of messages and tool results that the person who is answered didn't type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import Sentence
from core.guard.origin_and_fence import find_foreign_start, is_partly_pasted, list_insertions
from core.types import Message, Session

# Tools whose results contain only text that people typed or approved.
OWN_TOOLS = frozenset({"facts", "remember_this", "memory", "reminder", "skill_manage"})
# Ends the line of an imported reminder in such a result. Other people may have written it.
CALENDAR_FILE_MARK = "(from a calendar file)"
# Blocks of a message whose content can't be compared with a text.
_UNREADABLE_BLOCKS = frozenset({"image", "document"})
_ORIGIN_SOURCES = {
    "forwarded": "source_forwarded",
    "pasted": "source_pasted",
    "via_bot": "source_via_bot",
    "member": "source_member",
    "imported": "source_imported",
    "job": "source_job",
    "tool": "source_tool",
    "file": "source_file",
    "service": "source_service",
}


@dataclass(frozen=True, slots=True)
class ForeignText:
    """A text that the person didn't type, and its source as a noun phrase."""

    source: Sentence
    text: str


def list_foreign_texts(rows: Sequence[Message], session: Session | None = None) -> list[str]:
    """Return the foreign texts in messages of earlier conversations.

    Messages of the session itself are left out, because `read_transcript` reads them.
    """
    texts: list[str] = []
    for row in rows:
        if session is not None and row.session_id == session.id:
            continue
        if row.role == "tool":
            if row.tool_name not in OWN_TOOLS:
                texts.append(row.text)
        else:
            texts += [item.text for item in list_message_parts(row)]
    return texts


def list_message_parts(row: Message) -> list[ForeignText]:
    """Return the parts of a person's message that its sender didn't type."""
    parts: list[ForeignText] = []
    if row.quote is not None and not row.quote.is_ours:
        # The name is foreign, too, because it becomes a part of the sent message.
        quoted_text = f"{row.quote.name} {row.quote.text}".strip()
        if quoted_text:
            parts.append(ForeignText(Sentence("source_quote"), quoted_text))
    if row.origin not in ("typed", "spoken"):
        source = _ORIGIN_SOURCES.get(row.origin, "source_untyped")
        return [*parts, ForeignText(Sentence(source), row.text)]
    typed = row.text
    text = row.text.strip()
    start = find_foreign_start(text, row.sender_name)
    if is_partly_pasted(text) or start < len(text):
        # A text that is too long counts as pasted as a whole.
        start = start if text[start:].strip() else 0
        parts.append(ForeignText(Sentence("source_pasted"), text[start:].strip()))
        typed = text[:start]
    for inserted in list_insertions(typed):
        parts.append(ForeignText(Sentence("source_inserted_name"), inserted))
    return parts


def list_own_foreign_texts(row: Message) -> list[ForeignText]:
    """Return the foreign texts in a person's message or in a tool's result."""
    if row.role == "tool":
        return list_result(row, is_group=False)
    return list_message_parts(row)


def list_result(row: Message, *, is_group: bool) -> list[ForeignText]:
    """Return a tool's result, unless it contains only what the person typed or approved.

    In a group, notes, facts and reminders may come from other members. Reminders from a calendar
    file may come from others, too.
    """
    if row.tool_name in OWN_TOOLS and not is_group and CALENDAR_FILE_MARK not in row.text:
        return []
    return [ForeignText(Sentence("source_result", {"tool": row.tool_name}), row.text)]


def list_doubtful_answers(rows: Sequence[Message]) -> list[ForeignText]:
    """Return the answers after a message that counts as pasted.

    They may repeat a text that an edit has removed from the message.
    """
    texts: list[ForeignText] = []
    is_pasted = False
    for row in rows:
        is_pasted = is_pasted or (row.role == "user" and row.origin == "pasted")
        if is_pasted and row.role == "assistant" and row.text:
            texts.append(ForeignText(Sentence("source_earlier_answer"), row.text))
    return texts


def has_unreadable_file(rows: Sequence[Message]) -> bool:
    """Return whether a message has a picture or another file without text."""
    return any(
        block.get("type") in _UNREADABLE_BLOCKS for row in rows for block in row.sent_blocks or ()
    )
