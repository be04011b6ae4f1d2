"""Recognise short everyday messages in ten languages: "what time is it?", "thanks, Mneme!"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache

from core.text.normalize import language_data, plain_with_offsets

MAX_SHORT_CHARS = 80
"""A longer message isn't a greeting or another short message."""


class ShortMessage(StrEnum):
    """The kind of a short message. If a message has several kinds, the first of these counts."""

    # Asks for the time or the date.
    TIME = "time"
    # Asks what the assistant knows about the person.
    ABOUT_ME = "about_me"
    # Asks what the assistant can do.
    ABILITIES = "abilities"
    MOOD = "mood"
    THANKS = "thanks"
    GREETING = "greeting"


_FILLERS = "fillers"


def find_short_message(text: str) -> ShortMessage | None:
    """Return the kind of a message that consists only of short phrases and fillers.

    "Hi Mneme, what can you do?" consists of a greeting, a filler and a question. Returns None for
    any other message, and for a message of fillers only.
    """
    if len(text) > MAX_SHORT_CHARS:
        return None
    words = _split_words(text)
    kinds = _find_kinds(words)
    return next((kind for kind in ShortMessage if kind in kinds), None)


def _find_kinds(words: Sequence[str]) -> frozenset[str]:
    """Return the kinds of the phrases that the words consist of, or none if a word is unknown."""
    phrases = _load_phrases()
    kinds: set[str] = set()
    position = 0
    while position < len(words):
        for end in range(len(words), position, -1):
            kind = phrases.get(" ".join(words[position:end]))
            if kind is not None:
                kinds.add(kind)
                position = end
                break
        else:
            return frozenset()
    return frozenset(kinds)


def _split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without accents and punctuation."""
    plain, _ = plain_with_offsets(text.replace("’", "'"))
    return re.sub(r"[^\w']+|_", " ", plain).split()


@cache
def _load_phrases() -> Mapping[str, str]:
    """Return the kind of each phrase in `data/short_messages.toml`.

    A phrase that is also a filler isn't a filler.
    """
    data = language_data("short_messages")
    kinds: dict[str, str] = {}
    for kind in (*ShortMessage, _FILLERS):
        for phrase in re.split(r"[,\n]", data[kind]["phrases"]):
            kinds.setdefault(" ".join(_split_words(phrase)), kind)
    kinds.pop("", None)
    return kinds
