"""Defines the model's tools for files: `read_document`, `find_files` and `send_file`.

The model names a file by its number. For a file that isn't visible in the conversation, a tool
answers as if the file didn't exist.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from core.errors import ToolError, word_clause
from core.guard.tool_definitions import ToolArguments, build_tool
from core.media.blocks import OUTLINE_CHARS, clean_name, describe_details, render_part
from core.media.outgoing import clean_document_name
from core.store.media.files import (
    AttachedFile,
    FileFilter,
    FileMatch,
    FilePart,
    Files,
    find_snippet,
)
from core.text.terms import query_terms, terms_of
from core.types import Effect, Subject, Tool, ToolContext

SEND_FILE = "send_file"
# A result contains about this many characters of a document.
RESULT_CHARS = 12_000
MAX_PASSAGES = 12
MAX_OUTLINE_PARTS = 120
Kind = Literal["photo", "voice", "file", "video"]


# The arguments of the tools. They are described to the model in `data/prompts.toml`. These are
# comments because docstrings would become part of the schemas.
class _ReadArguments(ToolArguments):
    file_id: int
    part: str = ""
    search: str = ""


class _FindArguments(ToolArguments):
    words: str = ""
    has: Kind | None = None
    limit: Annotated[int, Field(ge=1, le=20)] = 5


class _SendArguments(ToolArguments):
    file_id: int = 0
    name: str = Field(default="", max_length=100)


def build_file_tools(files: Files) -> list[Tool]:
    """Return the tools for files in the scopes of a conversation."""
    calls = _FileCalls(files)
    return [
        build_tool(
            "read_document",
            _ReadArguments,
            calls.read,
            "core.media",
            Effect.READ,
            is_quote=True,
            is_read_only=True,
        ),
        build_tool(
            "find_files",
            _FindArguments,
            calls.find_many,
            "core.media",
            Effect.READ,
            is_quote=True,
            is_read_only=True,
        ),
        build_tool(
            SEND_FILE,
            _SendArguments,
            calls.send,
            "core.media",
            Effect.SEND,
            can_hold=True,
            find_subjects=calls.find_subjects,
        ),
    ]


class _FileCalls:
    """Answers the calls of the tools for files."""

    def __init__(self, files: Files) -> None:
        self._files = files

    async def _find(self, file_id: int, context: ToolContext) -> AttachedFile:
        """Return the file with a number. Raises ToolError if this conversation has no such file."""
        file = await self._files.find(file_id, context.scopes)
        if file is None:
            raise ToolError("There is no such file here. find_files lists them.")
        return file

    async def read(self, arguments: _ReadArguments, context: ToolContext) -> str:
        """Return a part of a document, the passages with some words, or the outline."""
        file = await self._find(arguments.file_id, context)
        parts = [] if file.content is None else await self._files.load_parts(file.content.hash)
        if not parts:
            raise ToolError(f"File {file.id} has no text.")
        heading = f"{clean_name(file.name)} ({describe_details(file)})"
        if arguments.search.strip():
            return f"{heading}\n\n{_find_passages(parts, arguments.search)}"
        if arguments.part.strip():
            return f"{heading}\n\n{_read_part(parts, arguments.part)}"
        return f"{heading}\n\n{_render_outline(parts)}"

    async def find_many(self, arguments: _FindArguments, context: ToolContext) -> str:
        """Return the matching files as JSON."""
        file_filter = FileFilter(has=arguments.has)
        matches = await self._files.search(
            arguments.words, context.scopes, file_filter, arguments.limit
        )
        terms = frozenset(query_terms(arguments.words))
        entries = [_describe_match(match, terms) for match in matches]
        return json.dumps({"files": entries}, ensure_ascii=False)

    async def send(self, arguments: _SendArguments, context: ToolContext) -> str:
        """Return a sentence about the file to send.

        The gateway adds the file or a button to the answer. Without a number, the answer itself
        becomes the file.
        """
        state = "waits for a tap on the button below your answer" if context.hold_reason else "sent"
        if not arguments.file_id and arguments.name.strip():
            return json.dumps({"name": clean_document_name(arguments.name), "state": state})
        file = await self._find(arguments.file_id, context)
        if file.content is None:
            raise ToolError(f"File {file.id} isn't kept, so it can't be sent.")
        return json.dumps({"file_id": file.id, "name": clean_name(file.name), "state": state})

    async def find_subjects(self, arguments: object, context: ToolContext) -> Sequence[Subject]:
        """Return the file that a call sends."""
        number = arguments.get("file_id") if isinstance(arguments, Mapping) else None
        # The call itself reports a wrong number.
        file = await self._find(number if isinstance(number, int) else 0, context)
        subject = Subject(
            label=word_clause("label_file", number=file.id),
            text=file.name,
            number=str(file.id),
            kind="file",
        )
        return [subject]


def _describe_match(match: FileMatch, terms: frozenset[str]) -> dict[str, object]:
    """Return a file as JSON for the model, with the passage that contains the terms."""
    entry: dict[str, object] = {
        "file_id": match.file.id,
        "name": clean_name(match.file.name),
        "kind": match.file.kind,
        "details": describe_details(match.file),
        "sent_at": match.file.at.isoformat(),
        "message_id": match.file.message_id,
    }
    if match.part is not None:
        entry["place"] = match.part.label
        entry["passage"] = find_snippet(match.part.text, terms)
    return entry


def _read_part(parts: Sequence[FilePart], label: str) -> str:
    """Return the part with a label, and the following parts as long as they fit.

    The label may be just a number. Raises ToolError if no part has this label.
    """
    plain_label = " ".join(label.casefold().split())
    for index, part in enumerate(parts):
        name = part.label.casefold()
        if (
            name == plain_label
            or name.partition(",")[0] == plain_label
            or name.endswith(f" {plain_label}")
        ):
            return _join_parts(parts[index:])
    raise ToolError(f"It has no part “{label[:40]}”. {_render_outline(parts)[:2_000]}")


def _join_parts(parts: Sequence[FilePart]) -> str:
    """Return the parts as one text, up to a maximum length."""
    texts: list[str] = []
    remaining_chars = RESULT_CHARS
    for part in parts:
        if texts and len(part.text) > remaining_chars:
            texts.append(f"[next: {part.label}]")
            break
        text = part.text[:RESULT_CHARS]
        texts.append(render_part(FilePart(label=part.label, text=text)))
        remaining_chars -= len(text)
    return "\n\n".join(texts)


def _find_passages(parts: Sequence[FilePart], words: str) -> str:
    """Return the passages of a document with most of the words, each with the label of its part."""
    terms = frozenset(query_terms(words))
    ranked = []
    for index, part in enumerate(parts):
        count = len(terms.intersection(terms_of(part.text)))
        if count:
            ranked.append((-count, index))
    passages = []
    for _, index in sorted(ranked)[:MAX_PASSAGES]:
        part = parts[index]
        passages.append(f"{part.label}: {find_snippet(part.text, terms)}")
    return "\n".join(passages) or "None of these words is in it. Try others, or read its parts."


def _render_outline(parts: Sequence[FilePart]) -> str:
    step = -(-len(parts) // MAX_OUTLINE_PARTS)
    lines = [
        f"{part.label}: {' '.join(part.text[:200].split())[:OUTLINE_CHARS]}"
        for part in parts[::step]
    ]
    return "\n".join([f"{len(parts)} parts:", *lines])
