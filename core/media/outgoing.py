"""Prepares the files that Mneme sends: stored files, and answers as files.

The position is removed from pictures and recordings, also inside documents, mails and archives.
"""

from __future__ import annotations

import asyncio
import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path

from core.markup.markdown import render, to_html
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
    "html": "text/html",
    "json": "application/json",
    **dict.fromkeys(("txt", "yaml", "toml", "py", "js", "ts", "sh", "sql", "css"), _PLAIN),
    **dict.fromkeys(("c", "h", "cpp", "go", "java", "kt", "rb", "rs"), _PLAIN),
    **dict.fromkeys(("php", "swift", "tex", "ini", "diff"), _PLAIN),
}
# Files of these types contain the whole answer, even if it has a code block.
_WHOLE_TYPES = frozenset({"md", "txt"})
# The types of tables, with the signs between their cells.
_DELIMITERS: Mapping[str, str] = {"csv": ",", "tsv": "\t"}
# A cell that a spreadsheet would run as a formula. Numbers such as "-5" or "+49 30 1234" are none.
_FORMULA = re.compile(r"[=@]|[+-](?![\d\s.,])")
_PAGE = """\
<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
</head>
<body>
{body}</body>
</html>
"""
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
    block. Without one, the only table of the answer becomes a CSV file, and the answer itself an
    HTML page.
    """
    ending = name.rpartition(".")[2]
    blocks = [] if ending in _WHOLE_TYPES else _CODE_BLOCK.findall(text)
    content = blocks[0] if len(blocks) == 1 else text
    if not blocks and ending in _DELIMITERS:
        content = _write_table(text, _DELIMITERS[ending]) or text
    if not blocks and ending == "html":
        content = _PAGE.format(body=to_html(text))
    if ending == "ics":
        # RFC 5545 requires this line break.
        content = content.replace("\r\n", "\n").replace("\n", "\r\n")
    return File(name=name, content=content.encode("utf-8", "replace"), mime=DOCUMENT_TYPES[ending])


def _write_table(markdown: str, delimiter: str) -> str:
    """Return the only table of an answer as CSV, or "" if it has none or several.

    A program that opens the file must not run a cell as a formula, so such cells get a "'".
    """
    entities = render(markdown).entities
    tables = [entity.table for entity in entities if entity.table is not None]
    if len(tables) != 1:
        return ""
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
    for row in tables[0].rows:
        writer.writerow([f"'{cell}" if _FORMULA.match(cell) else cell for cell in row])
    return buffer.getvalue()


def has_calendar(text: str) -> bool:
    """Return whether an answer contains the text of a calendar file."""
    return "BEGIN:VCALENDAR" in text


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
