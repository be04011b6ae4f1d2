"""Which part of a long conversation tells most about what is asked: where its words stand closest together. Pure.

The order of what counts: the whole phrase, then words within 200 characters of each other, then single words, then the
messages that recall has found. A quarter of the part lies before such a place, three quarters behind it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Sequence

from core.search.highlight import LOOK_CHARS, Highlighter
from core.search.query import any_of, is_plain_question, parse
from core.text.normalize import pieces, words_of
from core.text.terms import clean, marks_of, query_terms, terms_of

NEAR_CHARS = 200
BEFORE = 4
"""One part in so many lies before the place."""
LAP_CHARS = 1_000
"""Pieces of a long text share so much, so that a phrase across their border is found."""
SLACK = 20
"""One part in so many is given up where the cut can then fall between two messages or words."""
EARLIER, LATER = "[… earlier messages left out]\n", "\n[… later messages left out]"

Span = tuple[int, int]


def passage(lines: Sequence[tuple[str, str]], asked: str, limit_chars: int, found: Collection[int] = ()) -> str:
    """At most `limit_chars` of a conversation, one (who and when, text) after the other, each on a line of its own;
    a mark stands where something is left out. `asked` is looked for in the texts alone; `found` are the numbers of the
    lines that count where none of its words stands anywhere."""
    whole = "\n".join(head + text for head, text in lines)
    if len(whole) <= limit_chars:
        return whole
    begins = _begins(lines)
    places = _places(lines, begins, asked, found)
    start, end = densest(places, len(whole), max(1, limit_chars - len(EARLIER) - len(LATER)))
    held = [place for place in places if start <= place[0] and place[1] <= end] or [(end, start)]
    start, end = _tidy(whole, (start, end), (held[0][0], max(last for _, last in held)), begins)
    return (EARLIER if start > 0 else "") + whole[start:end] + (LATER if end < len(whole) else "")


def densest(places: Sequence[Span], size_chars: int, limit_chars: int) -> Span:
    """(start, end) of the part, `limit_chars` of `size_chars` long, that holds most of the ascending `places` whole;
    the first of equals, and the beginning without any. One of its places stands a quarter behind the start, unless the
    text begins or ends before."""
    starts, ends = [start for start, _ in places], sorted(end for _, end in places)
    best, most = 0, 0
    for place in starts:
        start = max(0, min(place - limit_chars // BEFORE, size_chars - limit_chars))
        held = bisect_right(ends, start + limit_chars) - bisect_left(starts, start)
        if held > most:
            best, most = start, held
    if not most and starts:
        # Not even one fits whole: its beginning has to do.
        best = max(0, min(starts[0] - limit_chars // BEFORE, size_chars - limit_chars))
    return best, min(size_chars, best + limit_chars)


def _begins(lines: Sequence[tuple[str, str]]) -> list[int]:
    """Where each line begins in the whole."""
    begins = [0]
    for head, text in lines:
        begins.append(begins[-1] + len(head) + len(text) + 1)
    return begins[:-1]


def _places(lines: Sequence[tuple[str, str]], begins: Sequence[int], asked: str, found: Collection[int]) -> list[Span]:
    """What counts, as spans of the whole, ascending."""
    phrases, words = _markers(asked)
    origins = [begin + len(head) for begin, (head, _) in zip(begins, lines, strict=True)]
    if whole := _marked(phrases, lines, origins):
        return whole
    single = _marked(words, lines, origins)
    if near := _near(lines, origins, single):
        return near
    return single or [(begins[number], begins[number] + 1) for number in sorted(found) if number < len(begins)]


def _markers(asked: str) -> tuple[Highlighter, Highlighter]:
    """What finds the phrases of a query (all of it, and what is in quotes), and what finds its words in any form,
    without those that it excludes."""
    typed = [] if is_plain_question(asked) else parse(asked).terms
    tokens = [token for kind, part in pieces(clean(asked)) for token in (words_of(part) if kind == "words" else [part])]
    phrases = [term for term in typed if " " in term]
    if len(tokens) > 1 or (tokens and len(tokens[0]) > 1 and not tokens[0].isascii()):
        phrases.append(" ".join(tokens))
    wanted = " ".join(typed) if typed else asked
    loose = any_of(wanted).terms
    prefixes = [term for term in typed if term.endswith("*")]
    return Highlighter(phrases), Highlighter([*loose, *prefixes, *marks_of(query_terms(wanted))])


def _marked(marker: Highlighter, lines: Sequence[tuple[str, str]], origins: Sequence[int]) -> list[Span]:
    """Where the marker finds something. It looks at the beginning of a text only, so a long one is given in pieces."""
    found: dict[int, int] = {}
    for origin, (_, text) in zip(origins, lines, strict=True):
        for piece in range(0, max(1, len(text)), LOOK_CHARS - LAP_CHARS):
            for start, end in marker.spans(text[piece : piece + LOOK_CHARS]):
                at = origin + piece + start
                found[at] = max(found.get(at, 0), origin + piece + end)
    return sorted(found.items())


def _near(lines: Sequence[tuple[str, str]], origins: Sequence[int], words: Sequence[Span]) -> list[Span]:
    """Where most different words, two at least, stand within 200 characters."""
    names = [_name(lines, origins, word) for word in words]
    inside: Counter[str] = Counter()
    most, near, first = 1, list[Span](), 0
    for last, (_, end) in enumerate(words):
        inside[names[last]] += 1
        while end - words[first][0] > NEAR_CHARS and first < last:
            inside[names[first]] -= 1
            if not inside[names[first]]:
                del inside[names[first]]
            first += 1
        if len(inside) > most:
            most, near = len(inside), []
        if len(inside) == most > 1:
            near.append((words[first][0], end))
    return near


def _name(lines: Sequence[tuple[str, str]], origins: Sequence[int], word: Span) -> str:
    """The same for all forms of a word."""
    number = bisect_right(origins, word[0]) - 1
    text = lines[number][1][word[0] - origins[number] : word[1] - origins[number]]
    return next(iter(terms_of(text)), text.casefold())


def _tidy(whole: str, part: Span, held: Span, begins: Sequence[int]) -> Span:
    """The part without what is left of a message, or of a word, at its ends; what counts (`held`) stays."""
    start, end = part
    slack = (end - start) // SLACK
    if start > 0:
        most = max(start, min(start + slack, held[0]))
        message = bisect_left(begins, start)
        if message < len(begins) and begins[message] <= most:
            start = begins[message]
        elif not whole[start - 1].isspace():
            start = next((place + 1 for place in range(start, most) if whole[place].isspace()), start)
    if end < len(whole):
        least = min(end, max(end - slack, held[1]))
        message = bisect_right(begins, end + 1) - 1
        if begins[message] - 1 >= least:
            end = begins[message] - 1
        elif not whole[end].isspace():
            end = next((place for place in range(end - 1, least, -1) if whole[place].isspace()), end)
    return start, end
