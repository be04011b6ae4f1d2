"""Describes files that people sent, in the language of the reader."""

from __future__ import annotations

import re

from core.media.blocks import MAX_TYPE_CHARS
from core.media.formats.kinds import name_type
from core.media.speech import format_seconds
from core.search.rendering import word_place
from core.store.media.files import AttachedFile, FilePart
from gateway.texts.catalog import Texts, load_texts

_PAGES = re.compile(r"(\d+) pages?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) (bytes|kB|MB)")
_UNITS = {"bytes": 1, "kB": 1_000, "MB": 1_000_000}


def describe_details(texts: Texts, file: AttachedFile) -> str:
    """Return the type and size of a file, such as "pdf, 12 Seiten, 1,2 MB"."""
    content = file.content
    kind = _word_kind(texts, file.kind)
    if content is None:
        return texts.COMMA.join([kind, texts.FILE_NOT_KEPT])
    file_type = name_type(content.type)
    details = [kind if len(file_type) > MAX_TYPE_CHARS else _word_kind(texts, file_type)]
    if content.pages:
        details.append(texts.format_count(content.pages, "page"))
    if content.width and content.height:
        details.append(f"{content.width}x{content.height}")
    if content.duration_s:
        details.append(format_seconds(content.duration_s))
    return texts.COMMA.join([*details, format_size(texts, content.size)])


def word_details(details: str, language: str) -> str:
    """Translate the English details that a model gets, such as "pdf, 12 pages, 1.2 MB"."""
    texts = load_texts(language)
    return texts.COMMA.join(_word_detail(texts, detail) for detail in details.split(", "))


def _word_detail(texts: Texts, detail: str) -> str:
    pages = _PAGES.fullmatch(detail)
    if pages is not None:
        return texts.format_count(int(pages[1]), "page")
    size = _SIZE.fullmatch(detail)
    if size is not None:
        return format_size(texts, round(float(size[1]) * _UNITS[size[2]]))
    return _word_kind(texts, detail)


def _word_kind(texts: Texts, kind: str) -> str:
    """Return a kind or type of file as text. A type such as "pdf" stays as it is."""
    return texts.table("FILE_KINDS").get(kind.replace(" ", "_"), kind)


def format_size(texts: Texts, size: int) -> str:
    """Return a number of bytes as text, such as "312 kB" or "1,2 GB"."""
    words = texts.table("FILE_SIZES")
    if size < 1_000:
        return words["bytes"].format(count=size)
    if size < 1_000_000:
        return words["kilobytes"].format(count=round(size / 1_000))
    if size < 1_000_000_000:
        return words["megabytes"].format(count=texts.format_number(round(size / 1_000_000, 1)))
    return words["gigabytes"].format(count=texts.format_number(round(size / 1_000_000_000, 1)))


def describe_part(texts: Texts, part: FilePart | None) -> str:
    """Return the place of a part in its file, such as "Seite 7", or "" if it has none."""
    return word_place(part.label, texts.result_words) if part is not None else ""
