"""Defines the model's tools for files: `read_document`, `find_files` and `send_file`.

The model names a file by its number. For a file that isn't visible in the conversation, a tool
answers as if the file didn't exist.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from core.errors import ToolError, word_clause
from core.guard.tool_definitions import ToolArguments, build_tool
from core.media.blocks import (
    clean_name,
    cut_text,
    describe_cut,
    describe_details,
    render_outline,
    render_part,
)
from core.media.outgoing import clean_document_name
from core.store.media.files import (
    AttachedFile,
    FileFilter,
    FileMatch,
    FilePart,
    Files,
    find_snippet,
)
from core.text.normalize import shorten
from core.text.terms import query_terms, terms_of
from core.types import Effect, Subject, Tool, ToolContext

SEND_FILE = "send_file"
# A result contains about this many characters of a document.
RESULT_CHARS = 12_000
MAX_PASSAGES = 12
# A longer part is searched in pieces of this length.
PIECE_CHARS = 4_000
MAX_OUTLINE_PARTS = 120
# The beginning of a document that follows its outline has at least this many characters.
MIN_BEGINNING_CHARS = 2_000
Kind = Literal["photo", "voice", "file", "video"]


# The arguments of the tools. They are described to the model in `data/prompts.toml`. These are
# comments because docstrings would become part of the schemas.
class _ReadArguments(ToolArguments):
    file_id: int
    part: str = ""
    search: str = ""
    offset: Annotated[int, Field(ge=0)] = 0


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
        """Return a part of a document, the passages with some words, or the outline.

        The outline is followed by the beginning of the document.
        """
        file = await self._find(arguments.file_id, context)
        parts = [] if file.content is None else await self._files.load_parts(file.content.hash)
        if not parts:
            raise ToolError(f"File {file.id} has no text.")
        heading = f"{clean_name(file.name)} ({describe_details(file)})"
        if arguments.search.strip():
            return f"{heading}\n\n{_find_passages(parts, arguments.search)}"
        if arguments.part.strip() or arguments.offset:
            start = _find_start(parts, arguments.part) + arguments.offset
            return f"{heading}\n\n{_read_from(parts, start, RESULT_CHARS)}"
        outline = render_outline(parts, MAX_OUTLINE_PARTS)
        rest_chars = max(MIN_BEGINNING_CHARS, RESULT_CHARS - len(outline))
        beginning = _read_from(parts, 0, rest_chars)
        return f"{heading}\n\n{len(parts)} parts:\n{outline}\n\n{beginning}"

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


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of a document, with the number of the characters of the document before it."""

    label: str
    offset: int
    text: str
    # Whether the part of the document begins with this piece.
    is_first: bool


def _find_start(parts: Sequence[FilePart], label: str) -> int:
    """Return the number of characters before the part with a label, which may be just a number.

    Without a label, returns 0. Raises ToolError if no part has this label.
    """
    plain_label = " ".join(label.casefold().split())
    if not plain_label:
        return 0
    start = 0
    for part in parts:
        name = part.label.casefold()
        short_name = name.partition(",")[0]
        if plain_label in (name, short_name) or name.endswith(f" {plain_label}"):
            return start
        start += len(part.text)
    outline = render_outline(parts, MAX_OUTLINE_PARTS)
    raise ToolError(f"It has no part “{shorten(label, 40)}”. {cut_text(outline, 2_000)}")


def _read_from(parts: Sequence[FilePart], offset: int, limit_chars: int) -> str:
    """Return the text after the first `offset` characters, up to about `limit_chars`.

    If text follows, the result ends with a mark that says how to read on. Raises ToolError if the
    document is shorter than `offset`.
    """
    total = sum(len(part.text) for part in parts)
    if offset >= total:
        raise ToolError(f"It has only {total} characters, so nothing is at offset {offset}.")
    texts: list[str] = []
    start = 0
    end = offset
    for part in parts:
        text = part.text[max(0, offset - start) :]
        start += len(part.text)
        if not text:
            continue
        if texts and len(text) > limit_chars:
            break
        shown = cut_text(text, limit_chars)
        texts.append(render_part(FilePart(label=part.label, text=shown)))
        limit_chars -= len(shown)
        end += len(shown)
        if len(shown) < len(text) or limit_chars <= 0:
            break
    if end < total:
        texts.append(describe_cut(end, total))
    return "\n\n".join(texts)


def _find_passages(parts: Sequence[FilePart], words: str) -> str:
    """Return the passages of a document with most of the words, each with the label of its part.

    A passage inside a long part also has the offset at which it can be read.
    """
    terms = frozenset(query_terms(words))
    ranked = []
    for piece in _split_into_pieces(parts):
        count = len(terms.intersection(terms_of(piece.text)))
        if count:
            ranked.append((-count, piece.offset, piece))
    passages = []
    for _, _, piece in sorted(ranked, key=lambda entry: entry[:2])[:MAX_PASSAGES]:
        place = piece.label if piece.is_first else f"{piece.label} (offset={piece.offset})"
        passages.append(f"{place}: {find_snippet(piece.text, terms)}")
    if len(ranked) > MAX_PASSAGES:
        passages.append(f"[{len(ranked) - MAX_PASSAGES} more passages have some of these words.]")
    return "\n".join(passages) or "None of these words is in it. Try others, or read its parts."


def _split_into_pieces(parts: Sequence[FilePart]) -> Iterator[_Piece]:
    """Yield each part of a document. Long parts are split between lines or words."""
    offset = 0
    for part in parts:
        rest = part.text
        while rest:
            text = cut_text(rest, PIECE_CHARS)
            yield _Piece(part.label, offset, text, is_first=len(rest) == len(part.text))
            offset += len(text)
            rest = rest[len(text) :]
