"""Reads the exports of assistants: `conversations.json` of ChatGPT and of Claude.

Content that the assistants' own pages hide is skipped and counted. The formats are those of exports
up to 2026.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from core.errors import word_clause
from core.store.archive import SkippedRecord, TransferRecord
from core.transfer.formats import (
    HIDDEN,
    UNKNOWN_SHAPE,
    ImportOptions,
    as_dict,
    as_list,
    as_text,
    build_conversation,
    build_record,
    parse_iso,
    parse_seconds,
)
from core.transfer.json_stream import json_values
from core.types import Address, Role

# The reasons to skip a part of a record. Reports show them after a number.
LONG_ATTACHMENT = word_clause("import_long_attachment")
ATTACHMENT_CHARS = 100_000

# ChatGPT's page shows messages of the assistant to these recipients: to the person, and to the tool
# that runs code.
_VISIBLE_RECIPIENTS = ("all", "python")
# Recipients that begin with this are tools that write documents. Their messages are shown too.
_DOCUMENT_RECIPIENT = "canmore."
_HIDDEN_CONTENT_TYPES = (
    "thoughts",
    "reasoning_recap",
    "user_editable_context",
    "model_editable_context",
)
_MEDIA = ("image", "audio", "video")
_CLAUDE_ROLES: dict[str, Role] = {"human": "user", "user": "user", "assistant": "assistant"}


def read_chatgpt(
    stream: BinaryIO, title: str, options: ImportOptions
) -> Iterator[TransferRecord | SkippedRecord]:
    """Yield the messages of all conversations of ChatGPT.

    The messages of a conversation form a tree. Only the path to its current node is read, which is
    the branch that ChatGPT's page shows.
    """
    for _, value in json_values(stream, title, {"item"}):
        values = as_dict(value)
        if not isinstance(values.get("mapping"), dict):
            yield SkippedRecord(reason=UNKNOWN_SHAPE)
            continue
        nodes = {key: node for key, node in values["mapping"].items() if isinstance(node, dict)}
        path = _path_to_current_node(nodes, values.get("current_node"))
        first_key = path[0] if path else ""
        number = str(values.get("conversation_id") or values.get("id") or first_key)
        address = Address(platform="chatgpt", chat_id=number)
        conversation = build_conversation(address, options, values.get("title"))
        at = parse_seconds(values.get("create_time"))
        for key in path:
            message = nodes[key].get("message")
            if not isinstance(message, dict):
                continue
            at = parse_seconds(message.get("create_time")) or at
            text = _chatgpt_text(message)
            if text is None:
                yield SkippedRecord(reason=HIDDEN)
                continue
            is_from_user = as_dict(message.get("author")).get("role") == "user"
            role: Role = "user" if is_from_user else "assistant"
            yield build_record(conversation, role, text, at, str(message.get("id") or key))


def _path_to_current_node(nodes: dict[str, Any], current: Any) -> list[str]:
    """Return the keys from the root to the current node.

    If the current node is missing or unknown, the last leaf takes its place.
    """
    if not isinstance(current, str) or current not in nodes:
        leaves = [key for key in nodes if not nodes[key].get("children")]
        current = leaves[-1] if leaves else None
    # A dict keeps the order of its keys, and finds a repeated key quickly.
    path: dict[str, None] = {}
    while isinstance(current, str) and current in nodes and current not in path:
        path[current] = None
        current = nodes[current].get("parent")
    return list(path)[::-1]


def _chatgpt_text(message: dict[str, Any]) -> str | None:
    """Return the text of a message that ChatGPT's page shows, or None if the page hides it."""
    author = as_dict(message.get("author"))
    metadata = as_dict(message.get("metadata"))
    content = as_dict(message.get("content"))
    recipient = str(message.get("recipient") or "all")
    role = author.get("role")
    if role not in ("user", "assistant"):
        return None
    if content.get("content_type") in _HIDDEN_CONTENT_TYPES:
        return None
    if metadata.get("is_visually_hidden_from_conversation"):
        return None
    is_visible_recipient = recipient in _VISIBLE_RECIPIENTS or recipient.startswith(
        _DOCUMENT_RECIPIENT
    )
    if role == "assistant" and not is_visible_recipient:
        return None

    parts = []
    for attachment in as_list(metadata.get("attachments")):
        name = as_dict(attachment).get("name")
        if name:
            parts.append(f"[file: {name}]")
    parts += _chatgpt_parts(content, recipient)
    return "\n".join(part for part in parts if part.strip())


def _chatgpt_parts(content: dict[str, Any], recipient: str) -> Iterator[str]:
    """Yield the texts of a message. An image, for example, becomes "[image]"."""
    text = as_text(content.get("text"))
    if content.get("content_type") == "code" and text.strip():
        if recipient.startswith(_DOCUMENT_RECIPIENT):
            yield text
            return
        language = str(content.get("language") or "").replace("unknown", "")
        yield f"```{language}\n{text}\n```"
        return
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else [text]:
        part_text = part if isinstance(part, str) else as_dict(part).get("text")
        if isinstance(part_text, str):
            yield part_text
            continue
        content_type = str(as_dict(part).get("content_type"))
        for medium in _MEDIA:
            if medium in content_type:
                yield f"[{medium}]"
                break


def read_claude(
    stream: BinaryIO, title: str, options: ImportOptions
) -> Iterator[TransferRecord | SkippedRecord]:
    """Yield the messages of all conversations of Claude, with the texts of their attachments."""
    for _, value in json_values(stream, title, {"item"}):
        values = as_dict(value)
        if not isinstance(values.get("chat_messages"), list):
            yield SkippedRecord(reason=UNKNOWN_SHAPE)
            continue
        address = Address(platform="claude", chat_id=str(values.get("uuid") or "unknown"))
        conversation = build_conversation(address, options, values.get("name"))
        at = parse_iso(values.get("created_at"))
        for index, message in enumerate(values["chat_messages"]):
            role = _CLAUDE_ROLES.get(str(as_dict(message).get("sender")))
            if role is None:
                yield SkippedRecord(reason=UNKNOWN_SHAPE)
                continue
            at = parse_iso(message.get("created_at")) or at
            texts = []
            for part in (*_claude_attachments(message), *_claude_texts(message)):
                if isinstance(part, SkippedRecord):
                    yield part
                elif part.strip():
                    texts.append(part)
            message_id = str(message.get("uuid") or index)
            yield build_record(conversation, role, "\n".join(texts), at, message_id)


def _claude_texts(message: dict[str, Any]) -> Iterator[str | SkippedRecord]:
    """Yield the text blocks of a message, and a skipped record for each block of another type.

    The field `text` also contains sentences such as "This block is not supported". So `text` is
    read only if there are no blocks, as in exports of 2024.
    """
    blocks = as_list(message.get("content"))
    if not blocks:
        yield as_text(message.get("text"))
    for block in map(as_dict, blocks):
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            yield block["text"]
        else:
            yield SkippedRecord(reason=HIDDEN)


def _claude_attachments(message: dict[str, Any]) -> Iterator[str | SkippedRecord]:
    """Yield the names and texts of attachments, then the names of files.

    An attachment has the text that was pasted or extracted from a file. If the text is too long, a
    SkippedRecord precedes its beginning. A file has only a name. It's left out if an attachment has
    the same name.
    """
    attachment_names = {""}
    for attachment in map(as_dict, as_list(message.get("attachments"))):
        if not attachment:
            continue
        name = str(attachment.get("file_name") or "")
        attachment_names.add(name)
        yield f"[attachment: {name}]" if name else "[attachment]"
        text = as_text(attachment.get("extracted_content"))
        if len(text) > ATTACHMENT_CHARS:
            yield SkippedRecord(reason=LONG_ATTACHMENT)
            text = text[:ATTACHMENT_CHARS] + " […]"
        yield text
    for file in map(as_dict, as_list(message.get("files"))):
        name = str(file.get("file_name") or "")
        if name not in attachment_names:
            yield f"[file: {name}]"
