"""Prepares the files that Mneme sends: stored files, and answers as files.

The position is removed from pictures and recordings, also inside documents, mails and archives.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path

from core.media.decoding import Decoder
from core.media.folder import MediaFolder
from core.store.media.files import AttachedFile
from core.types import File

_PLAIN = "text/plain"
# The types of files that an answer can be sent as, by extension.
DOCUMENT_TYPES: Mapping[str, str] = {
    "md": "text/markdown",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "ics": "text/calendar",
    "json": "application/json",
    **dict.fromkeys(("txt", "yaml", "toml", "py", "js", "ts", "sh", "sql", "css"), _PLAIN),
    **dict.fromkeys(("c", "h", "cpp", "go", "java", "kt", "rb", "rs"), _PLAIN),
}
# Files of these types contain the whole answer, even if it has a code block.
_WHOLE_TYPES = frozenset({"md", "txt"})
MAX_STEM_CHARS = 60
DOCUMENT_NAME = "answer.md"
_CODE_BLOCK = re.compile(r"^```[^`\n]*\n(.*?)^```[^\S\n]*$", re.DOTALL | re.MULTILINE)


def clean_document_name(name: str) -> str:
    """Return a file name for an answer that is sent as a file.

    If the extension is missing or isn't in `DOCUMENT_TYPES`, the name gets the extension of
    Markdown.
    """
    line = " ".join(name.split()).replace("/", "_").replace("\\", "_").strip(". ")
    stem, _, ending = line.rpartition(".")
    if not stem:
        stem, ending = line, ""
    stem = stem.strip(". ")
    if not stem:
        return DOCUMENT_NAME
    ending = ending.lower() if ending.lower() in DOCUMENT_TYPES else "md"
    return f"{stem[:MAX_STEM_CHARS]}.{ending}"


def make_document(name: str, text: str) -> File:
    """Return an answer as a file. `name` comes from `clean_document_name`.

    If the answer has exactly one code block, a table, calendar or code file contains only that
    block.
    """
    ending = name.rpartition(".")[2]
    blocks = [] if ending in _WHOLE_TYPES else _CODE_BLOCK.findall(text)
    content = blocks[0] if len(blocks) == 1 else text
    if ending == "ics":
        # RFC 5545 requires this line break.
        content = content.replace("\r\n", "\n").replace("\n", "\r\n")
    return File(name=name, content=content.encode("utf-8", "replace"), mime=DOCUMENT_TYPES[ending])


async def load_outgoing(file: AttachedFile, folder: MediaFolder, decoder: Decoder) -> File | None:
    """Load a stored file to send with an answer, or return None if its bytes are gone.

    Raises Refused if the position can't be removed from the file.
    """
    if file.content is None:
        return None
    content = await asyncio.to_thread(folder.read, file.content.hash)
    if content is None:
        return None
    content = await _remove_position(content, file, folder, decoder)
    return File(
        name=_add_suffix(file),
        content=content,
        mime=file.content.type,
        is_document=file.kind == "document",
    )


async def _remove_position(
    content: bytes, file: AttachedFile, folder: MediaFolder, decoder: Decoder
) -> bytes:
    """Return the bytes of a file without the position in its metadata."""
    assert file.content is not None
    with decoder.open_scratch() as scratch:
        copy_path = Path(scratch, "copy")
        path = folder.path_of(file.content.hash)
        if await decoder.clean(path, copy_path, file.name):
            return await asyncio.to_thread(copy_path.read_bytes)
    return content


def _add_suffix(file: AttachedFile) -> str:
    """Return the name of a file with an extension, which the platform may have left out."""
    name = " ".join(file.name.split()).replace("/", "_") or "file"
    if "." in name or file.content is None:
        return name
    return f"{name}.{file.content.type.rpartition('/')[2]}"
