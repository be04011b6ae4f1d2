"""The messages of a Discord data package as lines of a chronicle: what its owner wrote, channel by channel.

The package has only one's own messages. messages/index.json names the channels; in messages/c<id>/ are channel.json
and messages.json (messages.csv in packages until 2024). Names of folders differ between years and languages.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from core.errors import HistoryError
from core.transfer import json_stream
from core.transfer.archive_files import ArchiveFiles
from core.transfer.record import TITLE_CHARS, Choices, Skipped, TransferRecord, from_text
from core.types import Address

EMPTY = "messages without text or attachment"
TIMELESS = "messages without a time"
SHAPELESS = "entries that are no messages"
BROKEN = "channels whose messages are broken (from some place on)"

PLATFORM = "discord"
_MESSAGES = re.compile(r"(?:^|/)c?(\d{1,20})/messages\.(?:json|csv)$", re.IGNORECASE)
"""Folders above have names of the person's language, so only this much is looked at."""
_SMALL_BYTES = 50_000_000
_EPOCH_MS = 1_420_070_400_000
_SNOWFLAKE_SHIFT = 22
_UNKNOWN = ("None", "Unknown channel")


def members(bundle: ArchiveFiles) -> list[str]:
    """The files with messages, channel after channel; empty for what is no Discord data package."""
    known = {name.casefold() for name in bundle.sizes}
    found: dict[str, str] = {}
    for name in bundle.sizes:
        match = _MESSAGES.search(name)
        if match is None or str(PurePosixPath(name).with_name("channel.json")).casefold() not in known:
            continue
        # JSON is the newer form, where both are there.
        if match[1] not in found or name.casefold().endswith(".json"):
            found[match[1]] = name
    return list(found.values())


def read(bundle: ArchiveFiles, names: list[str], choices: Choices) -> Iterator[TransferRecord | Skipped]:
    """Everything that was written in these channels; one message in memory at a time. What is broken in one channel
    does not keep back the others."""
    labels = _json(bundle, str(PurePosixPath(names[0]).parent.with_name("index.json"))) if names else {}
    owner = _owner(bundle)
    for name in names:
        channel = _json(bundle, str(PurePosixPath(name).with_name("channel.json")))
        number = str(channel.get("id") or PurePosixPath(name).parent.name.lstrip("cC"))
        title = _title(labels.get(number), channel)
        try:
            with bundle.reading(name) as stream:
                rows = _csv(stream) if name.casefold().endswith(".csv") else _list(stream, bundle.title(name))
                for row in rows:
                    yield _line(row, number, title, owner, choices)
        except (HistoryError, csv.Error, UnicodeDecodeError):
            yield Skipped(reason=BROKEN)


def _line(row: Any, number: str, title: str | None, owner: str | None, choices: Choices) -> TransferRecord | Skipped:
    if not isinstance(row, Mapping) or not row.get("ID"):
        return Skipped(reason=SHAPELESS)
    at = from_text(row.get("Timestamp")) or _from_snowflake(str(row["ID"]))
    if at is None:
        return Skipped(reason=TIMELESS)
    written, attached = row.get("Contents"), row.get("Attachments")
    # Contents are numbers where somebody wrote nothing but a number.
    lines = [*_attachments(attached), "" if written is None else str(written)]
    text = "\n".join(line for line in lines if line.strip())
    if not text:
        return Skipped(reason=EMPTY)
    return TransferRecord(
        session=f"discord:{number}",
        title=title,
        address=Address(platform=PLATFORM, chat_id=number),
        scope=choices.scope,
        role="user",
        sender=owner,
        text=text,
        at=at,
        id=str(row["ID"]),
    )


def _attachments(value: Any) -> Iterator[str]:
    """Addresses with spaces between them."""
    for url in value.split() if isinstance(value, str) else ():
        yield f"[file: {PurePosixPath(url.partition('?')[0]).name}]"


def _from_snowflake(number: str) -> datetime | None:
    """The millisecond that is in every id (https://discord.com/developers/docs/reference#snowflakes)."""
    if not number.isdecimal() or len(number) > 20 or not int(number) >> _SNOWFLAKE_SHIFT:
        return None
    return datetime.fromtimestamp(((int(number) >> _SNOWFLAKE_SHIFT) + _EPOCH_MS) / 1000, UTC)


def _title(label: Any, channel: dict[str, Any]) -> str | None:
    """As the index names the channel ("general in Server", "Direct Message with ana#0"), else as the channel does."""
    if isinstance(label, str) and label.strip() and label not in _UNKNOWN:
        return label.removesuffix("#0")[:TITLE_CHARS]
    guild, name = channel.get("guild"), channel.get("name")
    server = guild.get("name") if isinstance(guild, dict) else None
    return " in ".join(str(word) for word in (name, server) if word)[:TITLE_CHARS] or None


def _owner(bundle: ArchiveFiles) -> str | None:
    """Whose package it is, from account/user.json."""
    for name in bundle.sizes:
        if PurePosixPath(name).name.casefold() == "user.json":
            user = _json(bundle, name)
            if known := user.get("global_name") or user.get("username"):
                return str(known)
    return None


def _list(stream: BinaryIO, title: str) -> Iterator[Any]:
    rest = json_stream.events(stream, title)
    if next(rest)[0] == "start_array":
        for item in json_stream.items(rest):
            yield json_stream.value(item, rest)


def _csv(stream: BinaryIO) -> Iterator[Any]:
    yield from csv.DictReader(io.TextIOWrapper(stream, "utf-8-sig", newline=""))


def _json(bundle: ArchiveFiles, name: str) -> dict[str, Any]:
    """A small file; what is not there, or no object, is empty, because nothing depends on it but names."""
    known = {one.casefold(): one for one in bundle.sizes} if name not in bundle.sizes else {name.casefold(): name}
    actual = known.get(name.casefold())
    if actual is None or bundle.sizes[actual] > _SMALL_BYTES:
        return {}
    try:
        with bundle.reading(actual, is_counted=False) as stream:
            value = json.loads(stream.read())
    except (HistoryError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
