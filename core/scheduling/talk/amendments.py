"""Find corrections within a request: "remind me at 9 to swim. Actually at 10"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from core.scheduling.phrases import drop_leads

MAX_AMENDED_CHARS = 300
"""A longer message isn't searched for corrections."""
_SENTENCE_ENDS = frozenset(".!?…;。！？；\n")
_BREAK = re.compile(r"(?:[.!?…;。！？；\n,，、—–]+\s*|\s+)(?=\S)")


class Amendment(NamedTuple):
    """A message, divided into a request and the words that change or cancel it."""

    request: str
    # The words after the request, such as "No wait, forget it".
    words: str
    # The words without "actually" and the like. None if they don't begin with such a word.
    correction: str | None
    is_sentence: bool


def list_amendments(text: str) -> Iterator[Amendment]:
    """Yield the ways to divide a message into a request and an amendment, the longest first."""
    if len(text) > MAX_AMENDED_CHARS:
        return
    for match in _BREAK.finditer(text):
        words = text[match.end() :]
        correction = drop_leads("amendment", words)
        is_sentence = not _SENTENCE_ENDS.isdisjoint(match[0])
        if match.start() and (correction is not None or is_sentence):
            yield Amendment(text[: match.start()], words, correction, is_sentence)
