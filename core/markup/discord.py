"""Writes rendered text in Discord's own Markdown.

Marks and mentions in the text itself are escaped, so they have no effect.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from core.markup.markdown import StyledText, TextEntity, split_addresses

_MARKS = {"bold": "**", "italic": "*", "strikethrough": "~~"}
# The places before which a backslash keeps Discord from reading a mark: *, ~, `, |, an underscore
# at the edge of a word, a backslash, < and the position after @ in @everyone. Discord treats only
# ASCII letters as letters.
_MARK = re.compile(
    r"[*~`|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|\\(?![A-Za-z0-9\s])|<(?=\S)|(?<=@)(?=everyone|here)"
)
# The start of a line that Discord would read as a list item, heading or quote: "1.", "#", ">", "-".
_LINE_MARK = re.compile(r"(?<=\n)([^\S\n]*)(?:([0-9]+)(?=[.)])|(?=[#>+-]))")
# A scheme inside a word or behind a backslash, where no address begins.
_SCHEME = re.compile(r"https?:(?=//)", re.IGNORECASE)
_ZERO_WIDTH_SPACE = "\u200b"
_MAX_HEADING_LEVEL = 3


def to_discord(styled: StyledText) -> str:
    """Return a styled text in Discord's Markdown. All marks in the text itself are escaped."""
    return _write_range(styled.text, 0, len(styled.text), styled.entities)


def _write_range(
    text: str, start: int, end: int, entities: Sequence[TextEntity], *, is_heading: bool = False
) -> str:
    """Return the text from `start` to `end` with the marks of its `entities`.

    In a heading, bold text gets no marks, because Discord shows the whole heading in bold.
    """
    pieces: list[str] = []
    index = 0
    while index < len(entities):
        entity = entities[index]
        # The entities inside this entity follow it in the list.
        next_index = bisect_left(entities, entity.end, index + 1, key=lambda other: other.offset)
        inner = entities[index + 1 : next_index]
        pieces.append(_write_plain(text, start, entity.offset))
        if entity.kind == "bold" and is_heading:
            pieces.append(_write_range(text, entity.offset, entity.end, inner))
        else:
            pieces.append(_write_entity(text, entity, inner))
        start = entity.end
        index = next_index
    pieces.append(_write_plain(text, start, end))
    return "".join(pieces)


def _write_entity(text: str, entity: TextEntity, inner: Sequence[TextEntity]) -> str:
    """Return the text of one entity with its marks. `inner` are the entities inside it."""
    raw = text[entity.offset : entity.end]
    match entity.kind:
        case "code":
            return _write_code_span(raw)
        case "pre":
            return _write_code_block(raw, entity.language or "")
        case "list_marker":
            return raw.replace("•", "-")

    has_heading_mark = entity.kind == "heading" and entity.level <= _MAX_HEADING_LEVEL
    content = _write_range(text, entity.offset, entity.end, inner, is_heading=has_heading_mark)
    match entity.kind:
        case "heading":
            mark = f"{'#' * entity.level} " if has_heading_mark else ""
            return mark + content.replace("\n", " ")
        case "blockquote":
            return "\n".join(f"> {line}" for line in content.split("\n"))
        case "text_link":
            return _write_link(content, entity.url or "")
        case _:
            return _put_marks_around(content, _MARKS[entity.kind])


def _put_marks_around(content: str, mark: str) -> str:
    """Return the text with marks around it: `` two words `` -> `` **two words** ``.

    White space at the ends stays outside, because Discord ignores marks next to white space.
    """
    words = content.strip()
    if not words:
        return content
    return content.replace(words, f"{mark}{words}{mark}")


def _write_code_block(text: str, language: str) -> str:
    """Return a fenced code block. Fences in the text are broken with zero-width spaces."""
    is_language = language.replace("+", "").replace("-", "").replace("#", "").isalnum()
    text = _break_backticks(text, 3)
    return f"```{language if is_language else ''}\n{text}\n```"


def _write_code_span(text: str) -> str:
    """Return inline code. Text with backticks is enclosed in two backticks on each side."""
    if "`" not in text:
        return f"`{text}`"
    padding = "" if text.strip("`") == text else " "
    return f"``{padding}{_break_backticks(text, 2)}{padding}``"


def _break_backticks(text: str, min_count: int) -> str:
    """Put zero-width spaces into runs of backticks that would end the code."""
    return re.sub(f"`{{{min_count},}}", lambda run: _ZERO_WIDTH_SPACE.join(run[0]), text)


def _write_link(label: str, url: str) -> str:
    """Return ``[label](<url>)`` if Discord shows that as a link, otherwise ``label (url)``.

    Discord shows such a link only for web addresses, and only if the label doesn't look like an
    address.
    """
    if url.lower().startswith(("http://", "https://")) and "://" not in label:
        return f"[{label}](<{url}>)".replace("\n", " ")
    address = url.removeprefix("mailto:").removeprefix("tel:")
    return f"{label} ({_write_address(address)})"


def _write_address(url: str) -> str:
    """Return a web address in ``<>``, so that Discord doesn't show a preview."""
    is_web = url.lower().startswith(("http://", "https://"))
    return f"<{url}>" if is_web else url


def _write_plain(text: str, start: int, end: int) -> str:
    """Return the text from `start` to `end`, which has no entities, with its marks escaped.

    Web addresses are enclosed in ``<>``. No line becomes a heading, list item, quote or small
    print.
    """
    pieces = [
        _write_address(piece) if is_url else _escape_marks(piece)
        for piece, is_url in split_addresses(text[start:end])
    ]
    escaped_text = "".join(pieces)
    if start > 0 and text[start - 1] not in "\n ":
        # The text continues a line, so its beginning isn't the start of a line.
        return _LINE_MARK.sub(r"\1\2\\", escaped_text)
    return _LINE_MARK.sub(r"\1\2\\", f"\n{escaped_text}")[1:]


def _escape_marks(text: str) -> str:
    """Return a text with escaped marks, so that Discord finds no address in it.

    A "[" is escaped only if "](" follows, as in a link.
    """
    text = _SCHEME.sub(rf"\g<0>{_ZERO_WIDTH_SPACE}", text)
    before, bracket, after = text.rpartition("](")
    before = _MARK.sub(_escape_match, before).replace("[", "\\[")
    return before + _MARK.sub(_escape_match, bracket + after)


def _escape_match(match: re.Match[str]) -> str:
    """Return a mark after a backslash.

    @here and @everyone get a zero-width space after the @ instead.
    """
    return f"\\{match[0]}" if match[0] else _ZERO_WIDTH_SPACE
