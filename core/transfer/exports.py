"""What messengers and assistants export as JSON: Telegram Desktop's `result.json`, messages of a Discord data package,
`conversations.json` of ChatGPT and of Claude (shapes until 2026; what their pages do not show is counted).

Telegram's format: https://core.telegram.org/import-export and export_output_json.cpp of Telegram Desktop. In a Discord
package messages/index.json names the channels; in messages/c<id>/ are channel.json and messages.json, newest first.
Names of its folders differ between years and languages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from core.errors import HistoryError
from core.store.archive import Conversation, Skipped, TransferRecord
from core.transfer import formats
from core.transfer.formats import HIDDEN, SHAPELESS, Choices, json_values, listed, mapping, record_of, text_of
from core.types import Address, Role

SERVICE = "service messages (joined, pinned, called, …)"
BROKEN = "channels whose messages are broken (from some place on)"
LONG = "attachments of which only the beginning was taken"
ATTACHMENT_CHARS = 100_000

_CHATS = ("", "chats.list.item.", "left_chats.list.item.")
_HEAD = ("name", "type", "id")
_DELETED = "Deleted account"
_TITLES = {"saved_messages": "Saved Messages", "replies": "Replies", "personal_chat": _DELETED}
_CHANNELS = ("private_supergroup", "public_supergroup", "private_channel", "public_channel")
_CHANNEL_OFFSET = 1_000_000_000_000
_FOLDER = re.compile(r"c?\d{1,20}")
"""Of a Discord channel. Folders above have names of the person's language."""
_READERS = ("all", "python")
_DOCUMENTS = "canmore."
"""Recipients whose messages a person sees: everybody, code that was run, documents that were written."""
_UNSHOWN = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context")
_MEDIA = ("image", "audio", "video")
_CLAUDE_ROLES: dict[str, Role] = {"human": "user", "user": "user", "assistant": "assistant"}


def read_telegram(stream: BinaryIO, title: str, choices: Choices) -> Iterator[TransferRecord | Skipped]:
    """Each chat is one session, one message in memory at a time. The bot of a chat with one is the assistant."""
    places = {f"{chat}{key}" for chat in _CHATS for key in (*_HEAD, "messages.item")}
    starts = [chat.rstrip(".") for chat in _CHATS]
    head: dict[str, Any] = {}
    conversation: Conversation | None = None
    for place, value in json_values(stream, title, places, starts):
        if place in starts:
            head, conversation = {}, None
        elif place.endswith("messages.item"):
            conversation = conversation or _conversation(head, choices)
            bot = f"user{head.get('id')}" if head.get("type") == "bot_chat" else ""
            yield _telegram_record(conversation, choices, value, bot)
        else:
            head[place.rpartition(".")[2]] = value


def _conversation(head: dict[str, Any], choices: Choices) -> Conversation:
    """Bare ids become those of the Bot API: groups are negative, supergroups and channels begin with -100."""
    kind, bare = str(head.get("type")), head.get("id")
    number = abs(bare) if isinstance(bare, int) else 0
    if kind in _CHANNELS:
        number = -(number if number > _CHANNEL_OFFSET else _CHANNEL_OFFSET + number)
    elif kind == "private_group":
        number = -number
    name = head.get("name") or _TITLES.get(kind)
    address = Address(platform="telegram", chat_id=str(number))
    return formats.conversation_of(address, choices, name)


def _telegram_record(conversation: Conversation, choices: Choices, message: Any, bot: str) -> TransferRecord | Skipped:
    if not isinstance(message, dict) or not isinstance(message.get("id"), int):
        return Skipped(reason=SHAPELESS)
    if message.get("type") in ("service", "unsupported"):
        return Skipped(reason=SERVICE)
    # Exports from before 2022 have only the local time of the computer that made them.
    at = formats.from_seconds(message.get("date_unixtime")) or formats.from_text(message.get("date"), choices.zone)
    sender, number = str(message.get("from") or _DELETED), str(message.get("from_id", ""))
    is_assistant = number == bot or formats.is_among(choices.assistants, sender, number, number.removeprefix("user"))
    role: Role = "assistant" if is_assistant else "user"
    return record_of(conversation, role, _text(message), at, str(message["id"]), sender)


def _text(message: dict[str, Any]) -> str:
    written = message.get("text")
    said, attached = _joined(message.get("text_entities") if written is None else written), _attached(message)
    forwarded = message.get("forwarded_from")
    lines = [f"[forwarded from {forwarded}]", *attached] if forwarded else attached
    if said.strip():
        return "\n".join([*lines, said])
    return "\n".join(lines) if attached else ""


def _joined(text: Any) -> str:
    """A text, or its pieces; a link behind words is kept, because people look for it."""
    pieces = []
    for piece in text if isinstance(text, list) else [text]:
        if isinstance(piece, str):
            pieces.append(piece)
        elif said := text_of(mapping(piece).get("text")):
            href = text_of(piece.get("href"))
            pieces.append(said if href in said else f"{said} ({href})")
    return "".join(pieces)


def _attached(message: dict[str, Any]) -> list[str]:
    """A line for each thing that came along: ``[photo: boat.png]``."""
    # ``voice_message``, ``video_file``
    kind = str(message.get("media_type") or "file").removesuffix("_file").replace("_", " ")
    card, point = mapping(message.get("contact_information")), mapping(message.get("location_information"))
    where = f"{point.get('latitude')}, {point.get('longitude')}" if point else ""
    poll = mapping(message.get("poll"))
    answers = " / ".join(str(mapping(answer).get("text")) for answer in listed(poll.get("answers")))
    names = {
        "photo": "photo" in message and _file_name(message["photo"]),
        kind: ("file" in message or "media_type" in message) and _document_name(message),
        "contact": card and _joined_values(" ", card, "first_name", "last_name", "phone_number"),
        "location": (point or "place_name" in message)
        and _joined_values(", ", {**message, "where": where}, "place_name", "address", "where"),
        "poll": poll and f"{poll.get('question', '')} — {answers}",
    }
    return [f"[{kind}: {name}]" if name else f"[{kind}]" for kind, name in names.items() if isinstance(name, str)]


def _document_name(message: dict[str, Any]) -> str:
    song = _joined_values(" – ", message, "performer", "title")
    return str(message.get("sticker_emoji") or song or message.get("file_name") or _file_name(message.get("file")))


def _joined_values(separator: str, values: dict[str, Any], *keys: str) -> str:
    return separator.join(str(values[key]) for key in keys if values.get(key))


def _file_name(path: Any) -> str:
    """Empty for a file that was not exported, which has a sentence in brackets instead."""
    return "" if "(File " in text_of(path) else PurePosixPath(text_of(path)).name


def is_channel(path: Path) -> bool:
    """Whether a file has the messages of a channel in a Discord data package."""
    is_named = path.name == "messages.json" and _FOLDER.fullmatch(path.parent.name) is not None
    return is_named and path.with_name("channel.json").is_file()


def read_discord(stream: BinaryIO, title: str, choices: Choices) -> Iterator[TransferRecord | Skipped]:
    """Everything in one channel, which is in memory whole, in the order of time."""
    folder = Path(stream.name).parent
    channel, labels = _json(folder / "channel.json"), _json(folder.parent / "index.json")
    users = map(_json, folder.parent.parent.glob("*/user.json"))
    owner = next((str(one) for user in users if (one := user.get("global_name") or user.get("username"))), None)
    number = str(channel.get("id") or folder.name.lstrip("c"))
    # As the index names the channel ("general in Server", "Direct Message with ana#0"), else as the channel does.
    name = text_of(labels.get(number)).removesuffix("#0")
    if not name.strip() or name in ("None", "Unknown channel"):
        named = channel.get("name"), mapping(channel.get("guild")).get("name")
        name = " in ".join(str(word) for word in named if word)
    conversation = formats.conversation_of(Address(platform="discord", chat_id=number), choices, name)
    records = []
    try:
        for _, row in json_values(stream, title, {"item"}):
            record = _discord_record(conversation, mapping(row), owner)
            if isinstance(record, TransferRecord):
                records.append(record)
            else:
                yield record
    except HistoryError:
        yield Skipped(reason=BROKEN)
    yield from sorted(records, key=lambda record: record.at)


def _discord_record(conversation: Conversation, row: dict[str, Any], owner: str | None) -> TransferRecord | Skipped:
    number, written = str(row.get("ID") or ""), row.get("Contents")
    if not number:
        return Skipped(reason=SHAPELESS)
    # Attachments are addresses with spaces between them. Contents are numbers where nothing but a number was written.
    names = [Path(url.partition("?")[0]).name for url in text_of(row.get("Attachments")).split()]
    lines = [*(f"[file: {name}]" for name in names), "" if written is None else str(written)]
    text = "\n".join(line for line in lines if line.strip())
    return record_of(conversation, "user", text, formats.from_text(row.get("Timestamp")), number, owner)


def _json(path: Path) -> dict[str, Any]:
    """A small JSON object, empty where it cannot be read: only names depend on it."""
    try:
        with path.open("rb") as stream:
            return mapping(json.loads(stream.read(formats.VALUE_BYTES)))
    except (OSError, ValueError, RecursionError):
        return {}


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
        address = Address(platform="chatgpt", chat_id=number)
        conversation = formats.conversation_of(address, choices, values.get("title"))
        at = formats.from_seconds(values.get("create_time"))
        for key in path:
            message = nodes[key].get("message")
            if isinstance(message, dict):
                at = formats.from_seconds(message.get("create_time")) or at
                role: Role = "user" if mapping(message.get("author")).get("role") == "user" else "assistant"
                text = _chatgpt_text(message)
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


def _chatgpt_text(message: dict[str, Any]) -> str | None:
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
    parts = [*(f"[file: {name}]" for name in names if name), *_chatgpt_parts(content, recipient)]
    return "\n".join(part for part in parts if part.strip())


def _chatgpt_parts(content: dict[str, Any], recipient: str) -> Iterator[str]:
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
        conversation = formats.conversation_of(address, choices, values.get("name"))
        at = formats.from_text(values.get("created_at"))
        for place, message in enumerate(values["chat_messages"]):
            role = _CLAUDE_ROLES.get(str(mapping(message).get("sender")))
            if role is None:
                yield Skipped(reason=SHAPELESS)
                continue
            at = formats.from_text(message.get("created_at")) or at
            found = [*_claude_attachments(message), *_claude_text(message)]
            yield from (part for part in found if isinstance(part, Skipped))
            text = "\n".join(part for part in found if isinstance(part, str) and part.strip())
            yield record_of(conversation, role, text, at, str(message.get("uuid") or place))


def _claude_text(message: dict[str, Any]) -> Iterator[str | Skipped]:
    """The text blocks. The flat `text` has sentences like "This block is not supported" between them, so it is read
    only where there are no blocks, as in exports of 2024."""
    blocks = listed(message.get("content"))
    if not blocks:
        yield text_of(message.get("text"))
    for block in map(mapping, blocks):
        is_text = block.get("type") == "text" and isinstance(block.get("text"), str)
        yield block["text"] if is_text else Skipped(reason=HIDDEN)


def _claude_attachments(message: dict[str, Any]) -> Iterator[str | Skipped]:
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
