"""Turns Markdown (CommonMark, tables, strikethrough) into a tree of nodes, through markdown-it.

Read the way people write in chats: raw HTML and reference definitions are text, a line break is a line break, a `*`
inside a word (``2*3*4``) is a star, and a bare web address is left alone. Takes any text, in about linear time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from core.markup.text import is_cjk, url_end, well_formed

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token


MarkupKind = Literal[
    "paragraph", "heading", "list", "item", "quote", "table", "row", "cell", "code", "rule",
    "text", "code_span", "bold", "italic", "strikethrough", "link",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkupNode:
    """One node. Leaves carry `text`, the others `children`.

    paragraph, heading (`level`), cell (`align`): inlines. list (`start` is the first number, None for bullets): items;
    item, quote: blocks. table: rows, the first is the head. code (`language`): `text` without the last line break.
    link: `url` is absolute. `text` of a text node may hold line breaks. is_apart: a blank line stands before the block.
    """

    kind: MarkupKind
    text: str = ""
    children: tuple[MarkupNode, ...] = ()
    url: str | None = None
    language: str | None = None
    start: int | None = None
    level: int = 1
    align: str = ""
    is_tight: bool = True
    is_apart: bool = True


_DEEPEST_BLOCK = 14
_DEEPEST_PARSED = 20
_DEEPEST_INLINE = 12
_SCHEMES = ("http://", "https://", "tg://", "mailto:", "tel:")
_BLOCKS: dict[str, MarkupKind] = {
    "paragraph": "paragraph",
    "heading": "heading",
    "bullet_list": "list",
    "ordered_list": "list",
    "list_item": "item",
    "blockquote": "quote",
    "table": "table",
    "tr": "row",
    "th": "cell",
    "td": "cell",
}
_INLINES: dict[str, MarkupKind] = {"strong": "bold", "em": "italic", "s": "strikethrough", "link": "link"}


@dataclass(slots=True)
class _Frame:
    """A node whose end has not been met."""

    kind: MarkupKind | None
    token: Token | None = None
    children: list[MarkupNode] = field(default_factory=list)
    is_tight: bool = True


def parse(markdown: str) -> tuple[MarkupNode, ...]:
    """The blocks of a text. Everything visible in the text is in the tree."""
    text = well_formed(markdown)
    return _blocks(_parser().parse(text), text.split("\n"))


@cache
def _parser() -> MarkdownIt:
    # Loaded when something is rendered: most commands of the command line never do.
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import blockquote, list_block

    options = {"html": False, "maxNesting": _DEEPEST_PARSED}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    parser.disable(["reference", "html_block", "html_inline"])
    parser.block.ruler.at("blockquote", _capped(blockquote), {"alt": ["paragraph", "reference", "blockquote", "list"]})
    parser.block.ruler.at("list", _capped(list_block), {"alt": ["paragraph", "reference", "blockquote"]})
    parser.inline.ruler.at("emphasis", _emphasis)
    parser.inline.ruler.before("escape", "address", _address)
    parser.inline.ruler.before("link", "bracket", _bracket)
    return parser


def _capped(rule: Callable[[StateBlock, int, int, bool], bool]) -> Callable[[StateBlock, int, int, bool], bool]:
    """The rule, silent below a depth: markdown-it drops what is nested deeper than its limit; so it stays, as text."""

    def capped(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        return state.level < _DEEPEST_BLOCK and rule(state, start, end, silent)

    return capped


def _address(state: StateInline, silent: bool) -> bool:
    """Takes a bare web address as text, so that the marks in it stay what they are."""
    end = url_end(state.src, state.pos, state.posMax) if state.src.startswith("://", state.pos) else 0
    if not end:
        return False
    if not silent:
        if not state.pending.lower().endswith(("http", "https")):
            return False
        state.append_pending(state.src[state.pos : end])
    state.pos = end
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
    marker = state.src[state.pos]
    if silent or marker not in "_*":
        return False
    from markdown_it.rules_inline.state_inline import Delimiter

    scanned = state.scanDelims(state.pos, marker == "*")
    before = state.src[state.pos - 1] if state.pos else " "
    after = state.src[state.pos + scanned.length : state.posMax][:2] or " "
    can_open, can_close = scanned.can_open, scanned.can_close
    if marker == "*":
        can_open, can_close = _star(before, after[0], scanned.length, can_open, can_close)
    elif after[0] == "(" or (after[0] == "." and after[1:].isalnum()):
        can_close = False
    length = scanned.length
    for _ in range(length):
        state.push("text", "", 0).content = marker
        token = len(state.tokens) - 1
        state.delimiters.append(
            Delimiter(marker=ord(marker), length=length, token=token, end=-1, open=can_open, close=can_close)
        )
    state.pos += length
    return True


def _star(before: str, after: str, length: int, can_open: bool, can_close: bool) -> tuple[bool, bool]:
    """Whether a run of stars between two characters may open and close a style."""
    if is_cjk(before) or is_cjk(after):
        return not after.isspace(), not before.isspace()
    if before.isalnum() and after.isalnum():
        return can_open and length > 1 and not (before.isdigit() or after.isdigit()), can_close
    return can_open, can_close


def _blocks(tokens: Sequence[Token], lines: Sequence[str]) -> tuple[MarkupNode, ...]:
    frames = [_Frame(None)]
    for token in tokens:
        name = token.type.removesuffix("_open").removesuffix("_close")
        if token.nesting == 1 and name in _BLOCKS:
            if name == "paragraph" and not token.hidden and frames[-1].kind == "item":
                frames[-2].is_tight = False
            frames.append(_Frame(_BLOCKS[name], token))
        elif token.nesting == -1 and name in _BLOCKS:
            frame = frames.pop()
            frames[-1].children.extend(_close(frame, lines))
        elif token.type == "inline":
            frames[-1].children.extend(_inlines(token.children or []))
        elif token.type in ("fence", "code_block"):
            language = token.info.split()[0] if token.info.split() else None
            text, is_apart = token.content.removesuffix("\n"), _is_apart(token, lines)
            frames[-1].children.append(MarkupNode(kind="code", text=text, language=language, is_apart=is_apart))
        elif token.type == "hr":
            frames[-1].children.append(MarkupNode(kind="rule", is_apart=_is_apart(token, lines)))
    return tuple(frames[0].children)


def _close(frame: _Frame, lines: Sequence[str]) -> list[MarkupNode]:
    token, kind = frame.token, frame.kind
    assert token is not None
    assert kind is not None
    extra: dict[str, Any] = {}
    if kind == "heading":
        extra["level"] = int(token.tag[1:])
    elif kind == "list":
        start = token.attrs.get("start", 1)
        extra = {"start": int(start) if token.tag == "ol" else None, "is_tight": frame.is_tight}
    elif kind == "cell":
        extra["align"] = str(token.attrs.get("style", "")).removeprefix("text-align:")
    node = MarkupNode(kind=kind, children=tuple(frame.children), is_apart=_is_apart(token, lines), **extra)
    if kind == "heading" and token.markup == "-":
        # A line of dashes under a paragraph is meant as a ruled line in chats, not as a heading of the second order.
        return [replace(node, kind="paragraph", level=1), MarkupNode(kind="rule", is_apart=False)]
    return [node]


def _is_apart(token: Token, lines: Sequence[str]) -> bool:
    first = token.map[0] if token.map else 0
    return token.map is None or (first > 0 and not lines[first - 1].strip(" \t>"))


def _inlines(tokens: Sequence[Token]) -> list[MarkupNode]:
    frames = [_Frame(None)]
    for token in tokens:
        name = token.type.removesuffix("_open").removesuffix("_close")
        if token.nesting == 1:
            kind = _INLINES.get(name) if len(frames) <= _DEEPEST_INLINE else None
            frames.append(_Frame(kind, token))
        elif token.nesting == -1:
            frame = frames.pop()
            _extend(frames[-1].children, _close_inline(frame))
        elif token.type == "code_inline":
            frames[-1].children.append(MarkupNode(kind="code_span", text=token.content))
        elif token.type == "image":
            label = MarkupNode(kind="text", text=token.content.replace("\n", " "))
            _extend(frames[-1].children, _link(str(token.attrs.get("src", "")), [label] if label.text.strip() else []))
        elif token.type in ("softbreak", "hardbreak"):
            _extend(frames[-1].children, [MarkupNode(kind="text", text="\n")])
        elif token.content:
            _extend(frames[-1].children, [MarkupNode(kind="text", text=token.content.replace("\n", " "))])
    return frames[0].children


def _extend(children: list[MarkupNode], added: Sequence[MarkupNode]) -> None:
    """Appends nodes; neighbouring texts become one."""
    for node in added:
        if node.kind == "text" and children and children[-1].kind == "text":
            children[-1] = replace(node, text=children[-1].text + node.text)
        else:
            children.append(node)


def _close_inline(frame: _Frame) -> list[MarkupNode]:
    token = frame.token
    if token is not None and token.type == "link_open":
        is_bare = token.info == "auto"
        return frame.children if is_bare else _link(str(token.attrs.get("href", "")), frame.children)
    if frame.kind is None or not frame.children:
        return frame.children
    return [MarkupNode(kind=frame.kind, children=tuple(frame.children))]


def _link(url: str, children: Sequence[MarkupNode]) -> list[MarkupNode]:
    """A link where the address can be opened; otherwise the address stands in the text, so that it is not lost."""
    if not children:
        return [MarkupNode(kind="text", text=url)] if url else []
    if children[0].text == url and len(children) == 1:
        return list(children)
    if url.lower().startswith(_SCHEMES):
        return [MarkupNode(kind="link", children=tuple(children), url=url)]
    return [*children, MarkupNode(kind="text", text=f" ({url})")] if url else list(children)
