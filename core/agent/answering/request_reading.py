"""Reads a request of the Messages API: what people said, their files, and the results of tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from core.guard.origin_and_fence import FILE_LEAD, FRAME_START, OPENING, TIME_LINE
from core.types import Json, Request

# The frame of a stored file: its name, type and size.
_FILE_FRAME = re.compile(rf"\[{FILE_LEAD}(?: (\d+))?, “([^”]*)” \(([^)]*)\)")
_TIME = re.compile(r"(?P<at>\d{1,2} [A-Z][a-z]+ \d{4}, \d{1,2}:\d{2})(?: (?P<zone>[^\s,\]]+))?")
"""The day, time and time zone in a time line."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """The text of a person in one message of a request, without frames and recalled memory."""

    # The line that precedes the text, such as "[Friday 20 November 2026, 12:05 Europe/Lisbon]".
    time_line: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    tool_name: str
    # The query of a search.
    query: str
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class MessageFile:
    """A stored file of the person's last message."""

    number: str
    name: str
    # The type and size of the file.
    details: str
    # The text of the file follows in the request.
    has_text: bool
    # The gateway says below the answer why.
    is_unreadable: bool


def parse_time_line(line: str, default_zone: ZoneInfo) -> datetime:
    """Return the time in a line such as "[Friday 20 November 2026, 12:05 Europe/Lisbon]".

    The line has the zone of the person who wrote the message. Without a time, return the current
    time in `default_zone`.
    """
    match = _TIME.search(line)
    if match is None:
        return datetime.now(default_zone)
    zone = ZoneInfo(match["zone"]) if match["zone"] else default_zone
    return datetime.strptime(match["at"], "%d %B %Y, %H:%M").replace(tzinfo=zone)


def zone_of(at: datetime) -> ZoneInfo:
    """Return the zone of a time that was read from a time line."""
    assert isinstance(at.tzinfo, ZoneInfo)
    return at.tzinfo


def read_last_time(messages: Sequence[Json], zone: ZoneInfo) -> datetime:
    line = ""
    for utterance in list_timed_utterances(messages):
        line = utterance.time_line
    return parse_time_line(line, zone)


def list_utterances(message: Json) -> list[Utterance]:
    """Return the texts that people wrote in a user message of a request.

    A time line belongs to the texts after it. Blocks with frames and memory fences are skipped.
    All of these are recognized by how they begin. People can't imitate them, because
    `core.guard.origin_and_fence` changes such beginnings in their texts.
    """
    utterances: list[Utterance] = []
    time_line = ""
    for block in message["content"]:
        if block.get("type") != "text":
            continue
        text = block["text"]
        if TIME_LINE.fullmatch(text):
            time_line = text
        elif not text.startswith(OPENING) and not FRAME_START.match(text):
            utterances.append(Utterance(time_line, text))
    return utterances


def read_last_message(messages: Sequence[Json]) -> str:
    """Return the text of the last user message that contains a person's words."""
    for message in reversed(messages):
        utterances = list_utterances(message) if message["role"] == "user" else []
        if utterances:
            return "\n".join(utterance.text for utterance in utterances)
    return ""


def list_last_files(messages: Sequence[Json]) -> list[MessageFile]:
    """Return the files of the last user message of a request."""
    files: list[MessageFile] = []
    if not messages or messages[-1]["role"] != "user":
        return files
    for block in messages[-1]["content"]:
        match = _FILE_FRAME.match(str(block.get("text", "")))
        if match:
            has_text = "\n\n" in block["text"]
            is_unreadable = block["text"].startswith(f"{match[0]} aren't readable")
            # The part after the semicolon is for a model: "3 pictures of it follow".
            details = match[3].partition(";")[0]
            files.append(MessageFile(match[1] or "", match[2], details, has_text, is_unreadable))
    return files


def list_timed_utterances(messages: Sequence[Json]) -> Iterator[Utterance]:
    """Yield the messages of a request that have a time line, oldest first."""
    for message in messages:
        if message["role"] != "user":
            continue
        for utterance in list_utterances(message):
            if utterance.time_line:
                yield utterance


def list_notes(request: Request) -> list[str]:
    """Return the notes that a request shows: in its system prompt, or as a change since then."""
    # Imported here because only questions need it.
    from core.notes.provider import list_known_notes

    prompt = "\n".join(str(block.get("text", "")) for block in request.system)
    blocks = [block for message in request.messages for block in message["content"]]
    texts = [str(block.get("text", "")) for block in blocks]
    return list_known_notes(prompt, [text for text in texts if text.startswith(OPENING)])


def list_last_results(messages: Sequence[Json]) -> list[ToolResult]:
    """Return the tool results since the person's last message, oldest first.

    Returns [] if the conversation ends with a person's message.
    """
    if messages[-1]["content"][-1].get("type") != "tool_result":
        return []
    calls: dict[str, Json] = {}
    results: list[ToolResult] = []
    for message in messages:
        blocks = message["content"]
        if message["role"] == "user" and list_utterances(message):
            results = []
        for block in blocks:
            if block.get("type") == "tool_use":
                calls[block["id"]] = block
            if block.get("type") == "tool_result":
                call = calls.get(block["tool_use_id"], {})
                results.append(
                    ToolResult(
                        tool_name=str(call.get("name", "")),
                        query=str(call.get("input", {}).get("query", "")),
                        text=str(block.get("content", "")),
                        is_error=bool(block.get("is_error")),
                    )
                )
    return results
