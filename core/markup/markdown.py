"""Renders Markdown as text with entities.

Each platform adapter makes its messages from this text, and `splitting` cuts a long text into
parts. The entities follow the rules of Telegram's Bot API: code contains no other entities, and
quotes don't contain quotes. The module also renders Markdown as plain text and escapes text for
Markdown.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from core.markup.tables import align_table
from core.text.normalize import is_cjk, make_well_formed

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token
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
_DATA_URL = re.compile(r"(?i)[^/]*//(?:[^/]*@|(?!t\.me/[\w/]+\?thread=\d+\Z)[^?]*\?)")
_SCHEMES = ("http://", "https://", "tg://", "mailto:", "tel:")
_RULE = "———"
# The parser drops text that is nested deeper than this.
_MAX_PARSED_DEPTH = 30
# A text that is nested deeper than this isn't rendered. It is shown as it was written.
_MAX_DEPTH = 24
# A longer address is shown as ordinary text.
URL_CHARS = 2000
# East Asian punctuation, which has no space after it: stops; commas and colons; brackets.
CJK_STOPS = "\u3002\uff01\uff1f"
CJK_PAUSES = "\u3001\uff0c\uff1b\uff1a"
CJK_CLOSERS = "\u300d\u300f\uff09\u3011\u300b"
_CJK_OPENERS = "\uff08\u300c\u300e\u3010\u300a"
# A web address in a text, up to a space, a quotation mark, a bracket or a mark such as ** or ~~.
# Only a letter of a script without spaces or of Korean may come directly before it.
_URL = re.compile(
    r"(?<![^\W_\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3])(?<!\\)https?://"
    rf"(?:(?!\*\*|~~)[^\s<>\"'`\[\]|\\{{}}^{CJK_STOPS}{CJK_PAUSES}{CJK_CLOSERS}{_CJK_OPENERS}])"
    f"{{1,{URL_CHARS}}}",
    re.IGNORECASE,
)
# These characters at the end of an address belong to the sentence around it.
_URL_TRAIL = ".,;:!?*~"
# Rendering and cutting a text up to this length takes at most a few milliseconds.
_LOOP_CHARS = 1000
_ESCAPED_CHARACTER = re.compile(r"[\\`*_\[\]<>~|&#]")
_INDENT = re.compile(r"\n[^\S\n]+")  # a line break and the white space after it
# The start of a line that Markdown would read as a list item, rule or table: "1.", "+", "-", "=".
_LINE_MARK = re.compile(r"(?<=\n)(?:([0-9]+)(?=[.)])|(?=[+\-=:]))")


@dataclass(frozen=True, slots=True)
class Table:
    """The cells of a table. All rows have the same length; the first one has the headings."""

    rows: tuple[tuple[str, ...], ...]
    # "left", "right", "center" or "" for each column.
    alignments: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEntity:
    """The style of a piece of text. Offset and length are in characters."""

    # The type of a Telegram MessageEntity, or "heading" or "list_marker", which only Discord needs.
    # A heading also has an entity "bold".
    kind: EntityKind
    offset: int
    length: int
    # The address of a text_link.
    url: str | None = None
    # The language of a pre.
    language: str | None = None
    # The level of a heading.
    level: int = 0
    # The table that a whole pre shows, for platforms that have tables.
    table: Table | None = None

    @property
    def end(self) -> int:
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class StyledText:
    """A text with its entities.

    The entities are sorted by offset, and an outer entity comes before its inner ones. Two entities
    overlap only if one contains the other.
    """

    text: str
    entities: tuple[TextEntity, ...] = ()

    def cut_out(self, start: int, end: int) -> StyledText:
        """Return the text between two positions, with its entities clipped to the text."""
        before_end = bisect_left(self.entities, end, key=lambda entity: entity.offset)
        entities = [entity for entity in self.entities[:before_end] if entity.end > start]
        if start > 0 or any(entity.end > end for entity in entities):
            entities = [_clip_entity(entity, start, end) for entity in entities]
        return StyledText(self.text[start:end], tuple(entities))

    def strip_end(self) -> StyledText:
        """Return the text without trailing white space."""
        return self.cut_out(0, len(self.text.rstrip()))


def _clip_entity(entity: TextEntity, start: int, end: int) -> TextEntity:
    """Return the part of an entity between two positions, with its offset counted from `start`."""
    first, last = max(entity.offset, start), min(entity.end, end)
    return TextEntity(
        kind=entity.kind,
        offset=first - start,
        length=last - first,
        url=entity.url,
        language=entity.language,
        level=entity.level,
        table=entity.table if last - first == entity.length else None,
    )


async def run_off_loop(work: Callable[[str], T], text: str) -> T:
    """Return ``work(text)``.

    A long text is processed in a thread, so that it doesn't block the event loop.
    """
    if len(text) <= _LOOP_CHARS:
        return work(text)
    from core.markup.rendering_thread import run_in_thread

    return await run_in_thread(work, text)


def render(markdown: str) -> StyledText:
    """Render Markdown as text with entities, without trailing white space.

    The result is empty if nothing is visible.
    """
    writer = _render_blocks(markdown, is_plain=False)
    entities = sorted(
        writer.entities,
        key=lambda entity: (entity.offset, -entity.length, entity.kind != "heading"),
    )
    return StyledText("".join(writer.chunks), tuple(entities)).strip_end()


def to_plain(markdown: str) -> str:
    """Render Markdown as plain text.

    Only the marks of lists, quotes and tables stay. The address of a link follows in parentheses.
    """
    return "".join(_render_blocks(markdown, is_plain=True).chunks).rstrip()


def to_html(markdown: str) -> str:
    """Return the HTML of a text. HTML in the text itself becomes plain text."""
    return str(_parser().render(markdown))


def escape(text: str) -> str:
    """Return Markdown that renders as exactly this text.

    Use it for names, titles and quotations in a Markdown message.
    """
    pieces: list[str] = []
    # The added line break makes the patterns for the start of a line match the first line, too.
    for piece, is_url in split_addresses("\n" + make_well_formed(text)):
        if is_url:
            pieces.append(piece)
            continue
        piece = _INDENT.sub("\n", _ESCAPED_CHARACTER.sub(r"\\\g<0>", piece))
        pieces.append(_LINE_MARK.sub(r"\1\\", piece))
    return "".join(pieces)[1:]


def utf16_length(text: str) -> int:
    """Return the length of a text in UTF-16 units, as Telegram counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _render_blocks(markdown: str, *, is_plain: bool) -> _Writer:
    """Parse Markdown as people write it in chats, and return a writer with its blocks.

    The syntax is CommonMark with tables and strikethrough, with these differences: Raw HTML and
    reference definitions are text. A line break in the source is a line break in the result. A
    ``*`` inside a word (``2*3*4``) is an asterisk. A bare web address isn't changed. A text that is
    nested too deeply is shown as it was written. The time is about linear.
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
        tree = SyntaxTreeNode(tokens)
        writer.write_blocks(tree.children)
        # Otherwise, parents and children keep each other in memory.
        for node in list(tree.walk()):
            node.children = []
    else:
        writer.write(text)
    return writer


class _Writer:
    """Writes the nodes of a syntax tree as pieces of text, with entities unless `is_plain`."""

    def __init__(self, lines: Sequence[str], *, is_plain: bool) -> None:
        """Create an empty writer. `lines` are the lines of the source."""
        self.lines = lines
        self.is_plain = is_plain
        self.chunks: list[str] = []
        self.entities: list[TextEntity] = []
        # The number of characters written so far.
        self.offset = 0
        # Written at the start of each line of the current block: spaces in a list, "> " in a quote.
        self.prefix = ""
        # The kinds of the entities around the current node.
        self.active_kinds: set[str] = set()
        # Start and end of each piece of code. Other styles leave code out.
        self.code_spans: list[tuple[int, int]] = []

    def write(self, text: str) -> None:
        self.chunks.append(text)
        self.offset += len(text)

    def write_blocks(self, nodes: Sequence[SyntaxTreeNode]) -> None:
        """Write blocks with the line breaks between them."""
        for index, node in enumerate(nodes):
            if index > 0:
                self.write(self._gap_before(node) + self.prefix)
            self._write_block(node)

    def _gap_before(self, node: SyntaxTreeNode) -> str:
        """Return the line breaks before a block: two if the source has a blank line there."""
        if node.map is None:
            return "\n\n"
        first_line = node.map[0]
        has_blank_line = first_line > 0 and not self.lines[first_line - 1].strip(" \t>")
        return "\n\n" if has_blank_line else "\n"

    def _write_block(self, node: SyntaxTreeNode) -> None:
        """Write a block according to its type."""
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
                table = _read_table(node)
                lines = align_table(table.rows, table.alignments)
                self._write_code("\n".join(lines), None, table)
            case "hr":
                self.write(_RULE)
            case _:
                self.write_inlines(node.children)

    def _write_list(self, node: SyntaxTreeNode) -> None:
        """Write a list. Further lines of an item are indented by the width of its marker."""
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
        """Write a quote as an entity.

        In plain text and inside another quote, each line gets a ``>`` instead.
        """
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

    def _write_code(self, text: str, language: str | None, table: Table | None = None) -> None:
        """Write a code block, or a table as a code block.

        A block with an entity isn't indented, because the indentation would become part of the
        code.
        """
        if self.is_plain:
            self.write(text.replace("\n", "\n" + self.prefix))
            return
        # `write_blocks` has already written the prefix of the first line.
        if self.prefix and self.chunks and self.chunks[-1].endswith("\n" + self.prefix):
            self.chunks[-1] = self.chunks[-1].removesuffix(self.prefix)
            self.offset -= len(self.prefix)
        if self.chunks and not self.chunks[-1].endswith("\n"):
            self.write("\n")
        start = self.offset
        self.write(text)
        self.code_spans.append((start, self.offset))
        self._add_entity("pre", start, language=language, table=table)

    def write_inlines(self, nodes: Sequence[SyntaxTreeNode]) -> None:
        """Write inline nodes, such as text, code and links, according to their types."""
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
        """Write a link or image as an entity with its address.

        An address that contains data, or that platforms can't open, is shown as ``label
        (address)``.
        """
        url = str(node.attrs.get("href") or node.attrs.get("src") or "")
        is_link = url.lower().startswith(_SCHEMES) and not (self.is_plain or _DATA_URL.match(url))
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
        """Write the children of a node, with entities of this kind around all except code."""
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
        """Add an entity from `start` to `end`, or to the end of the text.

        An empty entity isn't added.
        """
        if end is None:
            end = self.offset
        if end > start:
            self.entities.append(TextEntity(kind=kind, offset=start, length=end - start, **fields))


def reveal_addresses(tokens: Sequence[Token]) -> None:
    """Show links whose address contains data as ``label (address)``, in parsed Markdown.

    A terminal shows other links by their label only. `_Writer._write_link` does the same for the
    platforms.
    """
    for token in tokens:
        if token.children:
            token.children = _reveal_children(token.children)


def _reveal_children(children: Sequence[Token]) -> list[Token]:
    revealed: list[Token] = []
    url = ""
    for token in children:
        address = str(token.attrs.get("href") or token.attrs.get("src") or "")
        has_data = _DATA_URL.match(address) is not None and token.info != "auto"
        if has_data and token.type == "image":
            revealed.append(_write_text(f"{token.content} ({address})"))
        elif has_data:
            url = address
        elif url and token.type == "link_close":
            revealed.append(_write_text(f" ({url})"))
            url = ""
        else:
            revealed.append(token)
    return revealed


def _write_text(content: str) -> Token:
    # Imported here because it loads slowly.
    from markdown_it.token import Token

    return Token("text", "", 0, content=content)


def _read_table(table: SyntaxTreeNode) -> Table:
    """Return the cells of a table. The parser ensures that all rows have the same length."""
    rows: list[Sequence[SyntaxTreeNode]] = []
    for part in table.children:
        rows += [row.children for row in part.children]
    alignments = [str(cell.attrs.get("style", "")).removeprefix("text-align:") for cell in rows[0]]
    texts = [tuple(_inline_text(cell) for cell in row) for row in rows]
    return Table(tuple(texts), tuple(alignments))


def _inline_text(cell: SyntaxTreeNode) -> str:
    """Return the text of a table cell on one line, with the addresses of its links."""
    writer = _Writer((), is_plain=True)
    writer.write_inlines(cell.children)
    return "".join(writer.chunks).replace("\n", " ").strip()


@cache
def _parser() -> MarkdownIt:
    """Return the Markdown parser, with our own rules for addresses, brackets and emphasis."""
    # Imported here because it loads slowly, and most shell commands don't render text.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_PARSED_DEPTH})
    parser.enable(["table", "strikethrough"])
    parser.disable(["reference", "html_block", "html_inline"])
    parser.inline.ruler.at("emphasis", _parse_emphasis)
    parser.inline.ruler.before("escape", "address", _parse_address)
    parser.inline.ruler.before("link", "bracket", _parse_bracket)
    return parser


def _parse_address(state: StateInline, silent: bool) -> bool:
    """Parser rule: parse the rest of a bare web address as text, even if it contains marks.

    The parser calls rules at the colon, so "http" or "https" is already in the text. Returns True
    if an address follows. If `silent`, nothing is written.
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
    """Parser rule: parse "[" or "![" as text if no "](" follows anywhere.

    Otherwise, the parser would search for the end of a link at each bracket, which takes long.
    Returns True if the bracket is text.
    """
    mark = "![" if state.src.startswith("![", state.pos) else "["
    # Despite its name, this method returns the last position of any string. It caches the result.
    if not state.src.startswith(mark, state.pos) or state.html_terminator_last("](") > state.pos:
        return False
    if not silent:
        state.append_pending(mark)
    state.pos += len(mark)
    return True


def _parse_emphasis(state: StateInline, silent: bool) -> bool:
    """Parser rule: read a run of ``*`` or ``_`` as CommonMark does, with three differences.

    - A single star inside a word opens no style, nor does a run next to a digit: ``2*3*4``.
    - Next to East Asian characters, a run needs no spaces around it (as in markdown-cjk-friendly).
    - ``__name__.x`` and ``__name__()`` are names, not bold text.
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
    """Return whether a run of stars may open a style, and whether it may close one.

    The run is between the characters `before` and `after`. `can_open` and `can_close` are the
    result by the rules of CommonMark.
    """
    if is_cjk(before) or is_cjk(after):
        return not after.isspace(), not before.isspace()
    if before.isalnum() and after.isalnum():
        touches_digit = before.isdigit() or after.isdigit()
        return can_open and length > 1 and not touches_digit, can_close
    return can_open, can_close


def _trim_url(url: str) -> str:
    """Return an address without the punctuation and brackets of the sentence around it.

    For example, "https://a.example/b)." becomes "https://a.example/b". Returns "" if only the
    scheme remains.
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
    """Split a text into pieces. Yields each piece, and whether it is a bare web address."""
    position = 0
    for match in _URL.finditer(text):
        url = _trim_url(match[0])
        if url:
            yield text[position : match.start()], False
            yield url, True
            position = match.start() + len(url)
    yield text[position:], False
