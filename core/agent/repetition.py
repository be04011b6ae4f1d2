"""Tells that a memory says nothing but what stands in the conversation, word for word, and need not be sent again.

Compares words, whatever their case and punctuation; never meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SURE_CHARS = 12
"""Less is in every longer text somewhere."""
_SENTENCE = re.compile(r"[.!?;:…\n。！？；：]+")
_WORD = re.compile(r"\w+")
_SPEAKERS = frozenset(("user", "assistant", "human", "ai", "bot", "person", "you", "me"))


class Repetition:
    """`texts` are what is there."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._said = "\n".join(map(_folded, texts))

    def has(self, text: str) -> bool:
        """Whether each of its sentences is there."""
        parts = [part for part in map(_folded, _SENTENCE.split(text)) if part and part not in _SPEAKERS]
        return sum(map(len, parts)) >= SURE_CHARS and all(part in self._said for part in parts)


def _folded(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
