"""Reads Word documents with python-docx and tables with openpyxl.

Only the worker process imports this module, and it checks first that the archives are small.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import docx
import openpyxl
from docx.document import Document
from docx.oxml.ns import qn
from docx.table import Table
from docx.text.paragraph import Paragraph

from core.media.formats.kinds import CUT_MARK

# Further rows of a sheet aren't read.
MAX_ROWS = 20_000


def read_docx(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the sections of a Word document: the heading, and the text below it.

    Text before the first heading has an empty label. Tables become lines with " | " between the
    cells. Raises one of `texts.ERRORS` if the document is broken.
    """
    document = docx.Document(str(path))
    label = ""
    lines: list[str] = []
    for item in _list_body(document):
        if isinstance(item, Table):
            for row in item.rows:
                cells = [" ".join(cell.text.split()) for cell in row.cells]
                lines.append(" | ".join(dict.fromkeys(cells)))
            continue
        style = item.style.name if item.style is not None else ""
        if (style or "").startswith(("Heading", "Title")) and item.text.strip():
            if label or lines:
                yield label, "\n".join(lines)
            label = f"section {item.text.strip()}"
            lines = []
        elif item.text.strip():
            lines.append(item.text)
    if label or lines:
        yield label, "\n".join(lines)


def _list_body(document: Document) -> Iterator[Paragraph | Table]:
    """Yield the paragraphs and tables of a document in order."""
    for element in document.element.body.iterchildren():
        if element.tag == qn("w:p"):
            yield Paragraph(element, document)
        elif element.tag == qn("w:tbl"):
            yield Table(element, document)


def read_xlsx(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of each sheet, and its rows as lines with " | " between the cells.

    Raises one of `texts.ERRORS` if the file is broken.
    """
    # The library refuses a path without the ending ".xlsx".
    workbook = openpyxl.load_workbook(BytesIO(path.read_bytes()), read_only=True, data_only=True)
    for sheet in workbook.worksheets:
        lines: list[str] = []
        for number, cells in enumerate(sheet.iter_rows(values_only=True, max_row=MAX_ROWS + 1)):
            if number == MAX_ROWS:
                lines.append(CUT_MARK)
                break
            texts = ["" if cell is None else str(cell) for cell in cells]
            if any(texts):
                lines.append(" | ".join(texts).rstrip(" |"))
        yield f"sheet {sheet.title}", "\n".join(lines)
