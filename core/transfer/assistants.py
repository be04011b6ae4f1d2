"""The data exports of ChatGPT and of Claude, both a `conversations.json`, of the shapes until 2026. What their pages do
not show (system prompts, tools, thoughts) is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from core.store.archive import Skipped, TransferRecord
from core.transfer.formats import (
    HIDDEN,
    SHAPELESS,
    Choices,
    conversation_of,
    from_seconds,
    from_text,
    json_values,
    listed,
    mapping,
    record_of,
    text_of,
)
from core.types import Address, Role

LONG = "attachments of which only the beginning was taken"
ATTACHMENT_CHARS = 100_000

_READERS = ("all", "python")
_DOCUMENTS = "canmore."
"""Recipients whose messages a person sees: everybody, code that was run, documents that were written."""
_UNSHOWN = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context")
_MEDIA = ("image", "audio", "video")
_CLAUDE_ROLES: dict[str, Role] = {"human": "user", "user": "user", "assistant": "assistant"}


def read_chatgpt(stream: BinaryIO, title: str, choices: Choices) -> Iterator[TransferRecord | Skipped]:
    """Of each tree of messages, the path to its current node."""
    for _, value in json_values(stream, title, {"item"}):
        values = mapping(value)
        if not isinstance(values.get("mapping"), dict):
            yield Skipped(reason=SHAPELESS)
            continue
        nodes = {key: node for key, node in values["mapping"].items() if isinstance(node, dict)}
        path = _path(nodes, values.get("current_node"))
        number = str(values.get("conversation_id") or values.get("id") or (path[0] if path else ""))
        conversation = conversation_of(Address(platform="chatgpt", chat_id=number), choices, values.get("title"))
        at = from_seconds(values.get("create_time"))
        for key in path:
            message = nodes[key].get("message")
            if isinstance(message, dict):
                at = from_seconds(message.get("create_time")) or at
                role: Role = "user" if mapping(message.get("author")).get("role") == "user" else "assistant"
                text = _shown(message)
                identity = str(message.get("id") or key)
                yield Skipped(reason=HIDDEN) if text is None else record_of(conversation, role, text, at, identity)


def _path(nodes: dict[str, Any], current: Any) -> list[str]:
    """Keys from the root to the current node; to the last leaf where no current node is named."""
    if not isinstance(current, str) or current not in nodes:
        current = next((key for key in reversed(nodes) if not nodes[key].get("children")), None)
    path: dict[str, None] = {}
    while isinstance(current, str) and current in nodes and current not in path:
        path[current] = None
        current = nodes[current].get("parent")
    return list(path)[::-1]


def _shown(message: dict[str, Any]) -> str | None:
    """What ChatGPT's page shows of a message; None where it shows nothing."""
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
        return None
    names = (mapping(attachment).get("name") for attachment in listed(metadata.get("attachments")))
    parts = [*(f"[file: {name}]" for name in names if name), *_parts(content, recipient)]
    return "\n".join(part for part in parts if part.strip())


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


def read_claude(stream: BinaryIO, title: str, choices: Choices) -> Iterator[TransferRecord | Skipped]:
    """Text blocks and the text of attachments."""
    for _, value in json_values(stream, title, {"item"}):
        values = mapping(value)
        if not isinstance(values.get("chat_messages"), list):
            yield Skipped(reason=SHAPELESS)
            continue
        address = Address(platform="claude", chat_id=str(values.get("uuid") or "unknown"))
        conversation = conversation_of(address, choices, values.get("name"))
        at = from_text(values.get("created_at"))
        for place, message in enumerate(values["chat_messages"]):
            role = _CLAUDE_ROLES.get(str(mapping(message).get("sender")))
            if role is None:
                yield Skipped(reason=SHAPELESS)
                continue
            at = from_text(message.get("created_at")) or at
            found = [*_attached(message), *_said(message)]
            yield from (part for part in found if isinstance(part, Skipped))
            text = "\n".join(part for part in found if isinstance(part, str) and part.strip())
            yield record_of(conversation, role, text, at, str(message.get("uuid") or place))


def _said(message: dict[str, Any]) -> Iterator[str | Skipped]:
    """The text blocks. The flat `text` has sentences like "This block is not supported" between them, so it is read
    only where there are no blocks, as in exports of 2024."""
    blocks = listed(message.get("content"))
    if not blocks:
        yield text_of(message.get("text"))
    for block in map(mapping, blocks):
        is_text = block.get("type") == "text" and isinstance(block.get("text"), str)
        yield block["text"] if is_text else Skipped(reason=HIDDEN)


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
