"""The messages of a Discord data package: what its owner wrote, channel by channel.

messages/index.json names the channels; in messages/c<id>/ are channel.json and messages.json (messages.csv in packages
until 2024). Names of folders differ between years and languages.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from core.errors import HistoryError
from core.store.archive import Skipped, TransferRecord
from core.transfer.formats import (
    SHAPELESS,
    ArchiveFiles,
    Choices,
    Conversation,
    from_text,
    json_values,
    mapping,
    text_of,
)
from core.types import Address

BROKEN = "channels whose messages are broken (from some place on)"

_MESSAGES = re.compile(r"(?:^|/)c?(\d{1,20})/messages\.(?:json|csv)$", re.IGNORECASE)
"""Folders above have names of the person's language, so only this much is looked at."""
_SMALL_BYTES = 50_000_000
_EPOCH_MS, _SNOWFLAKE_SHIFT = 1_420_070_400_000, 22


def members(files: ArchiveFiles) -> list[str]:
    """The files with messages, channel after channel; empty for what is no Discord data package."""
    known = {name.casefold() for name in files.sizes}
    found: dict[str, str] = {}
    for name in files.sizes:
        match = _MESSAGES.search(name)
        if match is None or str(PurePosixPath(name).with_name("channel.json")).casefold() not in known:
            continue
        # JSON is the newer form, where both are there.
        if match[1] not in found or name.casefold().endswith(".json"):
            found[match[1]] = name
    return list(found.values())


def read(files: ArchiveFiles, names: list[str], choices: Choices) -> Iterator[TransferRecord | Skipped]:
    """Everything in these channels, one message in memory at a time; a broken channel does not stop the others."""
    labels = _json(files, str(PurePosixPath(names[0]).parent.with_name("index.json")))
    users = [_json(files, name) for name in files.sizes if PurePosixPath(name).name.casefold() == "user.json"]
    owner = next((str(name) for user in users if (name := user.get("global_name") or user.get("username"))), None)
    for name in names:
        channel = _json(files, str(PurePosixPath(name).with_name("channel.json")))
        number = str(channel.get("id") or PurePosixPath(name).parent.name.lstrip("cC"))
        conversation = Conversation(
            name=f"discord:{number}",
            address=Address(platform="discord", chat_id=number),
            choices=choices,
            title=_title(text_of(labels.get(number)), channel),
        )
        rows: list[dict[str, Any]] = []
        is_broken = False
        try:
            rows.extend(map(mapping, _rows(files, name)))
        except (HistoryError, csv.Error, UnicodeDecodeError):
            is_broken = True
        # The package begins with the newest.
        rows.sort(key=lambda row: int(number) if (number := str(row.get("ID"))).isdecimal() else 0)
        yield from (_record(conversation, row, owner) for row in rows)
        if is_broken:
            yield Skipped(reason=BROKEN)


def _rows(files: ArchiveFiles, name: str) -> Iterator[Any]:
    with files.reading(name) as stream:
        if name.casefold().endswith(".csv"):
            yield from csv.DictReader(io.TextIOWrapper(stream, "utf-8-sig", newline=""))
        else:
            yield from (row for _, row in json_values(stream, files.title(name), {"item"}))


def _record(conversation: Conversation, row: dict[str, Any], owner: str | None) -> TransferRecord | Skipped:
    number, written = str(row.get("ID") or ""), row.get("Contents")
    if not number:
        return Skipped(reason=SHAPELESS)
    # Attachments are addresses with spaces between them. Contents are numbers where nothing but a number was written.
    names = [PurePosixPath(url.partition("?")[0]).name for url in text_of(row.get("Attachments")).split()]
    lines = [*(f"[file: {name}]" for name in names), "" if written is None else str(written)]
    at = from_text(row.get("Timestamp")) or _from_snowflake(number)
    return conversation.record("user", "\n".join(line for line in lines if line.strip()), at, number, owner)


def _from_snowflake(number: str) -> datetime | None:
    """The millisecond that is in every id (https://discord.com/developers/docs/reference#snowflakes)."""
    if not number.isdecimal() or len(number) > 20 or not int(number) >> _SNOWFLAKE_SHIFT:
        return None
    return datetime.fromtimestamp(((int(number) >> _SNOWFLAKE_SHIFT) + _EPOCH_MS) / 1000, UTC)


def _title(label: str, channel: dict[str, Any]) -> str | None:
    """As the index names the channel ("general in Server", "Direct Message with ana#0"), else as the channel does."""
    if label.strip() and label not in ("None", "Unknown channel"):
        return label.removesuffix("#0")
    server = mapping(channel.get("guild")).get("name")
    return " in ".join(str(word) for word in (channel.get("name"), server) if word)


def _json(files: ArchiveFiles, name: str) -> dict[str, Any]:
    """A small JSON object, empty where it cannot be read: only names depend on it."""
    actual = next((one for one in files.sizes if one.casefold() == name.casefold()), None)
    if actual is None or files.sizes[actual] > _SMALL_BYTES:
        return {}
    try:
        with files.reading(actual, is_counted=False) as stream:
            return mapping(json.loads(stream.read()))
    except (HistoryError, ValueError, RecursionError):
        return {}
