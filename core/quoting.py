"""Tells whether a text repeats another one: by words that were asked for, or by a stretch of what was said. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from core.folding import is_unspaced
from core.store.indexes import bare

RUN_TOKENS = 5
RUN_CHARS = 12
"""A quotation has at least so many words in a row (of an unspaced script, characters), and so many characters: less is
how people speak anyway."""
COPIED_CHARS, COPIED_CHARS_MOST = 6, 200
"""So much of something short must be told to be looked for in copies; what is longer is no short thing."""
_ESCAPES = re.compile(r'\\+(?:[nrtbf"/]|u[0-9a-fA-F]{4})')
_WORD = re.compile(r"\w+")
_TOKEN = re.compile("[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\\W_]+")


class Quoting:
    """`terms` as `core.plan.Plan` has them; all of them must stand in a text, or `is_any` one. `texts`: what was said,
    of which any longer stretch counts as well."""

    def __init__(self, terms: Sequence[str], texts: Iterable[str] = (), *, is_any: bool = False) -> None:
        self._patterns = [re.compile(pattern) for term in terms if (pattern := _pattern(term))]
        self._is_any = is_any
        texts = list(texts)
        self._runs = {run for text in texts for run in _runs(_tokens(text))}
        self._pairs = {run[:2] for run in self._runs}
        shorts = (tuple(_tokens(text)) for text in texts if len(text) <= COPIED_CHARS_MOST)
        self._short = {short for short in shorts if len(short) < RUN_TOKENS and sum(map(len, short)) >= COPIED_CHARS}

    def has_words(self, *texts: str | None) -> bool:
        """Whether the words stand in the texts together; JSON is read past its escapes. Without words: False."""
        if not self._patterns:
            return False
        plain = bare("\n".join(_ESCAPES.sub(" ", text) for text in texts if text))
        found = (pattern.search(plain) is not None for pattern in self._patterns)
        return any(found) if self._is_any else all(found)

    def repeats(self, *texts: str | None) -> bool:
        """Whether a stretch of what was said stands in one of the texts."""
        return bool(self._runs) and any(self._is_repeated(text) for text in texts if text)

    def copies(self, *texts: str | None) -> bool:
        """Whether one of the texts repeats, or holds, as a copy does, something short that was said, all of it."""
        return self.repeats(*texts) or any(self._has_short(text) for text in texts if text and self._short)

    def _has_short(self, text: str) -> bool:
        tokens = _tokens(_ESCAPES.sub(" ", text))
        sizes = {len(short) for short in self._short}
        return any(tuple(tokens[start : start + size]) in self._short for size in sizes for start in range(len(tokens)))

    def _is_repeated(self, text: str) -> bool:
        tokens = _tokens(_ESCAPES.sub(" ", text) if "\\" in text else text)
        if self._pairs.isdisjoint(pairwise(tokens)):
            # Most texts have not even two of the words in a row.
            return False
        starts = [place for place, pair in enumerate(pairwise(tokens)) if pair in self._pairs]
        return any(_run(tokens, start) in self._runs for start in starts)


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(bare(text))


def _runs(tokens: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Every stretch that is just long enough, from each word on."""
    for start in range(len(tokens) - RUN_TOKENS + 1):
        run = _run(tokens, start)
        if run:
            yield run


def _run(tokens: Sequence[str], start: int) -> tuple[str, ...]:
    """The shortest stretch from a word on that is a quotation; empty where the text ends before."""
    end = start + RUN_TOKENS
    while end <= len(tokens):
        run = tuple(tokens[start:end])
        if sum(map(len, run)) >= RUN_CHARS:
            return run
        end += 1
    return ()


def _pattern(term: str) -> str:
    """A term with blanks for whatever stands between its words; a beginning ends in ``*``."""
    plain = bare(term.rstrip("*"))
    words = _WORD.findall(plain)
    if not words:
        return re.escape(plain.strip())
    if is_unspaced(plain):
        return re.escape(plain)
    end = "" if term.endswith("*") else r"(?!\w)"
    return r"(?<!\w)" + r"[\W_]+".join(map(re.escape, words)) + end
