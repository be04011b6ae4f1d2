"""Reads OpenDocument texts, tables and presentations, as LibreOffice writes them.

Only the worker process imports this module, and it checks first that the archives are small.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from core.media.formats.kinds import CUT_MARK, ODP, ODS

# Further slides and sheets aren't read.
MAX_SLIDES = 1_000
_ODF = "{urn:oasis:names:tc:opendocument:xmlns:"
_HEADING, _PARAGRAPH = f"{_ODF}text:1.0}}h", f"{_ODF}text:1.0}}p"
_TABLE, _ROW = f"{_ODF}table:1.0}}table", f"{_ODF}table:1.0}}table-row"
_CELLS = (f"{_ODF}table:1.0}}table-cell", f"{_ODF}table:1.0}}covered-table-cell")
_TABLE_NAME = f"{_ODF}table:1.0}}name"
_SLIDE = f"{_ODF}drawing:1.0}}page"
# Text that was deleted while changes were recorded.
_DELETED = f"{_ODF}text:1.0}}tracked-changes"
_BLANKS = {
    f"{_ODF}text:1.0}}s": " ",
    f"{_ODF}text:1.0}}tab": "\t",
    f"{_ODF}text:1.0}}line-break": "\n",
}
Part = tuple[str, str]


def read_open_document(path: Path, mime: str) -> Iterator[Part]:
    """Yield the sections, sheets or slides of a document, each with its label.

    Raises KeyError, ValueError or ElementTree.ParseError if the document is broken.
    """
    with zipfile.ZipFile(path) as archive:
        root = ElementTree.fromstring(archive.read("content.xml"))
    for element in root.iter():
        element.text = _BLANKS.get(element.tag, element.text)
    if mime not in (ODS, ODP):
        yield from _read_sections(root)
        return
    pages = list(root.iter(_TABLE if mime == ODS else _SLIDE))
    for number, page in enumerate(pages[:MAX_SLIDES], start=1):
        if mime == ODS:
            yield f"sheet {page.get(_TABLE_NAME, '')}", "\n".join(_list_rows(page))
        else:
            lines = [line for _, line in _list_lines(page)]
            yield f"slide {number}", "\n".join(lines)
    if len(pages) > MAX_SLIDES:
        yield "", CUT_MARK


def _read_sections(root: ElementTree.Element) -> Iterator[Part]:
    """Yield the headings of a text, each with the text below it."""
    label = ""
    lines: list[str] = []
    for is_heading, line in _list_lines(root):
        if is_heading:
            if label or lines:
                yield label, "\n".join(lines)
            label = f"section {line}"
            lines = []
        else:
            lines.append(line)
    if label or lines:
        yield label, "\n".join(lines)


def _list_lines(element: ElementTree.Element) -> Iterator[tuple[bool, str]]:
    """Yield the paragraphs and rows inside an element. The first value is True for headings."""
    for child in element:
        if child.tag == _DELETED:
            continue
        if child.tag == _TABLE:
            yield from ((False, row) for row in _list_rows(child))
        elif child.tag in (_HEADING, _PARAGRAPH):
            line = "".join(child.itertext()).strip()
            if line:
                yield child.tag == _HEADING, line
        else:
            yield from _list_lines(child)


def _list_rows(table: ElementTree.Element) -> Iterator[str]:
    """Yield the rows of a table that have text, with " | " between the cells."""
    for row in table.iter(_ROW):
        cells = [
            " ".join(line for _, line in _list_lines(cell)) for cell in row if cell.tag in _CELLS
        ]
        line = " | ".join(cells).rstrip(" |")
        if line:
            yield line
