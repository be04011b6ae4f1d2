"""ChatGPT's data export (`conversations.json`), of the shape until 2026: of each tree of messages, the path to its
current node. What the page does not show (system prompts, tools, thoughts) is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from core.store.archive import Skipped, TransferRecord
from core.transfer.formats import EMPTY, HIDDEN, Choices, Conversation, from_seconds, items, listed, mapping, text_of
from core.types import Address, Role

_READERS = ("all", "python")
_DOCUMENTS = "canmore."
"""Recipients whose messages a person sees: everybody, code that was run, documents that were written."""
_UNSHOWN = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context")
_MEDIA = ("image", "audio", "video")


def read(stream: BinaryIO, title: str, choices: Choices) -> Iterator[TransferRecord | Skipped]:
    for conversation in items(stream, title, "mapping", dict):
        yield from [conversation] if isinstance(conversation, Skipped) else _conversation(conversation, choices)


def _conversation(values: dict[str, Any], choices: Choices) -> Iterator[TransferRecord | Skipped]:
    nodes = {key: node for key, node in values["mapping"].items() if isinstance(node, dict)}
    path = _path(nodes, values.get("current_node"))
    number = str(values.get("conversation_id") or values.get("id") or (path[0] if path else ""))
    conversation = Conversation(
        name=f"chatgpt:{number}",
        address=Address(platform="chatgpt", chat_id=number),
        choices=choices,
        title=text_of(values.get("title")),
    )
    at = from_seconds(values.get("create_time"))
    for key in path:
        message = nodes[key].get("message")
        if isinstance(message, dict):
            at = from_seconds(message.get("create_time")) or at
            text = _text(message)
            role: Role = "user" if mapping(message.get("author")).get("role") == "user" else "assistant"
            message_id = str(message.get("id") or key)
            yield text if isinstance(text, Skipped) else conversation.record(role, text, at, message_id)


def _path(nodes: dict[str, Any], current: Any) -> list[str]:
    """Keys from the root to the current node; to the last leaf where no current node is named."""
    if not isinstance(current, str) or current not in nodes:
        current = next((key for key in reversed(nodes) if not nodes[key].get("children")), None)
    path: dict[str, None] = {}
    while isinstance(current, str) and current in nodes and current not in path:
        path[current] = None
        current = nodes[current].get("parent")
    return list(path)[::-1]


def _text(message: dict[str, Any]) -> str | Skipped:
    """What the page shows of a message, or why it does not show it."""
    author, metadata, content = (mapping(message.get(key)) for key in ("author", "metadata", "content"))
    role = author.get("role")
    recipient = str(message.get("recipient") or "all")
    is_shown = (
        role in ("user", "assistant")
        and content.get("content_type") not in _UNSHOWN
        and not metadata.get("is_visually_hidden_from_conversation")
        and (role == "user" or recipient in _READERS or recipient.startswith(_DOCUMENTS))
    )
    if not is_shown:
        return Skipped(reason=HIDDEN)
    names = (mapping(attachment).get("name") for attachment in listed(metadata.get("attachments")))
    parts = [*(f"[file: {name}]" for name in names if name), *_parts(content, recipient)]
    return "\n".join(part for part in parts if part.strip()) or Skipped(reason=EMPTY)


def _parts(content: dict[str, Any], recipient: str) -> Iterator[str]:
    text = text_of(content.get("text"))
    if content.get("content_type") == "code" and text.strip():
        language = str(content.get("language") or "").replace("unknown", "")
        yield text if recipient.startswith(_DOCUMENTS) else f"```{language}\n{text}\n```"
        return
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else [text]:
        said = part if isinstance(part, str) else mapping(part).get("text")
        kind = str(mapping(part).get("content_type"))
        yield said if isinstance(said, str) else next((f"[{medium}]" for medium in _MEDIA if medium in kind), "")
