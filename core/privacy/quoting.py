"""Whether a text repeats another one: by words that were asked for, or by a stretch of what was said. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import pairwise
from urllib.parse import unquote

from core.text.normalize import bare, is_unspaced

RUN_TOKENS = 5
RUN_CHARS = 12
"""A quotation has at least so many words in a row (of an unspaced script, characters) and so many characters: less is
how people speak anyway."""
COPIED_CHARS, COPIED_CHARS_MOST = 6, 200
"""The length of a short text that is looked for as a whole in copies."""
_ESCAPES = re.compile(r"(?:\\+u[0-9a-fA-F]{4})+|\\+[nrtbf\"/]")
_UNITS = re.compile(r"u([0-9a-fA-F]{4})")
_EMPHASIS = re.compile(r"\*+|__+|~~|\|\||`+")
_PERCENTS = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_URL_SAFE = str.maketrans("-_", "+/")
_WORD = re.compile(r"\w+")
_TOKEN = re.compile("[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\\W_]+")


class Quoting:
    """`terms` as `core.store.query.SearchPlan` has them; all of them must stand in a text, or `is_any` one. `texts`:
    what was said, of which any longer stretch counts as well."""

    def __init__(self, terms: Sequence[str], texts: Iterable[str] = (), *, is_any: bool = False) -> None:
        self._terms = tuple(terms)
        self._patterns = [re.compile(pattern) for term in terms if (pattern := _pattern(term))]
        self._is_any = is_any
        tokens = [tuple(_tokens(text)) for text in texts]
        self._runs = {run for said in tokens for start in range(len(said)) if (run := _run(said, start))}
        self._pairs = {run[:2] for run in self._runs}
        self._short = {
            said
            for said in tokens
            if len(said) < RUN_TOKENS and COPIED_CHARS <= sum(map(len, said)) <= COPIED_CHARS_MOST
        }

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
        return bool(self._runs) and any(self._is_repeated(_tokens(_read(text))) for text in texts if text)

    def copies(self, *texts: str | None) -> bool:
        """Whether one of the texts repeats what was said, or holds the whole of something short that was said."""
        sizes = {len(short) for short in self._short}
        return self.repeats(*texts) or any(
            tuple(tokens[start : start + size]) in self._short
            for tokens in (_tokens(_read(text)) for text in texts if text and sizes)
            for size in sizes
            for start in range(len(tokens))
        )

    def _is_repeated(self, tokens: Sequence[str]) -> bool:
        # Most texts have not even two of the words in a row.
        return any(
            pair in self._pairs and _run(tokens, start) in self._runs for start, pair in enumerate(pairwise(tokens))
        )


def digest(text: str) -> str:
    """Names a text without saying it."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def _read(text: str) -> str:
    """The text without JSON escapes, followed by what it says without emphasis, as a URL, and in base64, where that
    differs."""
    plain = _ESCAPES.sub(_sign, text) if "\\" in text else text
    parts = [plain]
    if _EMPHASIS.search(plain):
        parts.append(_EMPHASIS.sub("", plain))
    if "%" in plain:
        parts.append(_PERCENTS.sub(lambda found: unquote(found[0], errors="replace"), plain).replace("+", " "))
    parts += filter(None, map(_unpacked, _BASE64.findall(plain)))
    return "\n".join(parts)


def _sign(found: re.Match[str]) -> str:
    """The letters of \\u00e9 and the like, surrogate pairs joined; a blank for other escapes."""
    encoded = b"".join(int(unit, 16).to_bytes(2, "big") for unit in _UNITS.findall(found[0]))
    return encoded.decode("utf-16-be", "replace") or " "


def _unpacked(word: str) -> str:
    """The text of a word that is base64; most words are none."""
    bare_word = word.rstrip("=").translate(_URL_SAFE)
    if len(bare_word) % 4 == 1 or (bare_word.isalpha() and (bare_word.islower() or bare_word.istitle())):
        return ""
    try:
        said = base64.b64decode(bare_word + "=" * (-len(bare_word) % 4)).decode()
    except ValueError:
        return ""
    return said if said.isprintable() or "\n" in said else ""


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
