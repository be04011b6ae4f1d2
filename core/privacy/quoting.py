"""Whether a text repeats another one: by words that were asked for, or by a stretch of what was said. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from core.store.rows import clean
from core.text.normalize import bare, is_unspaced

RUN_TOKENS = 5
RUN_CHARS = 12
"""A quotation has so many words (of an unspaced script, characters) in a row, and so many characters."""
COPIED_CHARS = 6
"""The least length of a short text that is looked for as a whole in copies."""
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[nrtbf\"/])")
_EMPHASIS = re.compile(r"\*+|__+|~~|\|\||`+")
_WORD = re.compile(r"\w+")
_TOKEN = re.compile("[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\\W_]+")


class Quoting:
    """`terms` as `core.store.query.SearchPlan` has them; all of them must stand in a text, or `is_any` one. `texts`:
    what was said, of which any longer stretch counts as well."""

    def __init__(self, terms: Sequence[str], texts: Iterable[str] = (), *, is_any: bool = False) -> None:
        self._terms, self._is_any, texts = tuple(terms), is_any, list(texts)
        self._patterns = [re.compile(pattern) for term in terms if (pattern := _pattern(term))]
        self._whole = {text.strip() for text in texts}
        said = [tuple(_tokens(text)) for text in texts]
        self._runs = {run for tokens in said for start in range(len(tokens)) if (run := _run(tokens, start))}
        self._pairs = {run[:2] for run in self._runs}
        self._short = {one for one in said if len(one) < RUN_TOKENS and sum(map(len, one)) >= COPIED_CHARS}

    def over(self, texts: Iterable[str]) -> Quoting:
        """The same words, with other texts."""
        return Quoting(self._terms, texts, is_any=self._is_any)

    def has_words(self, *texts: str | None) -> bool:
        """Whether the words stand in the texts together; False without words."""
        plain = bare("\n".join(_read(text) for text in texts if text)) if self._patterns else ""
        found = [pattern.search(plain) is not None for pattern in self._patterns]
        return any(found) if self._is_any else bool(found) and all(found)

    def repeats(self, *texts: str | None) -> bool:
        """Whether a stretch of what was said stands in one of the texts."""
        return bool(self._runs) and any(self._has_run(_tokens(_read(text))) for text in texts if text)

    def copies(self, *texts: str | None) -> bool:
        """Whether one of the texts is what was said, repeats it, or holds something short that was said as a whole."""
        return self.repeats(*texts) or any(
            text.strip() in self._whole or self._has_short(_tokens(_read(text))) for text in texts if text
        )

    def _has_run(self, tokens: Sequence[str]) -> bool:
        # Most texts have not even two of the words in a row.
        return any(
            pair in self._pairs and _run(tokens, start) in self._runs for start, pair in enumerate(pairwise(tokens))
        )

    def _has_short(self, tokens: Sequence[str]) -> bool:
        sizes, starts = set(map(len, self._short)), range(len(tokens))
        return any(tuple(tokens[start : start + size]) in self._short for size in sizes for start in starts)


def _read(text: str) -> str:
    """The text without the escapes of JSON, followed by what it says without emphasis where that differs."""
    plain = clean(_ESCAPE.sub(lambda found: chr(int(found[1] or "20", 16)), text)) if "\\" in text else text
    return f"{plain}\n{_EMPHASIS.sub('', plain)}" if _EMPHASIS.search(plain) else plain


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(bare(text))


def _run(tokens: Sequence[str], start: int) -> tuple[str, ...]:
    """The shortest quotation that starts here; empty where the text ends before."""
    for end in range(start + RUN_TOKENS, len(tokens) + 1):
        run = tuple(tokens[start:end])
        if sum(map(len, run)) >= RUN_CHARS:
            return run
    return ()


def _pattern(term: str) -> str:
    """The regular expression of a term; a prefix ends in ``*``, bars separate forms."""
    if "|" in term:
        return f"(?:{'|'.join(filter(None, map(_pattern, term.split('|'))))})"
    plain = bare(term.rstrip("*"))
    words = _WORD.findall(plain)
    if not words:
        return re.escape(plain.strip())
    if is_unspaced(plain):
        return re.escape(plain)
    end = "" if term.endswith("*") else r"(?![^\W_])"
    return r"(?<![^\W_])" + r"[\W_]+".join(map(re.escape, words)) + end
