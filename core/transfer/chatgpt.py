"""ChatGPT's data export (`conversations.json`) as lines of a chronicle: of each tree, the path to its current node.

OpenAI publishes no description; the shape is that of exports until 2026 (a mapping of nodes with parent, children and
message). What the page does not show (system prompts, tools, thoughts, abandoned answers) is left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO

from core.transfer import json_stream
from core.transfer.record import TITLE_CHARS, Choices, Skipped, TransferRecord, from_seconds
from core.types import Address

HIDDEN = "hidden messages of the system"
TOOLS = "what tools were asked and answered"
THOUGHTS = "thoughts of the model"
INSTRUCTIONS = "copies of the custom instructions"
ABANDONED = "messages that were edited away or answered anew"
EMPTY = "messages without text"
TIMELESS = "messages without a time"
SHAPELESS = "entries that are no conversations"

PLATFORM = "chatgpt"
_READERS = ("all", "python")
_DOCUMENTS = "canmore."
"""Recipients whose messages a person sees: everybody, the code that was run, and documents that were written."""
_THOUGHTS = ("thoughts", "reasoning_recap")
_INSTRUCTIONS = ("user_editable_context", "model_editable_context")
_POINTERS = {
    "image_asset_pointer": "[image]",
    "audio_asset_pointer": "[audio]",
    "video_container_asset_pointer": "[video]",
    "real_time_user_audio_video_asset_pointer": "[audio]",
}


def read(stream: BinaryIO, name: str, choices: Choices) -> Iterator[TransferRecord | Skipped]:
    """Everything in the file, one conversation in memory at a time; `name` is the file's, for errors."""
    for conversation in json_stream.conversations(stream, name):
        if isinstance(conversation, dict) and isinstance(conversation.get("mapping"), dict):
            yield from _conversation(conversation, choices)
        else:
            yield Skipped(reason=SHAPELESS)


def _conversation(conversation: dict[str, Any], choices: Choices) -> Iterator[TransferRecord | Skipped]:
    mapping = {key: node for key, node in conversation["mapping"].items() if isinstance(node, dict)}
    path = _path(mapping, conversation.get("current_node"))
    number = conversation.get("conversation_id") or conversation.get("id") or (path[0] if path else "")
    title = conversation.get("title")
    at = from_seconds(conversation.get("create_time"))
    for key in path:
        message = mapping[key].get("message")
        if not isinstance(message, dict):
            continue
        at = from_seconds(message.get("create_time")) or at
        text = _text(message)
        if isinstance(text, Skipped):
            yield text
        elif at is None:
            yield Skipped(reason=TIMELESS)
        else:
            yield TransferRecord(
                session=f"chatgpt:{number}",
                title=title[:TITLE_CHARS] if isinstance(title, str) and title.strip() else None,
                address=Address(platform=PLATFORM, chat_id=str(number)),
                scope=choices.scope,
                role="user" if _role(message) == "user" else "assistant",
                text=text,
                at=at,
                id=str(message.get("id") or key),
            )
    for key in mapping.keys() - set(path):
        message = mapping[key].get("message")
        if isinstance(message, dict) and isinstance(_text(message), str):
            yield Skipped(reason=ABANDONED)


def _path(mapping: dict[str, Any], current: Any) -> list[str]:
    """Keys from the root to the current node; to the latest leaf where no current node is named."""
    if not isinstance(current, str) or current not in mapping:
        leaves = [key for key, node in mapping.items() if not node.get("children")]
        current = max(leaves, key=lambda key: _time(mapping[key]), default=None)
    path: list[str] = []
    met: set[str] = set()
    while isinstance(current, str) and current in mapping and current not in met:
        path.append(current)
        met.add(current)
        current = mapping[current].get("parent")
    return path[::-1]


def _time(node: dict[str, Any]) -> float:
    message = node.get("message")
    at: datetime | None = from_seconds(message.get("create_time")) if isinstance(message, dict) else None
    return at.timestamp() if at else 0.0


def _role(message: dict[str, Any]) -> object:
    author = message.get("author")
    return author.get("role") if isinstance(author, dict) else None


def _text(message: dict[str, Any]) -> str | Skipped:
    """What the page shows of a message, or what it is that it does not show."""
    role, metadata = _role(message), message.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    content = message.get("content")
    content = content if isinstance(content, dict) else {}
    kind = content.get("content_type")
    recipient = str(message.get("recipient") or "all")
    if kind in _INSTRUCTIONS:
        return Skipped(reason=INSTRUCTIONS)
    if kind in _THOUGHTS:
        return Skipped(reason=THOUGHTS)
    if role == "tool":
        return Skipped(reason=TOOLS)
    if role not in ("user", "assistant") or metadata.get("is_visually_hidden_from_conversation"):
        return Skipped(reason=HIDDEN)
    if role == "assistant" and recipient not in _READERS and not recipient.startswith(_DOCUMENTS):
        return Skipped(reason=TOOLS)
    text = "\n".join(part for part in [*_attachments(metadata), *_parts(content, recipient)] if part.strip())
    return text if text else Skipped(reason=EMPTY)


def _parts(content: dict[str, Any], recipient: str) -> Iterator[str]:
    parts, text = content.get("parts"), content.get("text")
    if content.get("content_type") == "code" and isinstance(text, str) and text.strip():
        language = str(content.get("language") or "")
        if recipient.startswith(_DOCUMENTS):
            yield text
        else:
            yield f"```{'' if language == 'unknown' else language}\n{text}\n```"
        return
    for part in parts if isinstance(parts, list) else [text]:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            said = part.get("text")
            yield said if isinstance(said, str) else _POINTERS.get(str(part.get("content_type")), "")


def _attachments(metadata: dict[str, Any]) -> Iterator[str]:
    attachments = metadata.get("attachments")
    for attachment in attachments if isinstance(attachments, list) else ():
        if isinstance(attachment, dict) and attachment.get("name"):
            yield f"[file: {attachment['name']}]"
