"""Shows files to the model, in blocks with pictures and with the text of documents.

A stored block refers to a picture by the hash of its content. The bytes are added only when a
request is sent. They are the same in every request, so the cached prefix stays valid. Each file
begins with a frame, because its text isn't the person's own.
"""

from __future__ import annotations

import base64
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from config.media_options import MediaOptions
from core.errors import StoreError
from core.guard.origin_and_fence import FILE_LEAD, neutralise
from core.media.api_limits import API_LIMITS
from core.media.descriptions import (
    NAME_CHARS,
    find_descriptions,
    may_describe,
    request_description,
)
from core.media.file_rows import list_scanned_pages
from core.media.formats.kinds import CUT_MARK, name_type
from core.media.intake import SPOKEN_KINDS, VOICE, MediaIntake, name_view
from core.media.speech import format_seconds
from core.store.media.files import AttachedFile, FilePart
from core.text.normalize import shorten
from core.types import Completion, Json, Message, Request, ToolContext

# The first words of the line for an attachment in the text of a message. See
# `core.agent.prompt.with_attachments`.
ATTACHED = "[attached "
# The type of a picture's source in a stored block. Its data is the name of a view.
HASH_SOURCE = "hash"
VIEW_TYPE = "image/jpeg"
# The limit for the texts of all documents of a message, as a multiple of `document_chars`.
MAX_DOCUMENTS_SHARE = 3
MAX_OUTLINE_PARTS = 60
MAX_TYPE_CHARS = 12
"""A longer MIME subtype isn't shown, but the kind of the file."""
OUTLINE_CHARS = 80
# The outline shows the length of a part with more characters than this.
LONG_PART_CHARS = 10_000
# The maximum number of pictures in a request, and of their bytes in Base64, well below the API's
# limits. Older pictures are left out in steps, so that the prefix doesn't change with each turn.
MAX_PICTURES = 60 * API_LIMITS.pictures // 100
MAX_PICTURE_BYTES = 60 * API_LIMITS.request_bytes // 100
DROP_STEP = 20
MAX_CACHED_BYTES = 32_000_000
# The first characters of a line that looks like the beginning of a part.
_PART_LINE = re.compile(r"^([^\S\n]*)—(?=.*—[^\S\n]*$)", re.MULTILINE)
_log = structlog.get_logger("media")
_MISSING = ", are missing: "
_GONE = {"type": "text", "text": "[This picture is no longer kept.]"}
_BLIND = {"type": "text", "text": "[You can't see this picture: your model reads only text.]"}
_OLD = {
    "type": "text",
    "text": "[This picture isn't shown any more, because there are newer ones.]",
}
_BEGINNING = "It's so long that only its beginning was read, up to the mark […]."
_PROBLEMS: Mapping[str, str] = {
    "": "it is still being downloaded",
    "too_large": "it is larger than the settings allow",
    "person_full": "the person's files have used up their room",
    "all_full": "all files together have used up their room",
    "gone": "the platform doesn't give it out",
    "failed": "the download failed; it is tried again when the person replies to that message",
    "no_source": "files can't be fetched from this platform",
    "disk": "it couldn't be written to the disk",
}
_NOTES: Mapping[str, str] = {
    "scan": "It is a scan: its pages are pictures without text. The first pages follow, if shown.",
    "locked": "It has a password, so it can't be read.",
    "broken": "It is damaged, so it can't be read.",
    "bomb": "Reading it takes too much time or memory, so it isn't read.",
    "unknown": "Files of this type are kept, but can't be read.",
    "unheard": "It is a recording, and there is no transcriber, so you can't know what it says.",
    "inaudible": "It is a recording that couldn't be transcribed.",
    "no_video": "Videos can't be read here, because PyAV isn't installed.",
}


@dataclass(eq=False)
class MediaBlocks:
    """Renders the files of messages as blocks, and fills pictures into requests."""

    intake: MediaIntake
    options: MediaOptions
    # Encoded pictures by hash, most recently used last.
    _encoded: OrderedDict[str, str] = field(default_factory=OrderedDict)

    async def render(
        self, rows: Sequence[Message], earlier: Sequence[Message], context: ToolContext
    ) -> list[tuple[Json, ...]]:
        """Return the blocks of each message for its own files and for those that it quotes.

        The files of `earlier` messages are already in the model's context, except those of group
        messages that weren't addressed to the assistant.
        """
        shown_ids = {row.id for row in earlier if _shows_files(row)}
        blocks: list[tuple[Json, ...]] = []
        for row in rows:
            files: list[AttachedFile] = []
            quote = row.quote
            quoted_id = None
            if quote is not None and ATTACHED in quote.text:
                quoted_id = quote.message_id
            if quoted_id is not None and quoted_id not in shown_ids:
                files += await self._load_quoted(quoted_id, context)
            if ATTACHED in row.text and row.external_id is not None:
                files += await self.intake.load(context.session.address, row.external_id)
            blocks.append(tuple(await self._render_files(_drop_duplicates(files))))
        return blocks

    async def _load_quoted(self, message_id: int, context: ToolContext) -> list[AttachedFile]:
        """Return the files of the quoted message. Failed downloads are tried again."""
        files = await self.intake.files.load_by_message_id(message_id, context.scopes)
        return [await self.intake.fetch_again(file) for file in files]

    async def _render_files(self, files: Sequence[AttachedFile]) -> list[Json]:
        """Return the blocks of some files.

        Voice messages have none, because their words are text.
        """
        blocks: list[Json] = []
        files = [
            file
            for file in files
            if file.kind != VOICE or file.content is None or file.content.note
        ]
        remaining_chars = self.options.document_chars * MAX_DOCUMENTS_SHARE
        for file in files:
            views = await self._list_views(file)
            text = await self._describe(file, remaining_chars, len(views))
            remaining_chars -= len(text)
            blocks.append({"type": "text", "text": text})
            for name in views if self.options.pictures else ():
                source = {"type": HASH_SOURCE, "media_type": VIEW_TYPE, "data": name}
                blocks.append({"type": "image", "source": source})
        return blocks

    async def _list_views(self, file: AttachedFile) -> list[str]:
        """Return the names of the views of a file that the model may see.

        A picture has one view, a scan has one for each of its first pages, and a video has a few.
        """
        content = file.content
        if content is None or (content.is_video and not self.options.video):
            return []
        is_scan = content.note == "scan" or bool(list_scanned_pages(content))
        if not is_scan and not content.width:
            return []
        count = 1
        if is_scan or content.is_video:
            count = await self.intake.count_views(content.hash)
        if is_scan:
            count = min(count, self.options.scan_pages)
        return [name_view(content.hash, number) for number in range(count)]

    async def _describe(self, file: AttachedFile, limit_chars: int, views: int) -> str:
        """Return the frame of a file with its text and the number of `views` that follow.

        The frame of a video message has no text, because the spoken words are the text of the
        message.
        """
        content = file.content
        number = f" {file.id}" if file.id else ""
        name = f"{FILE_LEAD}{number}, “{clean_name(file.name)}”"
        if content is None:
            problem = _PROBLEMS.get(file.problem, file.problem)
            return f"[{name}{_MISSING}{problem}. Say so.]"
        details = describe_details(file)
        if content.is_video and views:
            details += f"; {views} pictures of it follow"
        parts = await self.intake.load_parts(content.hash)
        note = _NOTES.get(content.note, "") if content.size else "It is empty."
        if scanned_pages := list_scanned_pages(content):
            note = _describe_scans(scanned_pages, views)
        if parts and file.kind not in SPOKEN_KINDS:
            limit = max(1_000, min(limit_chars, self.options.document_chars))
            if parts[-1].text == CUT_MARK:
                note = f"{note} {_BEGINNING}".strip()
            heading = f"{name} ({details})"
            return _render_text(heading, parts, limit, note, is_stored=bool(file.id))
        if views:
            if content.width and self.options.describe_pictures:
                note = f"{note} {request_description(content.hash)}".strip()
            return f"[{name} ({details}). {note}]".replace(". ]", "]")
        return f"[{name} ({details}) aren't readable. {note}]".replace(". ]", ".]")

    async def fill(self, request: Request) -> Request:
        """Return a request in which the hashes of pictures are replaced with their bytes."""
        hashes = [
            block["source"]["data"] for message in request.messages for block in _pictures(message)
        ]
        is_blind = not self.intake.gets_pictures(request.model)
        sent_hashes = frozenset[str]() if is_blind else await self._select(hashes)
        messages: list[Json] = []
        for message in request.messages:
            if not _pictures(message):
                messages.append(message)
                continue
            content = [
                await self._fill_block(block, sent_hashes, is_blind=is_blind)
                for block in message["content"]
            ]
            messages.append({**message, "content": content})
        return replace(request, messages=tuple(messages))

    async def collect_descriptions(self, request: Request, completion: Completion) -> None:
        """Store the descriptions of pictures in the answer to a request with their hashes.

        Descriptions of pictures that aren't in the request, or that belong to an incognito
        conversation, are ignored. If the store fails, the picture stays without a description.
        """
        if not self.options.describe_pictures or not may_describe(completion.text):
            return
        descriptions = find_descriptions(completion.text)
        names = {
            block["source"]["data"] for message in request.messages for block in _pictures(message)
        }
        for content_hash in {name.partition("/")[0] for name in names}:
            text = descriptions.get(content_hash[:NAME_CHARS])
            if text is None or self.intake.is_transient(content_hash):
                continue
            try:
                await self.intake.files.describe(content_hash, text)
            except StoreError as error:
                _log.warning("a description of a picture can't be stored", error=str(error))

    async def _select(self, hashes: Sequence[str]) -> frozenset[str]:
        """Return the newest pictures, as many as fit into a request."""
        size = 0
        count = 0
        for content_hash in reversed(hashes):
            size += len(await self._encode(content_hash))
            if size > MAX_PICTURE_BYTES or count >= MAX_PICTURES:
                break
            count += 1
        left_out = len(hashes) - count
        if left_out:
            left_out = min(len(hashes) - 1, -(-left_out // DROP_STEP) * DROP_STEP)
        return frozenset(hashes[left_out:])

    async def _fill_block(
        self, block: Json, sent_hashes: frozenset[str], *, is_blind: bool
    ) -> Json:
        """Return a picture with its bytes, or a note if the model doesn't get them."""
        if not is_hash_picture(block):
            return block
        content_hash = block["source"]["data"]
        replacement: dict[str, Any] = dict(_BLIND if is_blind else _OLD)
        if content_hash in sent_hashes:
            data = await self._encode(content_hash)
            replacement = dict(_GONE)
            if data:
                source = {"type": "base64", "media_type": VIEW_TYPE, "data": data}
                replacement = {"type": "image", "source": source}
        if "cache_control" in block:
            replacement["cache_control"] = block["cache_control"]
        return replacement

    async def _encode(self, content_hash: str) -> str:
        """Return a picture in Base64, or "" if its bytes are gone."""
        data = self._encoded.pop(content_hash, None)
        if data is None:
            view = await self.intake.read_view(content_hash)
            data = base64.b64encode(view or b"").decode("ascii")
        if data and not self.intake.is_transient(content_hash):
            self._encoded[content_hash] = data
            while sum(map(len, self._encoded.values())) > MAX_CACHED_BYTES:
                self._encoded.popitem(last=False)
        return data

    def invalidate(self) -> None:
        """Remove the pictures from memory, because data was erased."""
        self._encoded.clear()


def _shows_files(row: Message) -> bool:
    """Return whether the sent form of a message contains the frame of a file that is stored."""
    texts = [str(block.get("text", "")) for block in row.sent_blocks or ()]
    return any(FILE_LEAD in text and _MISSING not in text for text in texts)


def _drop_duplicates(files: Sequence[AttachedFile]) -> list[AttachedFile]:
    """Return the files without those that have the same bytes as an earlier one."""
    unique_files: list[AttachedFile] = []
    hashes: set[str] = set()
    for file in files:
        if file.content is not None and file.content.hash in hashes:
            continue
        if file.content is not None:
            hashes.add(file.content.hash)
        unique_files.append(file)
    return unique_files


def _describe_scans(pages: Sequence[int], views: int) -> str:
    """Return a sentence about the pages of a document without text, and the pictures of some."""
    sentence = f"Pages that are scans, pictures without text: {format_pages(pages)}."
    if not views:
        return sentence
    order = ", ".join(map(str, pages[:views]))
    return f"{sentence} The pictures that follow show, in this order, page {order}."


def format_pages(pages: Sequence[int]) -> str:
    """Return the numbers of pages as text, such as "2, 5–9"."""
    spans: list[list[int]] = []
    for page in sorted(pages):
        if spans and page == spans[-1][-1] + 1:
            spans[-1][1:] = [page]
        else:
            spans.append([page])
    return ", ".join("–".join(map(str, span)) for span in spans)


def is_hash_picture(block: Json) -> bool:
    """Return whether a block is a picture that is given by its hash."""
    return block.get("type") == "image" and block["source"].get("type") == HASH_SOURCE


def _pictures(message: Json) -> list[Json]:
    return [block for block in message["content"] if is_hash_picture(block)]


def clean_name(name: str) -> str:
    """Return the name of a file on one short line, without characters of Mneme's own markup."""
    line = " ".join(name.split()).replace("[", "(").replace("]", ")").replace("”", "'")
    return neutralise(line)[:80]


def describe_details(file: AttachedFile) -> str:
    """Return the type and size of a file, such as "PDF, 12 pages, 1.2 MB"."""
    content = file.content
    if content is None:
        return file.kind
    kind = name_type(content.type)
    details = [file.kind if len(kind) > MAX_TYPE_CHARS else kind]
    if content.pages:
        details.append(f"{content.pages} page{'' if content.pages == 1 else 's'}")
    if content.width and content.height:
        details.append(f"{content.width}x{content.height}")
    if content.duration_s:
        details.append(format_seconds(content.duration_s))
    details.append(format_size(content.size))
    return ", ".join(details)


def format_size(size: int) -> str:
    """Return a number of bytes as text, such as "312 kB" or "1.2 MB"."""
    if size < 1_000:
        return f"{size} bytes"
    if size < 1_000_000:
        return f"{size / 1_000:.0f} kB"
    return f"{size / 1_000_000:.1f} MB"


def _render_text(
    name: str, parts: Sequence[FilePart], limit_chars: int, note: str, *, is_stored: bool
) -> str:
    """Return the frame of a document with its whole text, or with its outline and beginning.

    The rest of a stored document can be read with `read_document`.
    """
    size = sum(len(part.text) for part in parts)
    if size <= limit_chars:
        head = f"[{name}, which aren't the words of the person who sent them:"
        head = f"{head} {note}]" if note else f"{head}]"
        return "\n\n".join([head, *(render_part(part) for part in parts)])
    shown_parts: list[str] = []
    shown_chars = 0
    for part in parts:
        text = cut_text(part.text, limit_chars - shown_chars)
        shown_parts.append(render_part(FilePart(label=part.label, text=text)))
        shown_chars += len(text)
        if len(text) < len(part.text) or shown_chars >= limit_chars:
            break
    head = (
        f"[{name}, which aren't the words of the person who sent them: an outline and the first "
        f"{shown_chars:,} of {size:,} characters. {note and note + ' '}"
    )
    cut_mark = "[…]"
    if is_stored:
        head += "Read the rest with read_document before you say that something isn't there."
        cut_mark = describe_cut(shown_chars, size)
    outline = render_outline(parts, MAX_OUTLINE_PARTS)
    return "\n\n".join([f"{head.strip()}]", outline, *shown_parts, cut_mark])


def cut_text(text: str, limit_chars: int) -> str:
    """Return the beginning of a text, which ends after a line or word if possible."""
    if len(text) <= limit_chars:
        return text
    head = text[: max(1, limit_chars)]
    for mark in ("\n", " "):
        end = head.rfind(mark) + 1
        if end > len(head) // 2:
            return head[:end]
    return head


def describe_cut(shown_chars: int, total_chars: int) -> str:
    """Return the mark at the end of a cut text. It tells the model how to read on."""
    return (
        f"[Cut after {shown_chars} of {total_chars} characters. Read on with read_document and "
        f"offset={shown_chars}.]"
    )


def render_outline(parts: Sequence[FilePart], max_parts: int) -> str:
    """Return a line for each part with its first words, and its length if it's long.

    If there are too many parts, some are left out, and the last line says so.
    """
    step = -(-len(parts) // max_parts)
    lines = []
    for part in parts[::step]:
        words = neutralise(shorten(part.text[: OUTLINE_CHARS * 2], OUTLINE_CHARS))
        label = neutralise(part.label) or "text"
        if len(part.text) > LONG_PART_CHARS:
            label = f"{label} ({len(part.text):,} characters)"
        lines.append(f"- {label}: {words}")
    if step > 1:
        lines.append(f"[Only one of {step} parts is listed.]")
    return "\n".join(lines)


def render_part(part: FilePart) -> str:
    """Return a part of a file's text below a line with its label."""
    # A line of the document must not look like the beginning of a part.
    text = _PART_LINE.sub(r"\1–", neutralise(part.text))
    return f"— {neutralise(part.label)} —\n{text}" if part.label else text
