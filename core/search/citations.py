"""Check the sources that an answer cites, and number them.

After a claim, the model writes a mark that names its source. [message 412] names a message that the
tool `session_search` returned, [fact 3] names a fact from the tool `facts`, and [file 12, page 7]
names part of a file. Models with citations get messages and facts as ``search_result`` blocks and
files as ``document`` blocks, and their client writes the same marks. People see a number instead of
a mark. A mark is removed if no tool and no ``<memory-context>`` block gave its source to the model,
so an answer never cites a missing source.

The format of the blocks comes from the pages "Search results" and "Citations" in the documentation
of the Messages API.
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
from core.types import Json, Message, Role

SEARCH_TOOL = "session_search"
FACTS_TOOL = "facts"
READING_TOOL = "read_document"
FINDING_TOOL = "find_files"
# An answer cites at most this many messages, facts and files. Further marks are removed.
MAX_CITED = 5
# The head of a frame with the text of a file, as `core.media.blocks` writes it, and the line that
# begins a part of the text.
_FILE_FRAME = re.compile(
    rf"\[{FILE_LEAD} (?P<id>\d+), “(?P<name>[^”\n]*)” \((?P<head>.*?)\]\n\n", re.S
)
_FILE_HEAD = re.compile(rf"\[{FILE_LEAD} (?P<id>\d+), ")
_PART_HEAD = re.compile(r"^— (?P<label>[^\n]{1,80}) —$", re.M)
# A recalled line of a message (m412) or a fact (f3, f3-2c1a) in a memory block.
_RECALLED_LINE = re.compile(r"^- (?P<kind>[mf])(?P<id>\d{1,18})(?:-[0-9a-f]{4})? ", re.M)
# The parts of a session in the tool's result that list messages.
_PARTS = ("matches", "bookend_start", "window", "bookend_end")


class CitedMessage(NamedTuple):
    """A message that an answer cites."""

    message_id: int
    at: datetime
    # The whole message, or its passage with the words that the model searched for.
    text: str
    # A link that opens the message on its platform.
    link: str | None
    role: Role = "user"


class RecalledMessage(NamedTuple):
    """A cited message that the model has seen only as a recalled line."""

    message_id: int


class CitedFact(NamedTuple):
    """A fact that an answer cites."""

    fact_id: int


class CitedFile(NamedTuple):
    """A cited part of a file, as the model named it."""

    file_id: int
    # E.g. "page 7". Empty if the model names no part.
    label: str


CitedSource = CitedMessage | RecalledMessage | CitedFact | CitedFile


class CitableSources(NamedTuple):
    """The sources in a conversation that the model may cite."""

    messages: Mapping[int, CitedMessage | RecalledMessage]
    fact_ids: frozenset[int]
    file_ids: frozenset[int]


def number_citations(text: str, rows: Sequence[Message]) -> tuple[str, list[CitedSource]]:
    """Replace the marks in an answer with numbers: [message 412] becomes [1].

    Sources are numbered in the order of their first citation. `rows` are the messages of the
    conversation. If a mark names a source that the conversation doesn't contain, the mark and the
    space before it are removed. If two marks in a row name the same source, the second one is left
    out. Returns the new text, and the sources in order.
    """
    if CITATION.search(text) is None:
        return text, []
    citable = list_citable(rows)
    cited: list[CitedSource] = []
    pieces: list[str] = []
    position = 0
    last_number = 0
    for mark in CITATION.finditer(text):
        text_before = text[position : mark.start()]
        pieces.append(text_before)
        position = mark.end()
        source = _find_source(mark, citable)
        if source is None:
            continue
        if source not in cited:
            if len(cited) == MAX_CITED:
                continue
            cited.append(source)
        number = cited.index(source) + 1
        is_repeated = not text_before and number == last_number
        if not is_repeated:
            pieces.append(f"{mark['space']}[{number}]")
        last_number = number
    pieces.append(text[position:])
    return "".join(pieces), cited


def list_citable(rows: Sequence[Message]) -> CitableSources:
    """Return the sources that the messages of a conversation contain."""
    messages: dict[int, CitedMessage | RecalledMessage] = {}
    fact_ids: set[int] = set()
    for fields in _list_returned_facts(rows):
        fact_ids.add(int(fields["fact_id"]))
        if message_id := fields.get("message_id"):
            messages[int(message_id)] = RecalledMessage(int(message_id))
    for row in rows:
        for block in row.memory_blocks:
            for line in _RECALLED_LINE.finditer(block["text"]):
                number = int(line["id"])
                if line["kind"] == "m":
                    messages[number] = RecalledMessage(number)
                else:
                    fact_ids.add(number)
    messages |= {message.message_id: message for message in _list_returned(rows)}
    return CitableSources(messages, frozenset(fact_ids), frozenset(_list_file_ids(rows)))


def _find_source(mark: re.Match[str], citable: CitableSources) -> CitedSource | None:
    """Return the source that a mark names, or None if the conversation doesn't contain it."""
    if mark["message_id"]:
        return citable.messages.get(int(mark["message_id"]))
    if mark["fact_id"]:
        fact_id = int(mark["fact_id"])
        return CitedFact(fact_id) if fact_id in citable.fact_ids else None
    file_id = int(mark["file_id"])
    label = (mark["part"] or "").strip()
    return CitedFile(file_id, label) if file_id in citable.file_ids else None


def add_citable_blocks(messages: Sequence[Json]) -> list[Json]:
    """Return the messages of a request with blocks that the model can cite.

    Results of searches in the history and the facts become ``search_result`` blocks, and texts of
    files become ``document`` blocks with a block per part. The same text always results in the same
    blocks, so the provider's cache stays valid.
    """
    tool_names: dict[str, str] = {}
    converted: list[Json] = []
    for message in messages:
        blocks = message["content"]
        if message["role"] == "assistant":
            tool_names |= {
                block["id"]: block["name"]
                for block in blocks
                if block["type"] == "tool_use" and block["name"] in (SEARCH_TOOL, FACTS_TOOL)
            }
        elif tool_names and blocks[0]["type"] == "tool_result":
            blocks = [
                _convert_result(block, tool_names.get(block.get("tool_use_id", ""), ""))
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
    """Convert the text of a file to a ``document`` block.

    Other blocks, and files without text, are returned unchanged.
    """
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
    """Split a file's text before each line that names a part."""
    starts = [head.start() for head in _PART_HEAD.finditer(text)]
    if not starts or starts[0] > 0:
        starts.insert(0, 0)
    ends = [*starts[1:], len(text)]
    parts = [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    return [part for part in parts if part]


def name_source(title: str, passage: str) -> str:
    """Name a cited part of a file in the same way as marks do: "file 12, page 7".

    `title` is the title of the document, and `passage` is the block that contains the part.
    """
    name, _, _ = title.partition(":")
    head = _PART_HEAD.match(passage)
    return f"{name}, {head['label']}" if head else name


def _convert_result(block: Json, tool_name: str) -> Json:
    """Convert a search tool's result to ``search_result`` blocks.

    Other blocks are returned unchanged.
    """
    content = block.get("content")
    if not tool_name or block.get("is_error") or not isinstance(content, str):
        return block
    return {**block, "content": _build_blocks(content, tool_name)}


@lru_cache(maxsize=64)
def _build_blocks(content: str, tool_name: str) -> str | Sequence[Json]:
    """Convert a search tool's result to blocks.

    The first block contains the JSON without the texts of messages and facts. Each message or fact
    then gets a block of its own. A result without messages and facts is returned unchanged.
    """
    result = _parse_result(content)
    blocks: list[Json] = []
    if tool_name == FACTS_TOOL:
        blocks += map(_build_fact_block, _list_fact_fields(result))
    else:
        for session in result.get("sessions", ()):
            for part in _PARTS:
                blocks += map(_build_block, session.get(part, ()))
    if not blocks:
        return content
    return [{"type": "text", "text": json.dumps(result, ensure_ascii=False)}, *blocks]


def _parse_result(text: str) -> dict[str, Any]:
    """Return the JSON object of a tool's result. If the result is a sentence, return {}."""
    with contextlib.suppress(ValueError):
        result = json.loads(text)
        if isinstance(result, dict):
            return result
    return {}


def _list_fact_fields(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of each fact in a result of the tool `facts`."""
    fields = [*result.get("facts", ())]
    for group in result.get("groups", ()):
        fields += group
    return [each for each in fields if "fact_id" in each]


def _build_block(fields: dict[str, Any]) -> Json:
    """Build the block of a message, and remove the message's text from its JSON fields."""
    text = fields.pop("snippet", "") or fields.pop("text", "")
    author = fields.get("sender") or fields.get("role", "user")
    return _make_block(f"message {fields['message_id']}", f"{author}, {fields['at']}", text)


def _build_fact_block(fields: dict[str, Any]) -> Json:
    """Build the block of a fact, and remove the fact's text from its JSON fields."""
    text = fields.pop("content", "")
    author = fields.get("who", "user")
    return _make_block(f"fact {fields['fact_id']}", f"{author}, {fields.get('said_at', '')}", text)


def _make_block(source: str, title: str, text: str) -> Json:
    return {
        "type": "search_result",
        "source": source,
        "title": title,
        "content": [{"type": "text", "text": text if text.strip() else "(no text)"}],
        "citations": {"enabled": True},
    }


def _list_returned_facts(rows: Iterable[Message]) -> Iterator[Mapping[str, Any]]:
    """Yield the fields of the facts that the tool `facts` returned."""
    for row in rows:
        if row.role == "tool" and row.tool_name == FACTS_TOOL:
            yield from _list_fact_fields(_parse_result(row.text))


def _list_file_ids(rows: Iterable[Message]) -> Iterator[int]:
    """Yield the numbers of the files that the model has received, read or found."""
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
            yield from (int(file["file_id"]) for file in _parse_result(row.text).get("files", ()))


def _list_returned(rows: Iterable[Message]) -> Iterator[CitedMessage]:
    """Yield the messages that the tool `session_search` returned."""
    for row in rows:
        if row.role != "tool" or row.tool_name != SEARCH_TOOL:
            continue
        for session in _parse_result(row.text).get("sessions", ()):
            for part in _PARTS:
                yield from map(_read_message, session.get(part, ()))


def _read_message(fields: dict[str, Any]) -> CitedMessage:
    """Read a cited message from its JSON fields in a result of `session_search`."""
    text = fields.get("text") or fields.get("snippet") or ""
    return CitedMessage(
        message_id=int(fields["message_id"]),
        at=datetime.fromisoformat(fields["at"]),
        text=str(text).replace(">>>", "").replace("<<<", ""),
        link=fields.get("link"),
        role=fields.get("role", "user"),
    )
