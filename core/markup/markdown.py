"""Renders Markdown as text with entities, from which the messages of all platforms are made.

It also renders Markdown as plain text, escapes text for Markdown, and cuts rendered text into
messages. It follows the rules of Telegram's Bot API: nothing nests inside code, and quotes don't
nest.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.tree import SyntaxTreeNode

EntityKind = Literal[
    "bold",
    "italic",
    "strikethrough",
    "code",
    "pre",
    "text_link",
    "blockquote",
    "heading",
    "list_marker",
]
T = TypeVar("T")
_STYLES: dict[str, EntityKind] = {"strong": "bold", "em": "italic", "s": "strikethrough"}
_SCHEMES = ("http://", "https://", "tg://", "mailto:", "tel:")
_RULE = "———"
# The parser leaves out text that is nested deeper.
_MAX_PARSED_DEPTH = 30
# A text that is nested deeper is shown as it was written.
_MAX_DEPTH = 24
# Longer addresses are ordinary text.
URL_CHARS = 2000
# Full stop, exclamation and question mark of East Asian scripts. No space follows them.
CJK_STOPS = "\u3002\uff01\uff1f"
CJK_PAUSES = "\u3001\uff0c\uff1b\uff1a"
CJK_CLOSERS = "\u300d\u300f\uff09\u3011\u300b"
_CJK_OPENERS = "\uff08\u300c\u300e\u3010\u300a"
_URL = re.compile(
    r"(?<![^\W_])(?<!\\)https?://"
    rf"(?:(?!\*\*|~~)[^\s<>\"'`\[\]|\\{{}}^{CJK_STOPS}{CJK_PAUSES}{CJK_CLOSERS}{_CJK_OPENERS}])"
    f"{{1,{URL_CHARS}}}",
    re.IGNORECASE,
)
_URL_TRAIL = ".,;:!?*~"
_MAX_COLUMN_WIDTH = 40
# A text of this length is rendered and cut within some milliseconds, whatever it contains.
_LOOP_CHARS = 1000
# The search for the end of a grapheme looks this far beyond a cut.
_GRAPHEME_CHARS = 64
_ESCAPED_CHARACTER = re.compile(r"[\\`*_\[\]<>~|&#]")
_INDENT = re.compile(r"\n[^\S\n]+")
_LINE_MARK = re.compile(r"(?<=\n)(?:([0-9]+)(?=[.)])|(?=[+\-=:]))")
_SENTENCE_END = re.compile(rf"[.!?…](?=\s)|[{CJK_STOPS}](?![{CJK_CLOSERS}])")
_WORD_END = re.compile(
    rf"(?=\s)|(?<=[{CJK_STOPS}{CJK_PAUSES}])(?![{CJK_STOPS}{CJK_PAUSES}{CJK_CLOSERS}])"
)


class _Boundary(Enum):
    """Where a text may be cut; the best kind first."""

    PARAGRAPH = "paragraph"
    LINE = "line"
    SENTENCE = "sentence"


# A cut at such a boundary must use at least this share of the message. A cut between words may use
# any share.
_MIN_SHARES = {_Boundary.PARAGRAPH: 0.5, _Boundary.LINE: 0.6, _Boundary.SENTENCE: 0.6}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEntity:
    """A piece of text, measured in characters, and its style."""

    # The type of a Telegram MessageEntity. Two more are for Discord: a heading, which is bold as
    # well, and the marker of a list item.
    kind: EntityKind
    offset: int
    length: int
    # The address of a text_link.
    url: str | None = None
    # The language of a pre.
    language: str | None = None
    # The level of a heading.
    level: int = 0

    @property
    def end(self) -> int:
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class StyledText:
    """A text with its entities.

    The entities are in order of their offsets, and an outer entity comes before its inner ones.
    Entities may nest, but don't overlap in any other way.
    """

    text: str
    entities: tuple[TextEntity, ...] = ()

    def cut_out(self, start: int, end: int) -> StyledText:
        """The text between two positions, with the parts of the entities that are in it."""
        before_end = bisect_left(self.entities, end, key=lambda entity: entity.offset)
        entities = [entity for entity in self.entities[:before_end] if entity.end > start]
        if start > 0 or any(entity.end > end for entity in entities):
            entities = [_clip_entity(entity, start, end) for entity in entities]
        return StyledText(self.text[start:end], tuple(entities))


def _clip_entity(entity: TextEntity, start: int, end: int) -> TextEntity:
    """The part of an entity between two positions, with its offset counted from `start`."""
    first, last = max(entity.offset, start), min(entity.end, end)
    return replace(entity, offset=first - start, length=last - first)


async def run_off_loop(work: Callable[[str], T], text: str) -> T:
    """``work(text)``, in a thread if the text is so long that it would block the event loop."""
    if len(text) <= _LOOP_CHARS:
        return work(text)
    return await asyncio.to_thread(work, text)


def render(markdown: str) -> StyledText:
    """Render Markdown as text with entities, without white space at its end.

    The result is empty if nothing is visible.
    """
    writer = _render_blocks(markdown, is_plain=False)
    entities = sorted(
        writer.entities,
        key=lambda entity: (entity.offset, -entity.length, entity.kind != "heading"),
    )
    return _strip_end(StyledText("".join(writer.chunks), tuple(entities)))


def to_plain(markdown: str) -> str:
    """Render Markdown as text alone.

    Only lists, quotes and tables keep marks. The address of a link follows it in brackets.
    """
    return "".join(_render_blocks(markdown, is_plain=True).chunks).rstrip()


def escape(text: str) -> str:
    """Markdown that renders as exactly this text.

    It is for names, titles and quotations inside of a composed message.
    """
    pieces: list[str] = []
    for piece, is_url in split_addresses("\n" + make_well_formed(text)):
        if is_url:
            pieces.append(piece)
            continue
        piece = _INDENT.sub("\n", _ESCAPED_CHARACTER.sub(r"\\\g<0>", piece))
        pieces.append(_LINE_MARK.sub(r"\1\\", piece))
    return "".join(pieces)[1:]


def utf16_length(text: str) -> int:
    """The length of a text in UTF-16 units, as Telegram counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def make_well_formed(text: str) -> str:
    """The text with single-character line breaks and valid characters.

    NUL and lone surrogates are replaced, because no platform accepts them.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    if any("\ud800" <= character <= "\udfff" for character in text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _render_blocks(markdown: str, *, is_plain: bool) -> _Writer:
    """Parse Markdown as people write it in chats, and write its blocks.

    The syntax is CommonMark with tables and strikethrough. Raw HTML and reference definitions are
    text, and a line break is a line break. A ``*`` inside a word (``2*3*4``) is a star, and a bare
    web address stays as it is. A text that is nested too deeply is shown as it was written. The
    time is about linear.
    """
    from markdown_it.tree import SyntaxTreeNode

    text = make_well_formed(markdown)
    writer = _Writer(text.split("\n"), is_plain=is_plain)
    tokens = _parser().parse(text)
    is_shallow = all(
        token.level < _MAX_DEPTH
        for block_token in tokens
        for token in (block_token, *(block_token.children or ()))
    )
    if is_shallow:
        writer.write_blocks(SyntaxTreeNode(tokens).children)
    else:
        writer.write(text)
    return writer


class _Writer:
    """Collects text and entities from the syntax tree."""

    def __init__(self, lines: Sequence[str], *, is_plain: bool) -> None:
        """`lines` is the source; a plain writer makes no entities."""
        self.lines = lines
        self.is_plain = is_plain
        self.chunks: list[str] = []
        self.entities: list[TextEntity] = []
        # How many characters were written.
        self.offset = 0
        # What every line of the current block begins with.
        self.prefix = ""
        # The kinds of entities that are open.
        self.active_kinds: set[str] = set()
        # Start and end of each piece of code, which takes no other style.
        self.code_spans: list[tuple[int, int]] = []

    def write(self, text: str) -> None:
        self.chunks.append(text)
        self.offset += len(text)

    def write_blocks(self, nodes: Sequence[SyntaxTreeNode]) -> None:
        for index, node in enumerate(nodes):
            if index > 0:
                self.write(self._gap_before(node) + self.prefix)
            self._write_block(node)

    def _gap_before(self, node: SyntaxTreeNode) -> str:
        """The line breaks before a block. There is a blank line if the source has one."""
        if node.map is None:
            return "\n\n"
        first_line = node.map[0]
        has_blank_line = first_line > 0 and not self.lines[first_line - 1].strip(" \t>")
        return "\n\n" if has_blank_line else "\n"

    def _write_block(self, node: SyntaxTreeNode) -> None:
        """Write one block by its type."""
        match node.type:
            case "heading" if node.markup == "-":
                # In a chat, a line of dashes under a paragraph is meant as a ruled line.
                self.write_inlines(node.children)
                self.write(f"\n{self.prefix}{_RULE}")
            case "heading":
                start = self.offset
                self._write_styled("bold", node)
                self._add_entity("heading", start, level=int(node.tag[1:]))
            case "bullet_list" | "ordered_list":
                self._write_list(node)
            case "blockquote":
                self._write_quote(node)
            case "fence" | "code_block":
                info_words = node.info.split()
                language = info_words[0] if info_words else None
                self._write_code(node.content.removesuffix("\n"), language)
            case "table":
                self._write_code("\n".join(_table_lines(node)), None)
            case "hr":
                self.write(_RULE)
            case _:
                self.write_inlines(node.children)

    def _write_list(self, node: SyntaxTreeNode) -> None:
        """Write a list. The lines of an item are indented by the width of its marker."""
        outer_prefix = self.prefix
        first_number = int(node.attrs.get("start", 1))
        for index, item in enumerate(node.children):
            if index > 0:
                self.write(self._gap_before(item) + outer_prefix)
            marker = "• " if node.type == "bullet_list" else f"{first_number + index}. "
            self.write(marker)
            self._add_entity("list_marker", self.offset - len(marker))
            self.prefix = outer_prefix + " " * len(marker)
            self.write_blocks(item.children)
            self.prefix = outer_prefix

    def _write_quote(self, node: SyntaxTreeNode) -> None:
        """Write a quote as an entity. Quotes in quotes and in plain text get a ``>`` per line."""
        if self.is_plain or "blockquote" in self.active_kinds:
            outer_prefix = self.prefix
            self.write("> ")
            self.prefix = outer_prefix + "> "
            self.write_blocks(node.children)
            self.prefix = outer_prefix
        else:
            start = self.offset
            self.active_kinds.add("blockquote")
            self.write_blocks(node.children)
            self.active_kinds.discard("blockquote")
            self._add_entity("blockquote", start)

    def _write_code(self, text: str, language: str | None) -> None:
        """Write a code block.

        As an entity, it begins at the left edge, because spaces before its lines would become part
        of the code.
        """
        if self.is_plain:
            self.write(text.replace("\n", "\n" + self.prefix))
            return
        if self.prefix and self.chunks and self.chunks[-1].endswith("\n" + self.prefix):
            self.chunks[-1] = self.chunks[-1].removesuffix(self.prefix)
            self.offset -= len(self.prefix)
        if self.chunks and not self.chunks[-1].endswith("\n"):
            self.write("\n")
        start = self.offset
        self.write(text)
        self.code_spans.append((start, self.offset))
        self._add_entity("pre", start, language=language)

    def write_inlines(self, nodes: Sequence[SyntaxTreeNode]) -> None:
        """Write inline nodes by their types."""
        for node in nodes:
            match node.type:
                case "inline":
                    self.write_inlines(node.children)
                case "softbreak" | "hardbreak":
                    self.write("\n" + self.prefix)
                case "code_inline":
                    start = self.offset
                    self.write(node.content)
                    if "text_link" not in self.active_kinds:
                        self.code_spans.append((start, self.offset))
                        self._add_entity("code", start)
                case "strong" | "em" | "s":
                    self._write_styled(_STYLES[node.type], node)
                case "link" | "image":
                    self._write_link(node)
                case _:
                    self.write(node.content.replace("\n", " "))

    def _write_link(self, node: SyntaxTreeNode) -> None:
        """Write a link or image.

        If no platform can open the address, it becomes part of the text, so that it isn't lost.
        """
        url = str(node.attrs.get("href") or node.attrs.get("src") or "")
        is_link = url.lower().startswith(_SCHEMES) and not self.is_plain
        start, first_chunk = self.offset, len(self.chunks)
        if node.type == "image":
            self.write(node.content.replace("\n", " "))
        elif is_link:
            self.active_kinds.add("text_link")
            self.write_inlines(node.children)
            self.active_kinds.discard("text_link")
        else:
            self.write_inlines(node.children)

        label = "".join(self.chunks[first_chunk:])
        if not label.strip():
            self.write(url)
        elif label == url or node.info == "auto":
            return
        elif is_link:
            self._add_entity("text_link", start, url=url)
        elif url:
            self.write(f" ({url.removeprefix('mailto:').removeprefix('tel:')})")

    def _write_styled(self, kind: EntityKind, node: SyntaxTreeNode) -> None:
        """Write the children in a style. The style leaves out pieces of code."""
        if kind in self.active_kinds:
            self.write_inlines(node.children)
            return
        start, first_code = self.offset, len(self.code_spans)
        self.active_kinds.add(kind)
        self.write_inlines(node.children)
        self.active_kinds.discard(kind)
        end = self.offset
        for code_start, code_end in self.code_spans[first_code:]:
            self._add_entity(kind, start, code_start)
            start = code_end
        self._add_entity(kind, start, end)

    def _add_entity(
        self, kind: EntityKind, start: int, end: int | None = None, **fields: Any
    ) -> None:
        """Add an entity from `start` to `end`, or to the end of the text, unless it is empty."""
        if end is None:
            end = self.offset
        if end > start:
            self.entities.append(TextEntity(kind=kind, offset=start, length=end - start, **fields))


def _table_lines(table: SyntaxTreeNode) -> list[str]:
    """The lines of a table with aligned columns and a rule under the first row.

    The parser gives all rows the same number of cells.
    """
    rows: list[Sequence[SyntaxTreeNode]] = []
    for part in table.children:
        rows += [row.children for row in part.children]
    alignments = [str(cell.attrs.get("style", "")).removeprefix("text-align:") for cell in rows[0]]
    texts = [[_inline_text(cell) for cell in row] for row in rows]
    widths = [
        min(max(map(width, column)), _MAX_COLUMN_WIDTH) for column in zip(*texts, strict=True)
    ]
    lines = [" | ".join(map(_pad_cell, row, widths, alignments)).rstrip() for row in texts]
    rule = "-+-".join("-" * columns for columns in widths)
    return [lines[0], rule, *lines[1:]]


def _inline_text(cell: SyntaxTreeNode) -> str:
    """The visible text of a cell with its addresses, on one line."""
    writer = _Writer((), is_plain=True)
    writer.write_inlines(cell.children)
    return "".join(writer.chunks).replace("\n", " ").strip()


def width(text: str) -> int:
    """The columns that a text takes in a monospaced font."""
    if text.isascii():
        return len(text)
    columns = 0
    for character in text:
        if unicodedata.category(character) in ("Mn", "Me", "Cf"):
            continue
        columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return columns


def _pad_cell(cell: str, columns: int, alignment: str) -> str:
    padding = max(0, columns - width(cell))
    left_padding = {"right": padding, "center": padding // 2}.get(alignment, 0)
    return " " * left_padding + cell + " " * (padding - left_padding)


@cache
def _parser() -> MarkdownIt:
    """The parser, with rules of our own for addresses, brackets and emphasis."""
    # Imported when something is rendered, which most commands of the command line never do.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_PARSED_DEPTH})
    parser.enable(["table", "strikethrough"])
    parser.disable(["reference", "html_block", "html_inline"])
    parser.inline.ruler.at("emphasis", _parse_emphasis)
    parser.inline.ruler.before("escape", "address", _parse_address)
    parser.inline.ruler.before("link", "bracket", _parse_bracket)
    return parser


def _parse_address(state: StateInline, silent: bool) -> bool:
    """A parser rule: a bare web address is text, even if it contains marks.

    The parser stops at the colon, so the scheme was already read as text.
    """
    has_https = state.src[max(state.pos - 5, 0) : state.pos].lower() == "https"
    begin = state.pos - (5 if has_https else 4)
    if begin < 0 or not state.src.startswith("://", state.pos):
        return False
    match = _URL.match(state.src, begin)
    url = _trim_url(match[0]) if match else ""
    rest = url[url.find("://") :]
    if not rest:
        return False
    if not silent and not state.pending.lower().endswith(("http", "https")):
        return False
    if not silent:
        state.append_pending(rest)
    state.pos += len(rest)
    return True


def _parse_bracket(state: StateInline, silent: bool) -> bool:
    """A parser rule: a bracket is text if no link or image can end after it.

    The parser would search for the end of a link at each bracket, which takes long.
    """
    mark = "![" if state.src.startswith("![", state.pos) else "["
    # In spite of its name, `html_terminator_last` finds the last position of any string. It caches
    # the position.
    if not state.src.startswith(mark, state.pos) or state.html_terminator_last("](") > state.pos:
        return False
    if not silent:
        state.append_pending(mark)
    state.pos += len(mark)
    return True


def _parse_emphasis(state: StateInline, silent: bool) -> bool:
    """A parser rule: the delimiter runs of CommonMark, with three differences.

    A run inside a word opens nothing if it is one star or touches a digit, since that is
    arithmetic. East Asian text needs no spaces around a run (as in markdown-cjk-friendly). And
    ``__name__.x`` and ``__name__()`` are names.
    """
    from markdown_it.rules_inline.emphasis import tokenize

    start, first_delimiter = state.pos, len(state.delimiters)
    if not tokenize(state, silent):
        return False
    before = state.src[start - 1] if start else " "
    after = state.src[state.pos : state.posMax][:2] or " "
    run = state.delimiters[first_delimiter:]
    for delimiter in run:
        if state.src[start] == "*":
            delimiter.open, delimiter.close = _star_flanking(
                before, after[0], len(run), delimiter.open, delimiter.close
            )
        elif after[0] == "(" or (after[0] == "." and after[1:].isalnum()):
            delimiter.close = False
    return True


def _star_flanking(
    before: str, after: str, length: int, can_open: bool, can_close: bool
) -> tuple[bool, bool]:
    """Whether a run of stars between two characters may open, and may close, a style."""
    if is_cjk(before) or is_cjk(after):
        return not after.isspace(), not before.isspace()
    if before.isalnum() and after.isalnum():
        touches_digit = before.isdigit() or after.isdigit()
        return can_open and length > 1 and not touches_digit, can_close
    return can_open, can_close


def is_cjk(character: str) -> bool:
    """Whether a character belongs to an East Asian script or its punctuation."""
    is_wide = character >= "\u1100" and unicodedata.east_asian_width(character) in "WF"
    return is_wide and unicodedata.category(character) not in ("So", "Sk")


def _trim_url(url: str) -> str:
    """An address without punctuation and brackets that belong to the sentence around it.

    Empty if only the scheme remains.
    """
    surplus_brackets = url.count(")") - url.count("(")
    while True:
        last = url[-1]
        if last == ")" and surplus_brackets > 0:
            surplus_brackets -= 1
        elif last not in _URL_TRAIL:
            break
        url = url[:-1]
    return "" if url.endswith("/") and url.count("/") == 2 else url


def split_addresses(text: str) -> Iterator[tuple[str, bool]]:
    """Split a text at its bare web addresses into pieces, and say of each if it is an address."""
    position = 0
    for match in _URL.finditer(text):
        if url := _trim_url(match[0]):
            yield text[position : match.start()], False
            yield url, True
            position = match.start() + len(url)
    yield text[position:], False


def split(styled: StyledText, limit: int, measure: Callable[[StyledText], int]) -> list[StyledText]:
    """Cut a text into parts with ``measure(part) <= limit``; no parts for blank text.

    `measure` gives the length of a part as the platform counts it. Only white space between parts
    is lost.
    """
    styled = _strip_end(styled)
    parts: list[StyledText] = []
    position = 0
    while position < len(styled.text):
        begin = _skip_blank_lines(styled, position)
        # Text beyond this doesn't influence the cut.
        lookahead = styled.cut_out(begin, begin + 2 * limit + _GRAPHEME_CHARS)
        part, length = _first_part(lookahead, limit, measure)
        parts.append(part)
        position = begin + length
    return [part for part in parts if part.text]


@lru_cache(64)
def _first_part(
    rest: StyledText, limit: int, measure: Callable[[StyledText], int]
) -> tuple[StyledText, int]:
    """The first part of `rest`, and how many characters of `rest` it takes.

    While an answer grows, its first parts stay the same, so they come from the cache.
    """
    # No platform counts a text as much shorter than it is.
    while len(rest.text) > 2 * limit or measure(rest) > limit:
        sizes = range(min(len(rest.text), 2 * limit) + 1)
        end = bisect_right(
            sizes, limit, key=lambda size: measure(_strip_end(rest.cut_out(0, size)))
        )
        end -= 1
        if end > 0 or all(entity.offset > 0 for entity in rest.entities):
            end = _find_boundary(rest, max(end, 1))
            return _strip_end(rest.cut_out(0, end)), end
        # An address is longer than the message. The words without it are better than nothing.
        entities = tuple(entity for entity in rest.entities if entity.offset > 0)
        rest = replace(rest, entities=entities)
    return rest, len(rest.text)


def _find_boundary(styled: StyledText, end: int) -> int:
    """The best position for a cut at or before `end`.

    Paragraphs come first, then lines, sentences, words and graphemes.
    """
    text = styled.text
    for boundary, min_share in _MIN_SHARES.items():
        least = int(end * min_share)
        positions = (
            position for position in _list_boundaries(styled, boundary, end) if position > least
        )
        position = max(positions, default=0)
        if position > 0 and text[:position].strip():
            return position
    word_ends = [
        match.start() for match in _WORD_END.finditer(text, 0, end + 1) if 0 < match.start() <= end
    ]
    if word_ends and text[: word_ends[-1]].strip():
        return word_ends[-1]
    graphemes = [
        position for position in grapheme_ends(text[: end + _GRAPHEME_CHARS]) if position <= end
    ]
    return graphemes[-1] if graphemes else end


def grapheme_ends(text: str) -> list[int]:
    """The positions after each user-perceived character (Unicode Annex 29)."""
    # Imported here because it loads slowly, and only a word longer than a message needs it.
    import regex  # type: ignore[import-untyped]

    return [match.end() for match in regex.finditer(r"\X", text)]


def _list_boundaries(styled: StyledText, boundary: _Boundary, end: int) -> Iterator[int]:
    """The positions up to `end` at which a paragraph, line or sentence ends.

    Code has only lines, and a heading stays together with the text below it.
    """
    if boundary is _Boundary.SENTENCE:
        for match in _SENTENCE_END.finditer(styled.text, 0, end + 1):
            if match.end() <= end:
                yield match.end()
        return
    separator = "\n\n" if boundary is _Boundary.PARAGRAPH else "\n"
    code_spans = [(entity.offset, entity.end) for entity in styled.entities if entity.kind == "pre"]
    heading_ends = {entity.end for entity in styled.entities if entity.kind == "heading"}
    position = styled.text.find(separator)
    while 0 <= position <= end:
        is_in_code = any(start <= position < stop for start, stop in code_spans)
        is_paragraph_in_code = is_in_code and boundary is _Boundary.PARAGRAPH
        if position not in heading_ends and not is_paragraph_in_code:
            yield position
        position = styled.text.find(separator, position + 1)


def _skip_blank_lines(styled: StyledText, start: int) -> int:
    """The position after blank lines. In code, the indentation of the next line stays."""
    text = styled.text
    begin = len(text) - len(text[start:].lstrip())
    is_code = any(
        entity.kind == "pre" and entity.offset <= begin < entity.end for entity in styled.entities
    )
    if not is_code:
        return begin
    return max(start, text.rfind("\n", start, begin) + 1)


def _strip_end(styled: StyledText) -> StyledText:
    return styled.cut_out(0, len(styled.text.rstrip()))
