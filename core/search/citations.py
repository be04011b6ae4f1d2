"""Checks and numbers what an answer cites.

After a claim from a message that the tool `session_search` returned, the model writes a mark with
the id of the message: [message 412]. After a claim from a file, the mark has the number of the file
and the part: [file 12, page 7]. Models with citations get the messages as ``search_result`` blocks
and the files as ``document`` blocks, and their client writes the same marks. People see a number in
place of a mark. A mark for a message or file that the model wasn't given is removed, so an answer
never cites a missing source.

Source of the blocks: the pages "Search results" and "Citations" in the documentation of the
Messages API.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from core.guard.origin_and_fence import CITATION, FILE_LEAD
from core.types import Json, Message

SEARCH_TOOL = "session_search"
READING_TOOL = "read_document"
FINDING_TOOL = "find_files"
# An answer cites at most this many messages and files. Marks of others are removed.
MAX_CITED = 5
# The head of a frame with the text of a file, as `core.media.blocks` writes it, and the line that
# begins a part of the text.
_FILE_FRAME = re.compile(
    rf"\[{FILE_LEAD} (?P<id>\d+), “(?P<name>[^”\n]*)” \((?P<head>.*?)\]\n\n", re.S
)
_FILE_HEAD = re.compile(rf"\[{FILE_LEAD} (?P<id>\d+), ")
_PART_HEAD = re.compile(r"^— (?P<label>[^\n]{1,80}) —$", re.M)
# The parts of a session in the tool's result that list messages.
_PARTS = ("matches", "bookend_start", "window", "bookend_end")


class CitedMessage(NamedTuple):
    """A message that an answer cites."""

    message_id: int
    at: datetime
    # The whole message, or its passage with the words that the model searched for.
    text: str
    # Opens the message on its platform.
    link: str | None


class CitedFile(NamedTuple):
    """A part of a file that an answer cites, as the model named it."""

    file_id: int
    # E.g. "page 7". Empty if the model names no part.
    label: str


CitedSource = CitedMessage | CitedFile


def number_citations(text: str, rows: Sequence[Message]) -> tuple[str, list[CitedSource]]:
    """Replace the marks in an answer by numbers: [message 412] -> [1].

    The sources are numbered in the order in which the answer cites them first. `rows` are the
    messages of the conversation. Marks of messages that no search in it returned and of files that
    it doesn't contain are removed with the space before them. A mark that repeats the one right
    before it is left out. Returns the new text and the sources in their order.
    """
    if CITATION.search(text) is None:
        return text, []
    messages = {message.message_id: message for message in _list_returned(rows)}
    file_ids = frozenset(_list_file_ids(rows))
    cited: list[CitedSource] = []
    pieces: list[str] = []
    position = 0
    last_number = 0
    for mark in CITATION.finditer(text):
        between = text[position : mark.start()]
        pieces.append(between)
        position = mark.end()
        source = _find_source(mark, messages, file_ids)
        if source is None:
            continue
        if source not in cited:
            if len(cited) == MAX_CITED:
                continue
            cited.append(source)
        number = cited.index(source) + 1
        if between or number != last_number:
            pieces.append(f"{mark['space']}[{number}]")
        last_number = number
    pieces.append(text[position:])
    return "".join(pieces), cited


def _find_source(
    mark: re.Match[str], messages: Mapping[int, CitedMessage], file_ids: frozenset[int]
) -> CitedSource | None:
    """Return what a mark names, or None if the model wasn't given it."""
    if mark["message_id"]:
        return messages.get(int(mark["message_id"]))
    file_id = int(mark["file_id"])
    return CitedFile(file_id, (mark["part"] or "").strip()) if file_id in file_ids else None


def add_citable_blocks(messages: Sequence[Json]) -> list[Json]:
    """Return the messages of a request with blocks that a model can cite.

    Results of searches become ``search_result`` blocks, and texts of files become ``document``
    blocks with a block for each part. The blocks are always the same for the same text, so the
    provider's cache holds.
    """
    search_ids: set[str] = set()
    converted: list[Json] = []
    for message in messages:
        blocks = message["content"]
        if message["role"] == "assistant":
            search_ids.update(
                block["id"]
                for block in blocks
                if block["type"] == "tool_use" and block["name"] == SEARCH_TOOL
            )
        elif search_ids and blocks[0]["type"] == "tool_result":
            blocks = [
                _convert_result(block) if block.get("tool_use_id") in search_ids else block
                for block in blocks
            ]
            message = {**message, "content": blocks}
        if message["role"] == "user" and any(map(_is_file_frame, message["content"])):
            message = {**message, "content": list(map(_convert_frame, message["content"]))}
        converted.append(message)
    return converted


def _is_file_frame(block: Json) -> bool:
    return bool(block["type"] == "text" and block["text"].startswith(f"[{FILE_LEAD} "))


def _convert_frame(block: Json) -> Json:
    """Return the text of a file as a document. Other blocks, and files without text, stay."""
    if not _is_file_frame(block):
        return block
    frame = _FILE_FRAME.match(block["text"])
    if frame is None:
        return block
    parts = _split_parts(block["text"][frame.end() :])
    if not parts:
        return block
    document: dict[str, Any] = {
        "type": "document",
        "source": {
            "type": "content",
            "content": [{"type": "text", "text": part} for part in parts],
        },
        "title": f"file {frame['id']}: {frame['name']}",
        "context": frame[0].strip(),
        "citations": {"enabled": True},
    }
    if "cache_control" in block:
        document["cache_control"] = block["cache_control"]
    return document


def _split_parts(text: str) -> list[str]:
    """Split the text of a file before each line that names a part."""
    starts = [head.start() for head in _PART_HEAD.finditer(text)]
    if not starts or starts[0] > 0:
        starts.insert(0, 0)
    ends = [*starts[1:], len(text)]
    parts = [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    return [part for part in parts if part]


def name_source(title: str, passage: str) -> str:
    """Return the name of a cited part of a file, for a mark: "file 12, page 7".

    `title` is the title of the document, and `passage` is the block with the part.
    """
    name, _, _ = title.partition(":")
    head = _PART_HEAD.match(passage)
    return f"{name}, {head['label']}" if head else name


def _convert_result(block: Json) -> Json:
    content = block.get("content")
    if block.get("is_error") or not isinstance(content, str):
        return block
    return {**block, "content": _build_blocks(content)}


@lru_cache(maxsize=64)
def _build_blocks(content: str) -> str | Sequence[Json]:
    """Return a result of the tool as blocks: what isn't citable as JSON, then each message.

    Returns the result unchanged if it contains no messages.
    """
    try:
        result = json.loads(content)
    except ValueError:
        return content
    blocks: list[Json] = []
    for session in result.get("sessions", ()):
        for part in _PARTS:
            blocks += map(_build_block, session.get(part, ()))
    if not blocks:
        return content
    return [{"type": "text", "text": json.dumps(result, ensure_ascii=False)}, *blocks]


def _build_block(fields: dict[str, Any]) -> Json:
    """Move the text of a message from its JSON fields to a block, and return the block."""
    text = fields.pop("snippet", "") or fields.pop("text", "")
    author = fields.get("sender") or fields.get("role", "user")
    return {
        "type": "search_result",
        "source": f"message {fields['message_id']}",
        "title": f"{author}, {fields['at']}",
        "content": [{"type": "text", "text": text if text.strip() else "(no text)"}],
        "citations": {"enabled": True},
    }


def _list_file_ids(rows: Iterable[Message]) -> Iterator[int]:
    """Yield the numbers of the files that the model was shown, read or found."""
    for row in rows:
        for block in row.sent_blocks or ():
            frame = _FILE_HEAD.match(str(block.get("text", "")))
            if frame is not None:
                yield int(frame["id"])
        for block in row.blocks or ():
            if block.get("type") == "tool_use" and block.get("name") == READING_TOOL:
                number = block["input"].get("file_id")
                if isinstance(number, int):
                    yield number
        if row.tool_name == FINDING_TOOL and row.role == "tool":
            with contextlib.suppress(ValueError):
                # The result of a failed call is a sentence.
                yield from (int(file["file_id"]) for file in json.loads(row.text)["files"])


def _list_returned(rows: Iterable[Message]) -> Iterator[CitedMessage]:
    """Yield the messages that searches returned."""
    for row in rows:
        if row.role != "tool" or row.tool_name != SEARCH_TOOL:
            continue
        try:
            result = json.loads(row.text)
        except ValueError:
            # The result of a failed call is a sentence.
            continue
        for session in result.get("sessions", ()):
            for part in _PARTS:
                yield from map(_read_message, session.get(part, ()))


def _read_message(fields: dict[str, Any]) -> CitedMessage:
    text = fields.get("text") or fields.get("snippet") or ""
    return CitedMessage(
        message_id=int(fields["message_id"]),
        at=datetime.fromisoformat(fields["at"]),
        text=str(text).replace(">>>", "").replace("<<<", ""),
        link=fields.get("link"),
    )
