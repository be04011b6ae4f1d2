"""Parses Markdown (CommonMark, tables, strikethrough) into the syntax tree of markdown-it.

Read the way people write in chats: raw HTML and reference definitions are text, a line break is a line break, a `*`
inside a word (``2*3*4``) is a star, and a bare web address is left alone. Takes any text, in about linear time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from core.markup.text import is_cjk, url_at

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.tree import SyntaxTreeNode

_DEEPEST_BLOCK = 14
_DEEPEST_PARSED = 20
_DEEPEST_INLINE = 12


def parse(text: str) -> SyntaxTreeNode:
    """The root of the tree of a well-formed text. Everything visible in the text is in it."""
    from markdown_it.tree import SyntaxTreeNode

    tokens = _parser().parse(text)
    for token in tokens:
        inlines = token.children or []
        token.children = [inline for inline in inlines if inline.nesting == 0 or inline.level < _DEEPEST_INLINE]
    return SyntaxTreeNode(tokens)


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
    url = url_at(state.src, state.pos) if state.src.startswith("://", state.pos) else ""
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
