"""The messages of a Discord data package: what its owner wrote, channel by channel.

messages/index.json names the channels; in messages/c<id>/ are channel.json and messages.json, newest first. Names of
folders differ between years and languages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from core.errors import HistoryError
from core.store.archive import Skipped, TransferRecord
from core.transfer.formats import SHAPELESS, Choices, Conversation, from_text, json_values, mapping, text_of
from core.types import Address

BROKEN = "channels whose messages are broken (from some place on)"

_FOLDER = re.compile(r"c?\d{1,20}")
"""Of a channel. Folders above have names of the person's language."""


def is_channel(path: Path) -> bool:
    """Whether a file has the messages of a channel in a Discord data package."""
    is_named = path.name == "messages.json" and _FOLDER.fullmatch(path.parent.name) is not None
    return is_named and path.with_name("channel.json").is_file()


def read(stream: BinaryIO, title: str, choices: Choices) -> Iterator[TransferRecord | Skipped]:
    """Everything in one channel, which is in memory whole, in the order of time."""
    folder = Path(stream.name).parent
    channel, labels = _json(folder / "channel.json"), _json(folder.parent / "index.json")
    users = map(_json, folder.parent.parent.glob("*/user.json"))
    owner = next((str(one) for user in users if (one := user.get("global_name") or user.get("username"))), None)
    number = str(channel.get("id") or folder.name.lstrip("c"))
    conversation = Conversation(
        name=f"discord:{number}",
        address=Address(platform="discord", chat_id=number),
        choices=choices,
        title=_title(text_of(labels.get(number)), channel),
    )
    records = []
    try:
        for _, row in json_values(stream, title, {"item"}):
            record = _record(conversation, mapping(row), owner)
            if isinstance(record, TransferRecord):
                records.append(record)
            else:
                yield record
    except HistoryError:
        yield Skipped(reason=BROKEN)
    yield from sorted(records, key=lambda record: record.at)


def _record(conversation: Conversation, row: dict[str, Any], owner: str | None) -> TransferRecord | Skipped:
    number, written = str(row.get("ID") or ""), row.get("Contents")
    if not number:
        return Skipped(reason=SHAPELESS)
    # Attachments are addresses with spaces between them. Contents are numbers where nothing but a number was written.
    names = [Path(url.partition("?")[0]).name for url in text_of(row.get("Attachments")).split()]
    lines = [*(f"[file: {name}]" for name in names), "" if written is None else str(written)]
    text = "\n".join(line for line in lines if line.strip())
    return conversation.record("user", text, from_text(row.get("Timestamp")), number, owner)


def _title(label: str, channel: dict[str, Any]) -> str | None:
    """As the index names the channel ("general in Server", "Direct Message with ana#0"), else as the channel does."""
    if label.strip() and label not in ("None", "Unknown channel"):
        return label.removesuffix("#0")
    server = mapping(channel.get("guild")).get("name")
    return " in ".join(str(word) for word in (channel.get("name"), server) if word)


def _json(path: Path) -> dict[str, Any]:
    """A small JSON object, empty where it cannot be read: only names depend on it."""
    try:
        return mapping(json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError):
        return {}
