"""Claude's data export (`conversations.json`) as lines of a chronicle: text blocks and the text of attachments.

The shape is that of exports until 2026: conversations with uuid, name and chat_messages, these with sender human or
assistant, content blocks, attachments with extracted_content, files by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from core.transfer import json_stream
from core.transfer.record import TITLE_CHARS, Choices, Skipped, TransferRecord, from_text
from core.types import Address, Role

THOUGHTS = "thoughts of the model"
TOOLS = "what tools were asked and answered"
OTHER = "blocks of a kind that has no text"
EMPTY = "messages without text"
TIMELESS = "messages without a time"
SHAPELESS = "entries that are no conversations"
LONG = "attachments of which only the beginning was taken"

PLATFORM = "claude"
ATTACHMENT_CHARS = 100_000
_ROLES: dict[str, Role] = {"human": "user", "user": "user", "assistant": "assistant"}


def read(stream: BinaryIO, name: str, choices: Choices) -> Iterator[TransferRecord | Skipped]:
    """Everything in the file, one conversation in memory at a time; `name` is the file's, for errors."""
    for conversation in json_stream.conversations(stream, name):
        if isinstance(conversation, dict) and isinstance(conversation.get("chat_messages"), list):
            yield from _conversation(conversation, choices)
        else:
            yield Skipped(reason=SHAPELESS)


def _conversation(conversation: dict[str, Any], choices: Choices) -> Iterator[TransferRecord | Skipped]:
    number, title = str(conversation.get("uuid") or ""), conversation.get("name")
    at = from_text(conversation.get("created_at"))
    for place, message in enumerate(conversation["chat_messages"]):
        role = _ROLES.get(str(message.get("sender"))) if isinstance(message, dict) else None
        if role is None:
            yield Skipped(reason=SHAPELESS)
            continue
        at = from_text(message.get("created_at")) or at
        parts: list[str] = []
        for part in [*_attached(message), *_said(message)]:
            if isinstance(part, Skipped):
                yield part
            elif part.strip():
                parts.append(part)
        if not parts:
            yield Skipped(reason=EMPTY)
        elif at is None:
            yield Skipped(reason=TIMELESS)
        else:
            yield TransferRecord(
                session=f"claude:{number}",
                title=title[:TITLE_CHARS] if isinstance(title, str) and title.strip() else None,
                address=Address(platform=PLATFORM, chat_id=number or "unknown"),
                scope=choices.scope,
                role=role,
                text="\n".join(parts),
                at=at,
                id=str(message.get("uuid") or place),
            )


def _said(message: dict[str, Any]) -> Iterator[str | Skipped]:
    """The text blocks. The flat `text` has sentences like "This block is not supported" between them, so it is read
    only where there are no blocks, as in exports of 2024."""
    blocks = message.get("content")
    if not isinstance(blocks, list) or not blocks:
        text = message.get("text")
        yield text if isinstance(text, str) else ""
        return
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and isinstance(block.get("text"), str):
            yield block["text"]
        elif kind in ("thinking", "redacted_thinking"):
            yield Skipped(reason=THOUGHTS)
        elif kind in ("tool_use", "tool_result"):
            yield Skipped(reason=TOOLS)
        else:
            yield Skipped(reason=OTHER)


def _attached(message: dict[str, Any]) -> Iterator[str | Skipped]:
    """Attachments are what was pasted or read out of a file; files have only a name."""
    attachments, files = message.get("attachments"), message.get("files")
    named = set()
    for attachment in attachments if isinstance(attachments, list) else ():
        if not isinstance(attachment, dict):
            continue
        name, text = str(attachment.get("file_name") or ""), attachment.get("extracted_content")
        named.add(name)
        yield f"[attachment: {name}]" if name else "[attachment]"
        if isinstance(text, str):
            if len(text) > ATTACHMENT_CHARS:
                yield Skipped(reason=LONG)
                text = text[:ATTACHMENT_CHARS] + " […]"
            yield text
    for file in files if isinstance(files, list) else ():
        name = str(file.get("file_name") or "") if isinstance(file, dict) else ""
        if name and name not in named:
            yield f"[file: {name}]"
