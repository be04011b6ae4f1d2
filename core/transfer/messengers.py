"""Reads the exports of messengers: Telegram Desktop's `result.json` and a Discord data package.

Telegram's format is described at https://core.telegram.org/import-export and in
export_output_json.cpp of Telegram Desktop. In a Discord package, messages/index.json names the
channels. Each channel has a folder messages/c<id>/ with channel.json and messages.json, newest
message first. The names of Discord's folders differ between years and languages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from core.errors import HistoryError, word_clause
from core.store.archive import SkippedRecord, TransferConversation, TransferRecord
from core.transfer.formats import (
    UNKNOWN_SHAPE,
    ImportOptions,
    as_dict,
    as_list,
    as_text,
    build_conversation,
    build_record,
    matches_any_name,
    parse_iso,
    parse_seconds,
)
from core.transfer.json_stream import MAX_VALUE_BYTES, json_values
from core.types import Address, Role

# The reasons to skip a record. Reports show them after a number.
SERVICE_MESSAGE = word_clause("import_service_messages")
BROKEN_CHANNEL = word_clause("import_damaged_channel")

# The JSON paths of chats: in the export of a single chat, in the list of all chats, and in the list
# of chats that the person has left.
_CHATS = ("", "chats.list.item.", "left_chats.list.item.")
# The fields of a chat that come before its messages.
_CHAT_FIELDS = ("name", "type", "id")
_DELETED_ACCOUNT = word_clause("import_deleted_account")
# Titles of chats without a name, by type.
_TITLES = {
    "saved_messages": word_clause("import_saved_messages"),
    "replies": word_clause("import_replies"),
    "personal_chat": _DELETED_ACCOUNT,
}
_CHANNEL_TYPES = (
    "private_supergroup",
    "public_supergroup",
    "private_channel",
    "public_channel",
)
# In the Bot API, the id of a supergroup or channel is -(this + the exported id).
_CHANNEL_OFFSET = 1_000_000_000_000
# The folder of a Discord channel: "c123456789".
_CHANNEL_FOLDER = re.compile(r"c?\d{1,20}")


def read_telegram(
    stream: BinaryIO, title: str, options: ImportOptions
) -> Iterator[TransferRecord | SkippedRecord]:
    """Yield the messages of all chats, with one message in memory at a time.

    Each chat becomes one conversation. In a chat with a bot, the bot is the assistant.
    """
    paths = set()
    for chat in _CHATS:
        paths |= {f"{chat}{key}" for key in (*_CHAT_FIELDS, "messages.item")}
    chat_starts = [chat.rstrip(".") for chat in _CHATS]
    chat_fields: dict[str, Any] = {}
    conversation: TransferConversation | None = None
    for path, value in json_values(stream, title, paths, chat_starts):
        if path in chat_starts:
            chat_fields = {}
            conversation = None
        elif path.endswith("messages.item"):
            if conversation is None:
                conversation = _telegram_conversation(chat_fields, options)
            bot_id = ""
            if chat_fields.get("type") == "bot_chat":
                bot_id = f"user{chat_fields.get('id')}"
            yield _telegram_record(conversation, options, value, bot_id)
        else:
            chat_fields[path.rpartition(".")[2]] = value


def _telegram_conversation(
    chat_fields: dict[str, Any], options: ImportOptions
) -> TransferConversation:
    """Return the conversation for a chat, with the chat's id in the Bot API.

    In the Bot API, ids of groups are negative. Ids of supergroups and channels begin with -100.
    """
    chat_type = str(chat_fields.get("type"))
    exported_id = chat_fields.get("id")
    chat_id = abs(exported_id) if isinstance(exported_id, int) else 0
    if chat_type in _CHANNEL_TYPES:
        if chat_id <= _CHANNEL_OFFSET:
            chat_id += _CHANNEL_OFFSET
        chat_id = -chat_id
    elif chat_type == "private_group":
        chat_id = -chat_id
    name = chat_fields.get("name") or _TITLES.get(chat_type)
    address = Address(platform="telegram", chat_id=str(chat_id))
    return build_conversation(address, options, name)


def _telegram_record(
    conversation: TransferConversation, options: ImportOptions, message: Any, bot_id: str
) -> TransferRecord | SkippedRecord:
    """Return the record of a message.

    Service messages and entries in an unknown format become skipped records.
    """
    if not isinstance(message, dict) or not isinstance(message.get("id"), int):
        return SkippedRecord(reason=UNKNOWN_SHAPE)
    if message.get("type") in ("service", "unsupported"):
        return SkippedRecord(reason=SERVICE_MESSAGE)
    # Exports from before 2022 only have the local time of the computer that made them.
    at = parse_seconds(message.get("date_unixtime")) or parse_iso(message.get("date"), options.zone)
    sender = str(message.get("from") or _DELETED_ACCOUNT)
    sender_id = str(message.get("from_id", ""))
    is_assistant = sender_id == bot_id or matches_any_name(
        options.assistant_names, sender, sender_id, sender_id.removeprefix("user")
    )
    role: Role = "assistant" if is_assistant else "user"
    return build_record(conversation, role, _telegram_text(message), at, str(message["id"]), sender)


def _telegram_text(message: dict[str, Any]) -> str:
    """Return the text of a message, after a line for its forward and one for each attachment.

    The result is empty for a forward without text or attachments.
    """
    content = message.get("text")
    text = _join_pieces(message.get("text_entities") if content is None else content)
    attachments = _telegram_attachments(message)
    author = message.get("forwarded_from")
    lines = [f"[forwarded from {author}]", *attachments] if author else attachments
    if text.strip():
        return "\n".join([*lines, text])
    return "\n".join(lines) if attachments else ""


def _join_pieces(content: Any) -> str:
    """Return the text of a message's content, which is a string or a list of formatted pieces.

    A link's URL is added after the link text, so that people can search for it.
    """
    texts = []
    for piece in content if isinstance(content, list) else [content]:
        if isinstance(piece, str):
            texts.append(piece)
            continue
        fields = as_dict(piece)
        text = as_text(fields.get("text"))
        url = as_text(fields.get("href"))
        if text:
            texts.append(text if url in text else f"{text} ({url})")
    return "".join(texts)


def _telegram_attachments(message: dict[str, Any]) -> list[str]:
    """Return a line for each attachment: ``[photo: boat.png]``."""
    lines = []
    if "photo" in message:
        lines.append(_attachment_line("photo", _file_name(message["photo"])))
    if "file" in message or "media_type" in message:
        # Types are written like "voice_message" and "video_file".
        media_type = str(message.get("media_type") or "file")
        kind = media_type.removesuffix("_file").replace("_", " ")
        lines.append(_attachment_line(kind, _document_name(message)))
    contact = as_dict(message.get("contact_information"))
    if contact:
        name = _join_values(" ", contact, "first_name", "last_name", "phone_number")
        lines.append(_attachment_line("contact", name))
    location = as_dict(message.get("location_information"))
    if location or "place_name" in message:
        point = f"{location.get('latitude')}, {location.get('longitude')}" if location else ""
        place = {**message, "point": point}
        name = _join_values(", ", place, "place_name", "address", "point")
        lines.append(_attachment_line("location", name))
    poll = as_dict(message.get("poll"))
    if poll:
        choices = [str(as_dict(choice).get("text")) for choice in as_list(poll.get("answers"))]
        name = f"{poll.get('question', '')} — {' / '.join(choices)}"
        lines.append(_attachment_line("poll", name))
    return lines


def _attachment_line(kind: str, name: str) -> str:
    return f"[{kind}: {name}]" if name else f"[{kind}]"


def _document_name(message: dict[str, Any]) -> str:
    """Return the emoji of a sticker, the title of a song, or the name of a file."""
    song = _join_values(" – ", message, "performer", "title")
    return str(
        message.get("sticker_emoji")
        or song
        or message.get("file_name")
        or _file_name(message.get("file"))
    )


def _join_values(separator: str, values: dict[str, Any], *keys: str) -> str:
    """Return the values of these keys as one text. Missing and empty values are left out."""
    return separator.join(str(values[key]) for key in keys if values.get(key))


def _file_name(path: Any) -> str:
    """Return the name of an exported file, or an empty string if the file wasn't exported.

    Telegram then writes a sentence such as "(File not included.)" instead of the path.
    """
    text = as_text(path)
    return "" if "(File " in text else PurePosixPath(text).name


def is_channel_file(path: Path) -> bool:
    """Return whether a file contains the messages of a channel in a Discord data package."""
    is_in_channel_folder = _CHANNEL_FOLDER.fullmatch(path.parent.name) is not None
    return (
        path.name == "messages.json"
        and is_in_channel_folder
        and path.with_name("channel.json").is_file()
    )


def read_discord(
    stream: BinaryIO, title: str, options: ImportOptions
) -> Iterator[TransferRecord | SkippedRecord]:
    """Yield the messages of one channel, oldest first. All of them are in memory at once."""
    folder = Path(stream.name).parent
    conversation = _discord_conversation(folder, options)
    sender = _discord_owner(folder.parent.parent)
    records = []
    try:
        for _, row in json_values(stream, title, {"item"}):
            record = _discord_record(conversation, as_dict(row), sender)
            if isinstance(record, TransferRecord):
                records.append(record)
            else:
                yield record
    except HistoryError:
        yield SkippedRecord(reason=BROKEN_CHANNEL)
    yield from sorted(records, key=lambda record: record.at)


def _discord_conversation(folder: Path, options: ImportOptions) -> TransferConversation:
    """Return the conversation for a channel.

    The title is the label in index.json, such as "general in Server" or "Direct Message with
    ana#0". Without a label, the title is the name in channel.json.
    """
    channel = _load_json(folder / "channel.json")
    labels = _load_json(folder.parent / "index.json")
    channel_id = str(channel.get("id") or folder.name.lstrip("c"))
    title = as_text(labels.get(channel_id)).removesuffix("#0")
    if not title.strip() or title in ("None", "Unknown channel"):
        names = (channel.get("name"), as_dict(channel.get("guild")).get("name"))
        title = " in ".join(str(name) for name in names if name)
    return build_conversation(Address(platform="discord", chat_id=channel_id), options, title)


def _discord_owner(package: Path) -> str | None:
    """Return the name of the person whose data package this is, or None if it's unknown."""
    for path in package.glob("*/user.json"):
        user = _load_json(path)
        name = user.get("global_name") or user.get("username")
        if name:
            return str(name)
    return None


def _discord_record(
    conversation: TransferConversation, row: dict[str, Any], sender: str | None
) -> TransferRecord | SkippedRecord:
    """Return the record of a message, or a skipped record if the message has no id.

    The role is always "user", because the package contains only messages of its owner.
    """
    message_id = str(row.get("ID") or "")
    if not message_id:
        return SkippedRecord(reason=UNKNOWN_SHAPE)
    # Attachments are URLs that are separated by spaces.
    lines = []
    for url in as_text(row.get("Attachments")).split():
        lines.append(f"[file: {Path(url.partition('?')[0]).name}]")
    # If the text of a message is a number, the JSON value is a number instead of a string.
    contents = row.get("Contents")
    if contents is not None:
        lines.append(str(contents))
    text = "\n".join(line for line in lines if line.strip())
    at = parse_iso(row.get("Timestamp"))
    return build_record(conversation, "user", text, at, message_id, sender)


def _load_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a small file, or an empty object if the file can't be read.

    Such files contain only names and titles, so an error isn't reported.
    """
    try:
        with path.open("rb") as stream:
            return as_dict(json.loads(stream.read(MAX_VALUE_BYTES)))
    except (OSError, ValueError, RecursionError):
        return {}
