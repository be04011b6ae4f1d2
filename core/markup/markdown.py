"""Renders Markdown as text with entities, of which every platform's messages are made, or as text alone (pipes); and
writes a text so that Markdown reads it as it is. Cuts a rendered text into parts that each fit into one message.

Follows the rules of Telegram's Bot API: nothing nests in code and pre, and quotes do not nest.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.tree import SyntaxTreeNode

EntityKind = Literal[
    "bold", "italic", "strikethrough", "code", "pre", "text_link", "blockquote", "heading", "list_marker"
]
T = TypeVar("T")
_STYLES: dict[str, EntityKind] = {"strong": "bold", "em": "italic", "s": "strikethrough"}
_SCHEMES = ("http://", "https://", "tg://", "mailto:", "tel:")
_RULE = "———"
_DEEPEST_PARSED = 30
"""What is nested deeper the parser leaves out."""
_DEEPEST = 24
URL_CHARS = 2000
"""Longer addresses are text like any other."""
CJK_STOPS = "\u3002\uff01\uff1f"
"""Full stop, exclamation and question mark of East Asian scripts, which no space follows."""
CJK_PAUSES = "\u3001\uff0c\uff1b\uff1a"
CJK_CLOSERS = "\u300d\u300f\uff09\u3011\u300b"
_CJK_OPENERS = "\uff08\u300c\u300e\u3010\u300a"
_URL = re.compile(
    rf"(?<![^\W_])(?<!\\)https?://(?:(?!\*\*|~~)[^\s<>\"'`\[\]|\\{{}}^{CJK_STOPS}{CJK_PAUSES}{CJK_CLOSERS}{_CJK_OPENERS}])"
    f"{{1,{URL_CHARS}}}",
    re.IGNORECASE,
)
_URL_TRAIL = ".,;:!?*~"
_WIDEST_COLUMN = 40
_LOOP_CHARS = 1000  # rendered and cut in some milliseconds, whatever stands there
_GRAPHEME_CHARS = 64  # so many are looked at behind a cut
_ESCAPED = re.compile(r"[\\`*_\[\]<>~|&#]")
_INDENT = re.compile(r"\n[^\S\n]+")
_LINE_MARK = re.compile(r"(?<=\n)(?:([0-9]+)(?=[.)])|(?=[+\-=:]))")
_SENTENCE_END = re.compile(rf"[.!?…](?=\s)|[{CJK_STOPS}](?![{CJK_CLOSERS}])")
_WORD_END = re.compile(rf"(?=\s)|(?<=[{CJK_STOPS}{CJK_PAUSES}])(?![{CJK_STOPS}{CJK_PAUSES}{CJK_CLOSERS}])")
_LEAST_SHARE = {"\n\n": 0.5, "\n": 0.6, "sentence": 0.6}
"""A cut at such a boundary may leave so much of the part unused; one between words any share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEntity:
    """A stretch of text, in characters, and what it is. `kind` is the type of a Telegram MessageEntity, or a heading
    (of `level`, bold as well) or the marker of a list item, which are for Discord. `url` goes with text_link,
    `language` with pre."""

    kind: EntityKind
    offset: int
    length: int
    url: str | None = None
    language: str | None = None
    level: int = 0

    @property
    def end(self) -> int:
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class StyledText:
    """`entities` in order of their offset, an outer one before the inner; they nest and never cross."""

    text: str
    entities: tuple[TextEntity, ...] = ()

    def part(self, start: int, end: int) -> StyledText:
        """The text between two positions, with what is left of its entities."""
        before = self.entities[: bisect_left(self.entities, end, key=lambda entity: entity.offset)]
        kept = [entity for entity in before if entity.end > start]
        if start > 0 or any(entity.end > end for entity in kept):
            spans = [(entity, max(entity.offset, start), min(entity.end, end)) for entity in kept]
            kept = [replace(entity, offset=first - start, length=last - first) for entity, first, last in spans]
        return StyledText(self.text[start:end], tuple(kept))


async def off_loop(work: Callable[[str], T], text: str) -> T:
    """``work(text)``, in a thread where the text is so long that the event loop would stand still."""
    return work(text) if len(text) <= _LOOP_CHARS else await asyncio.to_thread(work, text)


def render(markdown: str) -> StyledText:
    """Without white space at its end; empty where nothing is visible."""
    writer = _written(markdown, is_plain=False)
    entities = sorted(writer.entities, key=lambda entity: (entity.offset, -entity.length, entity.kind != "heading"))
    return _without_end(StyledText("".join(writer.chunks), tuple(entities)))


def to_plain(markdown: str) -> str:
    """Text without any marks but those of lists, quotes and tables; the address of a link follows it in brackets."""
    return "".join(_written(markdown, is_plain=True).chunks).rstrip()


def escape(text: str) -> str:
    """Markdown that reads as exactly this text: for names, titles and quotations inside a composed message."""
    pieces = []
    for piece, is_url in addresses("\n" + well_formed(text)):
        escaped = _INDENT.sub("\n", _ESCAPED.sub(r"\\\g<0>", piece))
        pieces.append(piece if is_url else _LINE_MARK.sub(r"\1\\", escaped))
    return "".join(pieces)[1:]


def utf16_length(text: str) -> int:
    """The length of a text in UTF-16 units, as Telegram counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def well_formed(text: str) -> str:
    """The text with line breaks as one character and without what no platform takes (NUL, half surrogates)."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    if any("\ud800" <= character <= "\udfff" for character in text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _written(markdown: str, *, is_plain: bool) -> _Writer:
    """CommonMark, tables and strikethrough, as people write them in chats: raw HTML and reference definitions are text,
    a line break is a line break, a `*` inside a word (``2*3*4``) is a star, and a bare web address is left alone. What
    is nested deeper than anybody reads is shown as it was written. Takes about linear time."""
    from markdown_it.tree import SyntaxTreeNode

    text = well_formed(markdown)
    writer = _Writer(text.split("\n"), is_plain=is_plain)
    tokens = _parser().parse(text)
    if all(token.level < _DEEPEST for outer in tokens for token in (outer, *(outer.children or ()))):
        writer.blocks(SyntaxTreeNode(tokens).children)
    else:
        writer.write(text)
    return writer


class _Writer:
    """Collects text and entities. `prefix` stands at the beginning of every line of the present block."""

    def __init__(self, lines: Sequence[str], *, is_plain: bool) -> None:
        self.lines = lines
        self.is_plain = is_plain
        self.chunks: list[str] = []
        self.entities: list[TextEntity] = []
        self.offset = 0
        self.prefix = ""
        self.active: set[str] = set()
        self.holes: list[tuple[int, int]] = []

    def write(self, text: str) -> None:
        self.chunks.append(text)
        self.offset += len(text)

    def blocks(self, nodes: Sequence[SyntaxTreeNode]) -> None:
        for index, node in enumerate(nodes):
            if index:
                self.write(self.gap(node) + self.prefix)
            self.block(node)

    def gap(self, node: SyntaxTreeNode) -> str:
        """What stands before a block: a blank line where one was written."""
        first = node.map[0] if node.map else 0
        return "\n\n" if node.map is None or (first > 0 and not self.lines[first - 1].strip(" \t>")) else "\n"

    def block(self, node: SyntaxTreeNode) -> None:
        match node.type:
            case "heading" if node.markup == "-":
                # A line of dashes under a paragraph is meant as a ruled line in chats.
                self.inlines(node.children)
                self.write(f"\n{self.prefix}{_RULE}")
            case "heading":
                start = self.offset
                self.styled("bold", node)
                self.entity("heading", start, level=int(node.tag[1:]))
            case "bullet_list" | "ordered_list":
                self.items(node)
            case "blockquote":
                self.quote(node)
            case "fence" | "code_block":
                self.code(node.content.removesuffix("\n"), next(iter(node.info.split()), None))
            case "table":
                self.code("\n".join(_table_lines(node)), None)
            case "hr":
                self.write(_RULE)
            case _:
                self.inlines(node.children)

    def items(self, node: SyntaxTreeNode) -> None:
        prefix = self.prefix
        first = int(node.attrs.get("start", 1))
        for index, item in enumerate(node.children):
            if index:
                self.write(self.gap(item) + prefix)
            mark = "• " if node.type == "bullet_list" else f"{first + index}. "
            self.write(mark)
            self.entity("list_marker", self.offset - len(mark))
            self.prefix = prefix + " " * len(mark)
            self.blocks(item.children)
            self.prefix = prefix

    def quote(self, node: SyntaxTreeNode) -> None:
        prefix = self.prefix
        if self.is_plain or "blockquote" in self.active:
            self.write("> ")
            self.prefix = prefix + "> "
            self.blocks(node.children)
        else:
            start = self.offset
            self.active.add("blockquote")
            self.blocks(node.children)
            self.active.discard("blockquote")
            self.entity("blockquote", start)
        self.prefix = prefix

    def code(self, text: str, language: str | None) -> None:
        """A code block. With entities it stands at the left edge: spaces before its lines would belong to the code."""
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
        self.holes.append((start, self.offset))
        self.entity("pre", start, language=language)

    def inlines(self, nodes: Sequence[SyntaxTreeNode]) -> None:
        for node in nodes:
            match node.type:
                case "inline":
                    self.inlines(node.children)
                case "softbreak" | "hardbreak":
                    self.write("\n" + self.prefix)
                case "code_inline":
                    start = self.offset
                    self.write(node.content)
                    if "text_link" not in self.active:
                        self.holes.append((start, self.offset))
                        self.entity("code", start)
                case "strong" | "em" | "s":
                    self.styled(_STYLES[node.type], node)
                case "link" | "image":
                    self.link(node)
                case _:
                    self.write(node.content.replace("\n", " "))

    def link(self, node: SyntaxTreeNode) -> None:
        """A link where the address can be opened; otherwise the address stands in the text, so that it is not lost."""
        url = str(node.attrs.get("href") or node.attrs.get("src") or "")
        is_link = url.lower().startswith(_SCHEMES) and not self.is_plain
        start, first_chunk = self.offset, len(self.chunks)
        if node.type == "image":
            self.write(node.content.replace("\n", " "))
        elif is_link:
            self.active.add("text_link")
            self.inlines(node.children)
            self.active.discard("text_link")
        else:
            self.inlines(node.children)
        label = "".join(self.chunks[first_chunk:])
        if not label.strip():
            self.write(url)
        elif label == url or node.info == "auto":
            return
        elif is_link:
            self.entity("text_link", start, url=url)
        elif url:
            self.write(f" ({url.removeprefix('mailto:').removeprefix('tel:')})")

    def styled(self, kind: EntityKind, node: SyntaxTreeNode) -> None:
        """Children in a style, cut around code, which takes none."""
        if kind in self.active:
            self.inlines(node.children)
            return
        start, first_hole = self.offset, len(self.holes)
        self.active.add(kind)
        self.inlines(node.children)
        self.active.discard(kind)
        end = self.offset
        for hole_start, hole_end in self.holes[first_hole:]:
            self.entity(kind, start, hole_start)
            start = hole_end
        self.entity(kind, start, end)

    def entity(self, kind: EntityKind, start: int, end: int | None = None, **extra: Any) -> None:
        end = self.offset if end is None else end
        if end > start:
            self.entities.append(TextEntity(kind=kind, offset=start, length=end - start, **extra))


def _table_lines(table: SyntaxTreeNode) -> list[str]:
    """With aligned columns; a ruled line under the first row. Each row has equally many cells."""
    cells = [row.children for part in table.children for row in part.children]
    aligns = [str(cell.attrs.get("style", "")).removeprefix("text-align:") for cell in cells[0]]
    rows = [[_inline_text(cell) for cell in row] for row in cells]
    widths = [min(max(map(width, column)), _WIDEST_COLUMN) for column in zip(*rows, strict=True)]
    lines = [" | ".join(map(_padded, row, widths, aligns)).rstrip() for row in rows]
    return [lines[0], "-+-".join("-" * columns for columns in widths), *lines[1:]]


def _inline_text(cell: SyntaxTreeNode) -> str:
    """The visible text of a cell, addresses included; one line."""
    writer = _Writer((), is_plain=True)
    writer.inlines(cell.children)
    return "".join(writer.chunks).replace("\n", " ").strip()


def width(text: str) -> int:
    """Columns that the text takes in a monospaced font."""
    if text.isascii():
        return len(text)
    shown = (character for character in text if unicodedata.category(character) not in ("Mn", "Me", "Cf"))
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in shown)


def _padded(cell: str, columns: int, align: str) -> str:
    room = max(0, columns - width(cell))
    left = {"right": room, "center": room // 2}.get(align, 0)
    return " " * left + cell + " " * (room - left)


@cache
def _parser() -> MarkdownIt:
    # Loaded when something is rendered: most commands of the command line never do.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST_PARSED}).enable(["table", "strikethrough"])
    parser.disable(["reference", "html_block", "html_inline"])
    parser.inline.ruler.at("emphasis", _emphasis)
    parser.inline.ruler.before("escape", "address", _address)
    parser.inline.ruler.before("link", "bracket", _bracket)
    return parser


def _address(state: StateInline, silent: bool) -> bool:
    """Takes a bare web address as text, so that the marks in it stay what they are."""
    begin = state.pos - (5 if state.src[max(state.pos - 5, 0) : state.pos].lower() == "https" else 4)
    found = _URL.match(state.src, begin) if begin >= 0 and state.src.startswith("://", state.pos) else None
    url = _trimmed(found[0]) if found else ""
    rest = url[url.find("://") :]
    if not rest or not (silent or state.pending.lower().endswith(("http", "https"))):
        return False
    if not silent:
        state.append_pending(rest)
    state.pos += len(rest)
    return True


def _bracket(state: StateInline, silent: bool) -> bool:
    """Takes a bracket as text at once where no link or image can begin any more: looking for its end costs much."""
    mark = "![" if state.src.startswith("![", state.pos) else "["
    if not state.src.startswith(mark, state.pos) or state.html_terminator_last("](") > state.pos:
        return False
    if not silent:
        state.append_pending(mark)
    state.pos += len(mark)
    return True


def _emphasis(state: StateInline, silent: bool) -> bool:
    """CommonMark's delimiter runs with two differences: a run inside a word of an alphabet opens nothing when it is one
    star or touches a digit (arithmetic), East Asian text needs no spaces around it (markdown-cjk-friendly), and
    ``__name__.x`` and ``__name__()`` are names."""
    from markdown_it.rules_inline.emphasis import tokenize

    start, known = state.pos, len(state.delimiters)
    if not tokenize(state, silent):
        return False
    before = state.src[start - 1] if start else " "
    after = state.src[state.pos : state.posMax][:2] or " "
    run = state.delimiters[known:]
    for delimiter in run:
        if state.src[start] == "*":
            delimiter.open, delimiter.close = _star(before, after[0], len(run), delimiter.open, delimiter.close)
        elif after[0] == "(" or (after[0] == "." and after[1:].isalnum()):
            delimiter.close = False
    return True


def _star(before: str, after: str, length: int, can_open: bool, can_close: bool) -> tuple[bool, bool]:
    """Whether a run of stars between two characters may open and close a style."""
    if is_cjk(before) or is_cjk(after):
        return not after.isspace(), not before.isspace()
    if before.isalnum() and after.isalnum():
        return can_open and length > 1 and not (before.isdigit() or after.isdigit()), can_close
    return can_open, can_close


def is_cjk(character: str) -> bool:
    """Whether the character is of a script written without spaces or its punctuation."""
    is_wide = character >= "\u1100" and unicodedata.east_asian_width(character) in "WF"
    return is_wide and unicodedata.category(character) not in ("So", "Sk")


def _trimmed(url: str) -> str:
    """Without the punctuation and closing brackets that belong to the sentence around an address."""
    surplus = url.count(")") - url.count("(")
    while (last := url[-1]) in _URL_TRAIL or (last == ")" and surplus > 0):
        surplus -= last == ")"
        url = url[:-1]
    return "" if url.endswith("/") and url.count("/") == 2 else url


def addresses(text: str) -> Iterator[tuple[str, bool]]:
    """The text in pieces, each with whether it is a bare web address."""
    done = 0
    for found in _URL.finditer(text):
        if url := _trimmed(found[0]):
            yield text[done : found.start()], False
            yield url, True
            done = found.start() + len(url)
    yield text[done:], False


def split(styled: StyledText, limit: int, measure: Callable[[StyledText], int]) -> list[StyledText]:
    """Parts with ``measure(part) <= limit``; `[]` for blank text. `measure` is the length of one part as the platform
    counts it. Nothing is lost or doubled but white space between parts."""
    parts, done, styled = list[StyledText](), 0, _without_end(styled)
    while done < len(styled.text):
        begin = _begin(styled, done)
        # What stands behind that decides nothing.
        part, length = _first_part(styled.part(begin, begin + 2 * limit + _GRAPHEME_CHARS), limit, measure)
        parts.append(part)
        done = begin + length
    return [part for part in parts if part.text]


@lru_cache(64)
def _first_part(rest: StyledText, limit: int, measure: Callable[[StyledText], int]) -> tuple[StyledText, int]:
    """The part with which `rest` begins, and how much of `rest` it takes. While an answer grows, most of them stay."""
    # Whatever the platform counts, a text is not sent shorter than it is by much.
    while len(rest.text) > 2 * limit or measure(rest) > limit:
        sizes = range(min(len(rest.text), 2 * limit) + 1)
        end = bisect_right(sizes, limit, key=lambda size: measure(_without_end(rest.part(0, size)))) - 1
        if end > 0 or all(entity.offset > 0 for entity in rest.entities):
            end = _boundary(rest, max(end, 1))
            return _without_end(rest.part(0, end)), end
        # An address longer than the message: better the words without it than nothing.
        rest = replace(rest, entities=tuple(entity for entity in rest.entities if entity.offset > 0))
    return rest, len(rest.text)


def _boundary(styled: StyledText, end: int) -> int:
    """The best place for a cut at or before `end`."""
    text = styled.text
    for sign, share in _LEAST_SHARE.items():
        least = int(end * share)
        places = (place for place in _places(styled, sign, end) if place > least)
        if (place := max(places, default=0)) and text[:place].strip():
            return place
    words = [found.start() for found in _WORD_END.finditer(text, 0, end + 1) if 0 < found.start() <= end]
    if words and text[: words[-1]].strip():
        return words[-1]
    graphemes = [place for place in grapheme_ends(text[: end + _GRAPHEME_CHARS]) if place <= end]
    return graphemes[-1] if graphemes else end


def grapheme_ends(text: str) -> list[int]:
    """The positions after each user-perceived character (Unicode Annex 29)."""
    # It takes a while to load and is needed for words longer than a message only.
    import regex  # type: ignore[import-untyped]

    return [match.end() for match in regex.finditer(r"\X", text)]


def _places(styled: StyledText, sign: str, end: int) -> Iterator[int]:
    """Positions up to `end` before which a blank line, a line, or a sentence ends. Inside of code there are only lines,
    and a heading goes with what follows it."""
    if sign == "sentence":
        yield from (found.end() for found in _SENTENCE_END.finditer(styled.text, 0, end + 1) if found.end() <= end)
        return
    code = [(entity.offset, entity.end) for entity in styled.entities if entity.kind == "pre"]
    headings = {entity.end for entity in styled.entities if entity.kind == "heading"}
    place = styled.text.find(sign)
    while 0 <= place <= end:
        is_in_code = any(start <= place < stop for start, stop in code)
        if place not in headings and not (is_in_code and sign == "\n\n"):
            yield place
        place = styled.text.find(sign, place + 1)


def _begin(styled: StyledText, start: int) -> int:
    """Where the text goes on behind blank lines; indentation in code stays."""
    text = styled.text
    begin = len(text) - len(text[start:].lstrip())
    is_code = any(entity.kind == "pre" and entity.offset <= begin < entity.end for entity in styled.entities)
    return max(start, text.rfind("\n", start, begin) + 1) if is_code else begin


def _without_end(styled: StyledText) -> StyledText:
    return styled.part(0, len(styled.text.rstrip()))
