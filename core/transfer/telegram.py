"""Telegram Desktop's export in JSON (`result.json`), of one chat or of the whole account, as lines of a chronicle.

The format: https://core.telegram.org/import-export and export_output_json.cpp of Telegram Desktop. A chat becomes one
session at the chat's own address; people are users with their names. The bot of a chat with a bot, and whoever was
named as the assistant, is the assistant.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from core.transfer import json_stream
from core.transfer.json_stream import Event
from core.transfer.record import TITLE_CHARS, Choices, Skipped, TransferRecord, from_seconds, from_text
from core.types import Address

SERVICE = "service messages (joined, pinned, called, …)"
UNSUPPORTED = "messages that Telegram did not export (unsupported)"
EMPTY = "messages without text or media"
TIMELESS = "messages without a date"
SHAPELESS = "entries that are no messages"

_PLACES = ("chats", "left_chats")
_TITLES = {"saved_messages": "Saved Messages", "replies": "Replies"}
_GROUPS = ("private_group",)
_CHANNELS = ("private_supergroup", "public_supergroup", "private_channel", "public_channel")
_CHANNEL_OFFSET = 1_000_000_000_000
_MEDIA = {
    "sticker": "sticker",
    "video_message": "video message",
    "voice_message": "voice message",
    "animation": "animation",
    "video_file": "video",
    "audio_file": "audio",
}
_DELETED = "Deleted account"


def read(stream: BinaryIO, name: str, choices: Choices) -> Iterator[TransferRecord | Skipped]:
    """Everything in the file, one message in memory at a time; `name` is the file's, for errors."""
    rest = json_stream.events(stream, name)
    first = next(rest)
    if first[0] == "start_map":
        yield from _chat(rest, choices)


def _chat(rest: Iterator[Event], choices: Choices) -> Iterator[TransferRecord | Skipped]:
    """A chat, or the whole account, whose lists of chats stand where a chat has its messages."""
    head: dict[str, Any] = {}
    for key, event in json_stream.fields(rest):
        if key in ("name", "type", "id"):
            head[key] = json_stream.value(event, rest)
        elif key == "messages" and event[0] == "start_array":
            chat = _Chat(head, choices)
            for item in json_stream.items(rest):
                yield chat.line(json_stream.value(item, rest))
        elif key in _PLACES and event[0] == "start_map":
            yield from _chats(rest, choices)
        else:
            json_stream.skip(event, rest)


def _chats(rest: Iterator[Event], choices: Choices) -> Iterator[TransferRecord | Skipped]:
    for key, event in json_stream.fields(rest):
        if key != "list" or event[0] != "start_array":
            json_stream.skip(event, rest)
            continue
        for item in json_stream.items(rest):
            if item[0] == "start_map":
                yield from _chat(rest, choices)
            else:
                json_stream.skip(item, rest)


class _Chat:
    """What the messages of one chat share. The export names chats by bare ids; addresses use those of the Bot API:
    groups are negative, supergroups and channels begin with -100."""

    def __init__(self, head: dict[str, Any], choices: Choices) -> None:
        kind, bare = head.get("type"), head.get("id")
        number = abs(bare) if isinstance(bare, int) else 0
        if kind in _CHANNELS:
            number = -(number if number > _CHANNEL_OFFSET else _CHANNEL_OFFSET + number)
        elif kind in _GROUPS:
            number = -number
        self._choices = choices
        self._bot = f"user{bare}" if kind == "bot_chat" else None
        self._address = Address(platform="telegram", chat_id=str(number))
        title = head.get("name") or _TITLES.get(str(kind)) or (_DELETED if kind == "personal_chat" else None)
        self._title = str(title)[:TITLE_CHARS] if title else None

    def line(self, message: Any) -> TransferRecord | Skipped:
        """One message of the export."""
        if not isinstance(message, dict) or not isinstance(message.get("id"), int):
            return Skipped(reason=SHAPELESS)
        if message.get("type") == "service":
            return Skipped(reason=SERVICE)
        if message.get("type") == "unsupported":
            return Skipped(reason=UNSUPPORTED)
        at, text = _moment(message, self._choices), _text(message)
        if at is None:
            return Skipped(reason=TIMELESS)
        if not text.strip():
            return Skipped(reason=EMPTY)
        sender, number = message.get("from") or _DELETED, str(message.get("from_id", ""))
        is_assistant = number == self._bot or self._choices.is_assistant(
            str(sender), number, number.removeprefix("user")
        )
        return TransferRecord(
            session=f"telegram:{self._address.chat_id}",
            title=self._title,
            address=self._address,
            scope=self._choices.scope,
            role="assistant" if is_assistant else "user",
            sender=str(sender),
            text=text,
            at=at,
            id=str(message["id"]),
        )


def _moment(message: dict[str, Any], choices: Choices) -> datetime | None:
    """The exact second; exports from before 2022 have only the local time of the computer that made them."""
    return from_seconds(message.get("date_unixtime")) or from_text(message.get("date"), choices.zone)


def _text(message: dict[str, Any]) -> str:
    """What was written, below lines for what came along."""
    written = message.get("text")
    lines = []
    if forwarded := message.get("forwarded_from"):
        lines.append(f"[forwarded from {forwarded}]")
    lines += _attached(message)
    said = _joined(message.get("text_entities") if written is None else written)
    return "\n".join([*lines, said] if said.strip() else lines if len(lines) > bool(forwarded) else [])


def _joined(text: Any) -> str:
    """A text, or its pieces: plain ones and such with a format. A link behind words is kept, because people look for
    it."""
    pieces = []
    for piece in text if isinstance(text, list) else [text]:
        if isinstance(piece, str):
            pieces.append(piece)
        elif isinstance(piece, dict) and isinstance(piece.get("text"), str):
            pieces.append(piece["text"])
            if isinstance(href := piece.get("href"), str) and href not in piece["text"]:
                pieces.append(f" ({href})")
    return "".join(pieces)


def _attached(message: dict[str, Any]) -> list[str]:
    found = []
    if "photo" in message:
        found.append(_marked("photo", _file_name(message["photo"])))
    if "file" in message or "media_type" in message:
        found.append(_document(message))
    if isinstance(contact := message.get("contact_information"), dict):
        words = (contact.get(key) for key in ("first_name", "last_name", "phone_number"))
        found.append(_marked("contact", " ".join(str(word) for word in words if word)))
    if "location_information" in message or "place_name" in message:
        found.append(_marked("location", _place(message)))
    if "game_title" in message:
        found.append(_marked("game", str(message["game_title"])))
    if isinstance(invoice := message.get("invoice_information"), dict):
        found.append(_marked("invoice", str(invoice.get("title") or "")))
    if isinstance(poll := message.get("poll"), dict):
        listed = poll.get("answers")
        answers = [one.get("text") for one in (listed if isinstance(listed, list) else ()) if isinstance(one, dict)]
        found.append(_marked("poll", f"{poll.get('question', '')} — {' / '.join(str(one) for one in answers)}"))
    return found


def _document(message: dict[str, Any]) -> str:
    kind = _MEDIA.get(str(message.get("media_type")), "file")
    name = str(message.get("file_name") or _file_name(message.get("file")))
    if kind == "sticker":
        name = str(message.get("sticker_emoji") or name)
    elif kind == "audio" and (message.get("title") or message.get("performer")):
        name = " – ".join(str(message[key]) for key in ("performer", "title") if message.get(key))
    return _marked(kind, name)


def _place(message: dict[str, Any]) -> str:
    point = message.get("location_information")
    where = f"{point.get('latitude')}, {point.get('longitude')}" if isinstance(point, dict) else ""
    return ", ".join(str(word) for word in (message.get("place_name"), message.get("address"), where) if word)


def _file_name(path: Any) -> str:
    """The name of an exported file; a file that was not exported has a sentence in brackets instead."""
    return "" if not isinstance(path, str) or "(File " in path else PurePosixPath(path).name


def _marked(kind: str, name: str) -> str:
    return f"[{kind}: {name}]" if name else f"[{kind}]"
