"""Recognizes texts that contain the words of a query, or that repeat passages of given texts.

The given texts are called sources. /forget uses the messages to erase as sources.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from urllib.parse import unquote_plus

from core.store.rows import clean
from core.text.normalize import comparison_form, is_unspaced

# A passage has at least this many tokens in a row, and at least this many characters. In scripts
# without spaces, each character is a token.
PASSAGE_TOKENS = 5
PASSAGE_CHARS = 12
# A text that is too short for a passage counts only if it has at least this many characters.
SHORT_TEXT_CHARS = 6
# An escape sequence of JSON such as \n or \u00e9. Its backslash may have been escaped again.
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[nrtbf\"/])")
# Marks for bold, italics, strikethrough, spoilers and code.
_EMPHASIS = re.compile(r"\*+|__+|~~|\|\||`+")
_WORD = re.compile(r"\w+")
# A single character of Thai, Hangul, Kana or Han, or a word of any other script.
_TOKEN = re.compile("[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\\W_]+")


class QuoteMatcher:
    """Matches texts against the words of a query and against sources.

    `terms` are the words as search terms (`SearchPlan.highlights`), and `texts` are the sources. A
    text has the words if it contains all terms. With `is_any`, one of the terms is enough. A
    passage has at least `passage_tokens` tokens.
    """

    def __init__(
        self,
        terms: Sequence[str],
        texts: Iterable[str] = (),
        *,
        is_any: bool = False,
        passage_tokens: int = PASSAGE_TOKENS,
    ) -> None:
        self._terms = tuple(terms)
        self._is_any = is_any
        self._passage_tokens = passage_tokens
        self._patterns = [re.compile(pattern) for term in terms if (pattern := _term_regex(term))]
        self._whole_texts: set[str] = set()
        self._passages: set[tuple[str, ...]] = set()
        # The tokens of sources that are too short for a passage.
        self._short_texts: set[tuple[str, ...]] = set()
        for text in texts:
            self._add_text(text)
        # The first two tokens of each passage. They are looked up first, because this is quick and
        # rules out almost all texts.
        self._first_pairs = {passage[:2] for passage in self._passages}

    def with_texts(self, texts: Iterable[str]) -> QuoteMatcher:
        """Return a matcher with the same words and these texts as its sources."""
        return QuoteMatcher(self._terms, texts, is_any=self._is_any)

    def has_words(self, *texts: str | None) -> bool:
        """Return whether the texts together contain the words.

        Without words, the result is False.
        """
        if not self._patterns:
            return False
        content = comparison_form("\n".join(_decode(text) for text in texts if text))
        matches = (pattern.search(content) is not None for pattern in self._patterns)
        return any(matches) if self._is_any else all(matches)

    @property
    def has_patterns(self) -> bool:
        """Whether there are words to look for."""
        return bool(self._patterns)

    def has_passage(self, *texts: str | None) -> bool:
        """Return whether one of the texts contains a passage of a source."""
        if not self._passages:
            return False
        for text in texts:
            if not text:
                continue
            tokens = _tokenize(_decode(text))
            for start, pair in enumerate(pairwise(tokens)):
                if pair not in self._first_pairs:
                    continue
                if _passage_at(tokens, start, self._passage_tokens) in self._passages:
                    return True
        return False

    def has_copy(self, *texts: str | None) -> bool:
        """Return whether one of the texts repeats a source.

        A text repeats a source if it contains a passage of a long source or the whole of a short
        one, or if the two are equal.
        """
        if self.has_passage(*texts):
            return True
        return any(
            text.strip() in self._whole_texts or self._has_short_text(_tokenize(_decode(text)))
            for text in texts
            if text
        )

    def _add_text(self, text: str) -> None:
        """Add a source with its passages.

        A source that is too short for a passage is added as a sequence of tokens.
        """
        self._whole_texts.add(text.strip())
        tokens = tuple(_tokenize(text))
        if len(tokens) < self._passage_tokens:
            if sum(map(len, tokens)) >= SHORT_TEXT_CHARS:
                self._short_texts.add(tokens)
            return
        for start in range(len(tokens)):
            passage = _passage_at(tokens, start, self._passage_tokens)
            if passage:
                self._passages.add(passage)

    def _has_short_text(self, tokens: Sequence[str]) -> bool:
        """Return whether the tokens contain all tokens of a short source in a row."""
        for size in {len(short_text) for short_text in self._short_texts}:
            for start in range(len(tokens)):
                if tuple(tokens[start : start + size]) in self._short_texts:
                    return True
        return False


def remove_quoting_lines(text: str, sources: Sequence[str], file_ids: Collection[int]) -> str:
    """Return a summary without the lines that quote files, or that name files by their numbers.

    `sources` are the texts of the files.
    """
    marks = [f"(file {file_id})" for file_id in file_ids]
    whole = QuoteMatcher((), [text])
    quoted_sources = [source for source in sources if whole.has_passage(source)]
    lines: list[str] = []
    for line in text.split("\n"):
        if any(mark in line for mark in marks):
            continue
        if not QuoteMatcher((), [line]).has_passage(*quoted_sources):
            lines.append(line)
    return "\n".join(lines)


def _decode(text: str) -> str:
    """Undo the escapes of JSON and HTML in a text.

    If the text contains URL escapes or Markdown emphasis, a copy without them is appended.
    """
    if "\\" in text:
        # "\u0041" becomes "A". The other escapes, such as "\n", become a space.
        text = clean(_ESCAPE.sub(lambda match: chr(int(match[1] or "20", 16)), text))
    if "&" in text:
        text = html.unescape(text)
    if "%" in text:
        text = f"{text}\n{unquote_plus(text)}"
    if _EMPHASIS.search(text):
        text = f"{text}\n{_EMPHASIS.sub('', text)}"
    return text


def _tokenize(text: str) -> list[str]:
    """Return the words of a text. In scripts without spaces, each character counts as a word."""
    return _TOKEN.findall(comparison_form(text))


def _passage_at(tokens: Sequence[str], start: int, min_tokens: int) -> tuple[str, ...]:
    """Return the shortest passage that begins at `start`, or () if too few tokens follow."""
    for end in range(start + min_tokens, len(tokens) + 1):
        passage = tuple(tokens[start:end])
        if sum(map(len, passage)) >= PASSAGE_CHARS:
            return passage
    return ()


def _term_regex(term: str) -> str:
    """Convert a search term to a regular expression that matches whole words.

    A term that ends in ``*`` matches the beginning of a word. Vertical bars separate alternatives,
    as in ``ferry|ferries``.
    """
    if "|" in term:
        forms = [_term_regex(form) for form in term.split("|")]
        return f"(?:{'|'.join(form for form in forms if form)})"
    content = comparison_form(term.rstrip("*"))
    words = _WORD.findall(content)
    if not words:
        return re.escape(content.strip())
    if is_unspaced(content):
        return re.escape(content)
    word_end = "" if term.endswith("*") else r"(?![^\W_])"
    return r"(?<![^\W_])" + r"[\W_]+".join(map(re.escape, words)) + word_end
