"""Builds the rows and the stored details of files from messages, tools and decoded bytes."""

from __future__ import annotations

import re

from core.media.decoding import Decoded
from core.store.media.files import AttachedFile, FileContent, FilePart
from core.types import Attachment, File, Inbound, Scope

# Begins the note of a document with scanned pages, such as "scan:2,5".
_SCAN_PREFIX = "scan:"
# The signs that change the direction of the text after them.
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")


def make_row(inbound: Inbound, scope: Scope, position: int, attachment: Attachment) -> AttachedFile:
    """Return the row of a file that isn't stored yet."""
    return AttachedFile(
        scope=scope,
        address=inbound.address,
        external_id=inbound.message_id,
        position=position,
        account=inbound.account.key,
        kind=attachment.kind,
        name=_clean_name(attachment),
        mime=attachment.mime,
        size=attachment.size_bytes,
        reference=attachment.reference,
        at=inbound.sent_at,
    )


def _clean_name(attachment: Attachment) -> str:
    """Return the name of a file without signs that reverse it, or its kind if the name is blank."""
    return _DIRECTIONS.sub("", attachment.name).strip() or attachment.kind


def name_made_kind(file: File) -> str:
    """Return the kind under which a file from a tool is stored."""
    if file.is_document:
        return "document"
    return "audio" if file.mime.startswith("audio/") else "image"


def describe_content(content_hash: str, size: int, decoded: Decoded) -> FileContent:
    """Return the stored details of a decoded file."""
    return FileContent(
        hash=content_hash,
        type=decoded.type,
        size=size,
        pages=decoded.pages,
        duration_s=decoded.duration_s,
        width=decoded.width,
        height=decoded.height,
        note=_describe_scans(decoded) or decoded.note,
    )


def _describe_scans(decoded: Decoded) -> str:
    """Return the note of a document with scanned pages, such as "scan:2,5", or ""."""
    if not decoded.scanned_pages:
        return ""
    return _SCAN_PREFIX + ",".join(map(str, decoded.scanned_pages))


def list_scanned_pages(content: FileContent) -> list[int]:
    """Return the pages without text of a document that has text on other pages.

    The views show the first of them, in this order.
    """
    if not content.note.startswith(_SCAN_PREFIX):
        return []
    return [int(number) for number in content.note.removeprefix(_SCAN_PREFIX).split(",")]


def list_parts(decoded: Decoded) -> list[FilePart]:
    return [FilePart(label=part.label, text=part.text) for part in decoded.parts]


def hide_animation(file: AttachedFile, decoded: Decoded) -> Decoded:
    """Remove the text of a moving sticker from the content of a file.

    Moving stickers of Discord are drawings in JSON. Their text isn't meant to be read.
    """
    if file.kind != "sticker" or not decoded.parts:
        return decoded
    return decoded.model_copy(update={"parts": (), "note": "unknown"})
