"""Looks at text that is about to enter the system prompt for what does not belong there.

Notes, SOUL.md and AGENTS.md are read by the model as its own instructions, so text that came from elsewhere must not
give orders there. Says what is wrong; never changes text, never decides what happens then.
"""

from __future__ import annotations

from collections.abc import Iterable

from core.guard import decode, normalize
from core.guard.invisible import unseen
from core.guard.threat import Threat
from core.memory.lures.apart import APART
from core.memory.lures.arabic import ARABIC
from core.memory.lures.arabic_words import ARABIC_WORDS
from core.memory.lures.chinese import CHINESE
from core.memory.lures.chinese_words import CHINESE_WORDS
from core.memory.lures.distant_words import (
    HINDI_WORDS,
    ITALIAN_WORDS,
    KOREAN_WORDS,
    PERSIAN_WORDS,
    PORTUGUESE_WORDS,
    TURKISH_WORDS,
)
from core.memory.lures.english import ENGLISH
from core.memory.lures.english_harm import ENGLISH_HARM
from core.memory.lures.english_leaks import ENGLISH_LEAKS
from core.memory.lures.english_roles import ENGLISH_ROLES
from core.memory.lures.english_words import ENGLISH_WORDS
from core.memory.lures.french import FRENCH
from core.memory.lures.french_words import FRENCH_WORDS
from core.memory.lures.german import GERMAN
from core.memory.lures.german_words import GERMAN_WORDS
from core.memory.lures.hindi import HINDI
from core.memory.lures.italian import ITALIAN
from core.memory.lures.japanese import JAPANESE
from core.memory.lures.japanese_words import JAPANESE_WORDS
from core.memory.lures.korean import KOREAN
from core.memory.lures.machine import MACHINE
from core.memory.lures.neighbours import NEIGHBOURS
from core.memory.lures.portuguese import PORTUGUESE
from core.memory.lures.russian import RUSSIAN
from core.memory.lures.russian_words import RUSSIAN_WORDS
from core.memory.lures.spanish import SPANISH
from core.memory.lures.spanish_words import SPANISH_WORDS
from core.memory.lures.tongue import compiled

LIMIT_CHARS = 50_000
"""Longer text is a threat by itself: what is not looked at does not enter the prompt."""

_TONGUES = (
    *(ENGLISH, ENGLISH_ROLES, ENGLISH_LEAKS, ENGLISH_HARM, ENGLISH_WORDS),
    *(GERMAN, FRENCH, SPANISH, PORTUGUESE, ITALIAN, NEIGHBOURS),
    *(RUSSIAN, CHINESE, JAPANESE, KOREAN, ARABIC, HINDI),
    *(GERMAN_WORDS, FRENCH_WORDS, SPANISH_WORDS, RUSSIAN_WORDS, CHINESE_WORDS, JAPANESE_WORDS, ARABIC_WORDS),
    *(PORTUGUESE_WORDS, ITALIAN_WORDS, TURKISH_WORDS, KOREAN_WORDS, HINDI_WORDS, PERSIAN_WORDS),
)

_WINDOW_CHARS = 4_000
_OVERLAP_CHARS = 800
"""Long text is read in pieces, so that the time grows with its length and never with the square of it."""

_TORN_CHARS = 5
"""So many letters at the start of an order must have been torn."""

_SHORT_VERBS = ("donot", "send", "post", "show", "tell", "give", "leak", "dump")
"""Verbs that have a blank of their own among their first letters, or behind them."""

_SHORT_ORDERS = frozenset({"command", "role"})
"""Of so few letters that harmless words make them by chance."""

_DEPTH = 2
"""How often something encoded may be encoded again."""


def suspicion(text: str) -> str | None:
    """What makes `text` unfit for the system prompt, as a noun phrase; None when nothing does."""
    found = threat(text)
    return None if found is None else found.reason


def threat(text: str) -> Threat | None:
    """The first threat in `text`: what is hidden, what reads like an order, what is encoded. None when none is."""
    if len(text) > LIMIT_CHARS:
        return Threat.of("length", f"over {LIMIT_CHARS:,} characters")
    return unseen(text) or _spelled_out(text) or _encoded(text, _DEPTH) or _blob(text)


def _spelled_out(text: str) -> Threat | None:
    for begin in range(0, max(1, len(text) - _OVERLAP_CHARS), _WINDOW_CHARS - _OVERLAP_CHARS):
        if found := _read(text[begin : begin + _WINDOW_CHARS]):
            return found
    return None


def _read(text: str) -> Threat | None:
    if name := _first(normalize.seen(text), MACHINE):
        return Threat.of(name)
    for number, reading in enumerate(normalize.readings(text)):
        for tongue in _TONGUES:
            if name := tongue.threat_in(reading):
                return Threat.of(name, is_disguised=number > 0)
    for letters in normalize.set_apart(text):
        if name := _first(letters, APART):
            return Threat.of(name, is_disguised=True)
    return _torn(text)


def _torn(text: str) -> Threat | None:
    """An order whose words hold blanks (``igno re al l``): whole words are judged where they stand."""
    plain = normalize.folded(text)
    for name, pattern in APART:
        for found in compiled(pattern).finditer(normalize.joined(text)) if name not in _SHORT_ORDERS else ():
            if found[0][:_TORN_CHARS] not in plain and not found[0].startswith(_SHORT_VERBS):
                return Threat.of(name, is_disguised=True)
    return None


def _encoded(text: str, depth: int) -> Threat | None:
    for inner in decode.decoded(text):
        if inner != text and (found := _spelled_out(inner) or (_encoded(inner, depth - 1) if depth > 1 else None)):
            return Threat.of(found.name, is_disguised=True)
    return None


def _blob(text: str) -> Threat | None:
    return Threat.of("blob") if decode.has_blob(text) else None


def _first(text: str, lures: Iterable[tuple[str, str]]) -> str | None:
    return next((name for name, pattern in lures if compiled(pattern).search(text)), None)
