"""Claude's data export (`conversations.json`), of the shape until 2026: text blocks and the text of attachments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from core.store.archive import Skipped, TransferRecord
from core.transfer.formats import HIDDEN, SHAPELESS, Choices, Conversation, from_text, items, listed, mapping, text_of
from core.types import Address, Role

LONG = "attachments of which only the beginning was taken"
ATTACHMENT_CHARS = 100_000
_ROLES: dict[str, Role] = {"human": "user", "user": "user", "assistant": "assistant"}


def read(stream: BinaryIO, title: str, choices: Choices) -> Iterator[TransferRecord | Skipped]:
    for conversation in items(stream, title, "chat_messages", list):
        yield from [conversation] if isinstance(conversation, Skipped) else _conversation(conversation, choices)


def _conversation(values: dict[str, Any], choices: Choices) -> Iterator[TransferRecord | Skipped]:
    number = str(values.get("uuid") or "")
    conversation = Conversation(
        name=f"claude:{number}",
        address=Address(platform="claude", chat_id=number or "unknown"),
        choices=choices,
        title=text_of(values.get("name")),
    )
    at = from_text(values.get("created_at"))
    for place, message in enumerate(values["chat_messages"]):
        role = _ROLES.get(str(mapping(message).get("sender")))
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
        yield conversation.record(role, "\n".join(parts), at, str(message.get("uuid") or place))


def _said(message: dict[str, Any]) -> Iterator[str | Skipped]:
    """The text blocks. The flat `text` has sentences like "This block is not supported" between them, so it is read
    only where there are no blocks, as in exports of 2024."""
    blocks = listed(message.get("content"))
    if not blocks:
        yield text_of(message.get("text"))
    for block in map(mapping, blocks):
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            yield block["text"]
        else:
            yield Skipped(reason=HIDDEN)


def _attached(message: dict[str, Any]) -> Iterator[str | Skipped]:
    """Attachments are what was pasted or read out of a file; files have only a name."""
    named = {""}
    for attachment in filter(None, map(mapping, listed(message.get("attachments")))):
        name, text = str(attachment.get("file_name") or ""), text_of(attachment.get("extracted_content"))
        named.add(name)
        yield f"[attachment: {name}]" if name else "[attachment]"
        if len(text) > ATTACHMENT_CHARS:
            yield Skipped(reason=LONG)
            text = text[:ATTACHMENT_CHARS] + " […]"
        yield text
    for file in map(mapping, listed(message.get("files"))):
        name = str(file.get("file_name") or "")
        if name not in named:
            yield f"[file: {name}]"
