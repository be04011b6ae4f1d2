"""Reads the text of PowerPoint presentations.

Only the worker process imports this module, and it checks first that the archives are small.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

from core.media.formats.kinds import CUT_MARK

# Further slides aren't read.
MAX_SLIDES = 1_000
_PARAGRAPH = "{http://schemas.openxmlformats.org/drawingml/2006/main}p"
_TEXT = "{http://schemas.openxmlformats.org/drawingml/2006/main}t"
_SLIDE_ID = "{http://schemas.openxmlformats.org/presentationml/2006/main}sldId"
_RELATION_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_PRESENTATION = "ppt/presentation.xml"


def read_pptx(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of each slide, followed by the speaker's notes. The label is "slide 3".

    Raises KeyError, ValueError or ElementTree.ParseError if the presentation is broken.
    """
    with zipfile.ZipFile(path) as archive:
        files = _read_relations(archive, _PRESENTATION)
        presentation = ElementTree.fromstring(archive.read(_PRESENTATION))
        slides = [files[slide.attrib[_RELATION_ID]] for slide in presentation.iter(_SLIDE_ID)]
        for number, name in enumerate(slides[:MAX_SLIDES], start=1):
            lines = _read_lines(archive, name)
            for related in _read_relations(archive, name).values():
                if related.startswith("ppt/notesSlides/"):
                    lines += _read_lines(archive, related)
            yield f"slide {number}", "\n".join(lines)
        if len(slides) > MAX_SLIDES:
            yield "", CUT_MARK


def _read_relations(archive: zipfile.ZipFile, name: str) -> Mapping[str, str]:
    """Return the names of the files that a file of the archive refers to, by their ids."""
    folder, file_name = posixpath.split(name)
    try:
        content = archive.read(f"{folder}/_rels/{file_name}.rels")
    except KeyError:
        return {}
    return {
        relation.attrib["Id"]: posixpath.normpath(
            posixpath.join("/", folder, relation.attrib["Target"])
        ).lstrip("/")
        for relation in ElementTree.fromstring(content)
    }


def _read_lines(archive: zipfile.ZipFile, name: str) -> list[str]:
    """Return the paragraphs of a slide that have text."""
    lines = []
    for paragraph in ElementTree.fromstring(archive.read(name)).iter(_PARAGRAPH):
        line = "".join(text.text or "" for text in paragraph.iter(_TEXT)).strip()
        if line:
            lines.append(line)
    return lines
