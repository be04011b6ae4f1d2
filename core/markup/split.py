"""Cuts a Markdown text into parts that each fit into one platform message and are valid Markdown on their own.

Works on the parsed tree: between blocks first, then between the items of a list, the rows of a table (its head
repeated) and the lines of a code block (its fence closed and opened again), then sentences, words, graphemes.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate

from core.markup.parse import MarkupNode, parse
from core.markup.source import Leaf, blocks_source, grown, leaves, visible
from core.markup.text import CJK_CLOSERS, CJK_PAUSES, CJK_STOPS, grapheme_ends, well_formed

_Nodes = tuple[MarkupNode, ...]
_Fill = Callable[[_Nodes], float]
_BREAK = re.compile(rf"\s+|(?<=[{CJK_STOPS}{CJK_PAUSES}])(?=[^\s{CJK_STOPS}{CJK_PAUSES}{CJK_CLOSERS}])")
_ENDS_BEFORE_SPACE = frozenset(".!?…")
_ENDS = frozenset("\n" + CJK_STOPS)
_FULL = 0.7
"""A part filled to this share is closed before a block that has to be cut anyway."""
_WELL_FILLED, _AIM, _AIMED_TRIES = 0.95, 0.985, 4
_MOST_LEAVES = 3000
"""A paragraph with more changes of style than this loses its styles when it is cut: nobody writes so."""
_HOPELESS = 2
"""So many times the limit of plain characters need not be measured: rendering leaves no text out."""
_SENTENCE_SHARE = 0.6
"""A cut at a sentence's end is preferred where it gives up less than the rest of this share."""


def split(markdown: str, limit: int, measure: Callable[[str], int]) -> list[str]:
    """Parts of a text, each valid Markdown with ``measure(part) <= limit``; `[]` for blank text, a text that fits comes
    back as the one part. `measure` is the length of one part as the platform counts it once rendered.

    Nothing is lost or doubled but white space and table heads. A limit too small for one character is not kept.
    """
    text = well_formed(markdown).strip("\n")
    if not text.strip():
        return []
    if len(text) <= 8 * limit and measure(text) <= limit:
        return [text]
    return _Cutter(limit, measure).parts(parse(text))


def _largest(count: int, guess: int, fill: Callable[[int], float]) -> int:
    """A number up to `count` that fills a part well, 0 when not even one fits; the greatest where they differ much.
    `fill` is the share of the limit that a number takes. Sizes are nearly proportional, so few have to be measured."""
    low, high = 0, count + 1
    size = min(max(guess, 1), count)
    tries = 0
    while high - low > 1:
        share = fill(size)
        if share <= 1:
            low = size
            if share > _WELL_FILLED:
                break
        else:
            high = size
        tries += 1
        is_aimed = tries <= _AIMED_TRIES and 0 < share < math.inf
        aim = int(size / share * _AIM) if is_aimed else (low + high) // 2
        size = min(max(aim, low + 1), high - 1)
    return low


class _Cutter:
    def __init__(self, limit: int, measure: Callable[[str], int]) -> None:
        self.limit = limit
        self.measure = measure

    def fill(self, nodes: Sequence[MarkupNode]) -> float:
        """The share of the limit that a part of these blocks takes."""
        if _is_longer(nodes, _HOPELESS * self.limit):
            return math.inf
        return self.measure(blocks_source(nodes)) / self.limit

    def parts(self, nodes: Sequence[MarkupNode]) -> list[str]:
        pending = deque(nodes)
        parts: list[str] = []
        part: list[MarkupNode] = []

        def close() -> None:
            carried: list[MarkupNode] = []
            while len(part) > 1 and part[-1].kind == "heading":
                carried.append(part.pop())
            pending.extendleft(carried)
            if visible(part) or any(node.kind == "rule" for node in part):
                parts.append(blocks_source(part))
            part.clear()

        while pending:
            part.extend(self.whole(pending, part))
            if not pending:
                break
            block = pending.popleft()
            if part and (self.fill([block]) <= 1 or self.fill(part) > _FULL):
                pending.appendleft(block)
                close()
                continue
            head, rest = self.cut(block, lambda nodes: self.fill([*part, *nodes]), is_forced=not part)
            pending.extendleft(reversed(rest))
            part.extend(head)
            if head or rest == (block,):
                close()
        if part:
            close()
        return parts

    def whole(self, pending: deque[MarkupNode], part: Sequence[MarkupNode]) -> list[MarkupNode]:
        """Takes as many of the pending blocks as go along with the part."""
        room = [len(node.source or "") or 1 for node, _ in zip(pending, range(self.limit + 1), strict=False)]
        nodes = [pending[index] for index in range(len(room))]
        guess = bisect_right(list(accumulate(room)), self.limit - sum(len(node.source or "") for node in part))
        count = _largest(len(nodes), guess, lambda count: self.fill([*part, *nodes[:count]]))
        return [pending.popleft() for _ in range(count)]

    def cut(self, node: MarkupNode, fill: _Fill, *, is_forced: bool) -> tuple[_Nodes, _Nodes]:
        """The block's beginning that fits, and what remains of the block. No beginning: the block is left as it is
        or, when forced, comes back in a simpler form that can be cut."""
        node = replace(node, source=None)
        match node.kind:
            case "list":
                return self.cut_list(node, fill, is_forced)
            case "quote":
                head, rest = self.cut_blocks(node.children, lambda inner: fill((replace(node, children=inner),)), False)
                if head:
                    return (replace(node, children=head),), (replace(node, children=rest),) if rest else ()
                return (), node.children if is_forced else (node,)
            case "table":
                return self.cut_table(node, fill, is_forced)
            case "code":
                return self.cut_code(node, fill, is_forced)
            case "rule":
                return (), () if is_forced else (node,)
            case _:
                return self.cut_text(node, fill, is_forced)

    def cut_blocks(self, nodes: _Nodes, fill: _Fill, is_forced: bool) -> tuple[_Nodes, _Nodes]:
        count = _largest(len(nodes), 1, lambda count: fill(nodes[:count]))
        if count or not nodes:
            return nodes[:count], nodes[count:]
        head, rest = self.cut(nodes[0], fill, is_forced=is_forced)
        return head, (*rest, *nodes[1:])

    def cut_list(self, node: MarkupNode, fill: _Fill, is_forced: bool) -> tuple[_Nodes, _Nodes]:
        """What remains of an item that was cut goes on as plain blocks: a second bullet would make it two items."""

        def some(items: _Nodes, skipped: int = 0) -> _Nodes:
            start = None if node.start is None else node.start + skipped
            return (replace(node, children=items, start=start),) if items else ()

        items = node.children
        count = _largest(len(items), self.limit // 40, lambda count: fill(some(items[:count])))
        if count:
            return some(items[:count]), some(items[count:], count)
        item = items[0]
        head, rest = self.cut_blocks(item.children, lambda inner: fill(some((replace(item, children=inner),))), False)
        if head:
            return some((replace(item, children=head),)), (*rest, *some(items[1:], 1))
        return ((), (*item.children, *some(items[1:], 1))) if is_forced else ((), (node,))

    def cut_table(self, node: MarkupNode, fill: _Fill, is_forced: bool) -> tuple[_Nodes, _Nodes]:
        """Rows under a repeated head; a row that is too long for a message becomes text."""
        top, rows = node.children[0], node.children[1:]
        count = _largest(
            len(rows), self.limit // 40, lambda count: fill((replace(node, children=(top, *rows[:count])),))
        )
        if count:
            rest = (replace(node, children=(top, *rows[count:])),) if rows[count:] else ()
            return (replace(node, children=(top, *rows[:count])),), rest
        if not is_forced:
            return (), (node,)
        if rows and fill((replace(node, children=(top,)),)) <= 1:
            beyond = (replace(node, children=(top, *rows[1:])),) if rows[1:] else ()
            return (), (_sentence(rows[0]), *beyond)
        return (), tuple(_sentence(row) for row in node.children)

    def cut_code(self, node: MarkupNode, fill: _Fill, is_forced: bool) -> tuple[_Nodes, _Nodes]:
        lines = node.text.split("\n")
        sums = list(accumulate(len(line) + 1 for line in lines))

        def some(text: str) -> _Nodes:
            return (replace(node, text=text),)

        guess = bisect_right(sums, self.limit)
        count = _largest(len(lines), guess, lambda count: fill(some("\n".join(lines[:count]))))
        if count and (any(line.strip() for line in lines[:count]) or count == len(lines)):
            rest = "\n".join(lines[count:])
            return some("\n".join(lines[:count])), some(rest) if rest.strip() else ()
        if not is_forced:
            return (), (node,)
        while lines and not lines[0].strip():
            del lines[0]
        if not lines:
            return (), ()
        text = "\n".join(lines)
        ends = grapheme_ends(lines[0][: 4 * self.limit + 64])
        count = _largest(len(ends), bisect_right(ends, self.limit), lambda count: fill(some(text[: ends[count - 1]])))
        if count:
            return some(text[: ends[count - 1]]), some(text[ends[count - 1] :])
        return (), (MarkupNode(kind="paragraph", children=(MarkupNode(kind="text", text=text),)),)

    def cut_text(self, node: MarkupNode, fill: _Fill, is_forced: bool) -> tuple[_Nodes, _Nodes]:
        row = leaves(node.children)
        if len(row) > _MOST_LEAVES:
            row = [(MarkupNode(kind="text", text="".join(leaf.text for leaf, _ in row)), ())]
        text = "".join(leaf.text for leaf, _ in row)
        sums = [0, *accumulate(len(leaf.text) for leaf, _ in row)]

        def upto(end: int) -> _Nodes:
            return (replace(node, children=grown(_sliced(row, sums, 0, end))),)

        def at(ends: Sequence[int]) -> int:
            guess = bisect_right(ends, self.limit)
            count = _largest(len(ends), guess, lambda count: fill(upto(ends[count - 1])))
            return ends[count - 1] if count else 0

        lead = len(text) - len(text.lstrip())
        words = [match.start() for match in _BREAK.finditer(text) if match.start() > lead]
        end = at([*words, len(text)])
        if not end and is_forced:
            window = text[lead : lead + 4 * self.limit + 64]
            end = at([lead + position for position in grapheme_ends(window)])
            # A grapheme longer than a message (a stack of accents) can only be cut inside.
            end = end or at(range(lead + 1, lead + len(window) + 1)) or lead + 1
        if not end:
            return (), (node,)
        end = _sentence_end(text, end)
        begin = len(text) - len(text[end:].lstrip())
        rest = grown(_sliced(row, sums, begin, len(text)))
        return upto(end), (replace(node, children=rest),) if rest else ()


def _is_longer(nodes: Sequence[MarkupNode], size: int) -> bool:
    """Whether the texts in these trees (and the marks of items and rows) have more than `size` characters together;
    looks no further than needed."""
    stack = list(reversed(nodes))
    while stack and size >= 0:
        node = stack.pop()
        size -= len(node.text) + (2 if node.kind in ("item", "row") else 0)
        stack.extend(reversed(node.children))
    return size < 0


def _sliced(row: Sequence[Leaf], sums: Sequence[int], begin: int, end: int) -> list[Leaf]:
    """The leaves between two positions of their joined text."""
    found: list[Leaf] = []
    for index in range(max(0, bisect_right(sums, begin) - 1), len(row)):
        if sums[index] >= end:
            break
        leaf, around = row[index]
        text = leaf.text[max(0, begin - sums[index]) : end - sums[index]]
        if text:
            found.append((leaf if text == leaf.text else replace(leaf, text=text), around))
    return found


def _sentence_end(text: str, end: int) -> int:
    """The last end of a sentence or line before `end`, unless it would leave much room unused."""
    if end >= len(text) or text[end : end + 1] == "\n":
        return end
    for position in range(end, int(end * _SENTENCE_SHARE), -1):
        last = text[position - 1]
        if last in _ENDS or (last in _ENDS_BEFORE_SPACE and text[position].isspace()):
            return position
    return end


def _sentence(row: MarkupNode) -> MarkupNode:
    """A table row as a paragraph."""
    children: list[MarkupNode] = []
    for cell in row.children:
        if children and cell.children:
            children.append(MarkupNode(kind="text", text=" | "))
        children.extend(cell.children)
    return MarkupNode(kind="paragraph", children=tuple(children))
