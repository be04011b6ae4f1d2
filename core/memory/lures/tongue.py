"""A language as the guard knows it: phrases that are orders by themselves, and words for the ideas that orders join.

A phrase is a pattern. Ideas make an order when one sentence holds all of a rule's, in whatever sequence: what was
"said before" and "does not count". The rules are the same for every language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

_SENTENCE = re.compile(r"(?<=[.!?\u061f])\s+|[\u3002\uff01\uff1f\n]")
_SHORTEST_CHARS = 8

_EVERYWHERE = {
    "place": (
        r"(?:https?|ftp|hxxps?):|\bwww\.|\btransfer\.sh|\b0x0\.st|\bfile\.io|\bpaste\w*\.\w|\bpastebin\b|\bgist\b|"
        r"(?<![a-z0-9_.+-])[a-z0-9_.+-]{1,64}@[a-z0-9-]{1,63}\.\w|(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])|"
        r"(?<![a-z0-9-])[a-z0-9-]{1,63}\.(?:com|net|org|io|example|test|ru|cn|xyz|top|site|onion)\b"
    ),
    "offer": r"https?:|\bwww\.|\b[a-z]{2,16}coins?\b",
}
"""Ideas that look alike in all languages: where something may be sent, and what may be sold."""

_RULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("override", ("own", "void")),
    ("override", ("only",)),
    ("override", ("orders", "first")),
    ("secrecy", ("user", "hide")),
    ("exfiltration", ("data", "out", "place")),
    ("disclosure", ("show", "prompt")),
    ("disclosure", ("show", "secrets", "audience")),
    ("role", ("be", "agent", "bad")),
    ("deception", ("each", "push", "offer")),
    ("authority", ("act", "unasked")),
)
"""Names of threats and the ideas that make one, unless the sentence has one that is ``harmless``."""


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """`pattern`, compiled when it is first tried: a command that guards nothing does not wait for hundreds of them."""
    return re.compile(pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tongue:
    """`lures` are patterns with the threat that each betrays, `words` patterns by the idea they stand for; `script`
    finds a letter of the language, so that other text need not be searched for its words."""

    lures: Sequence[tuple[str, str]]
    words: Mapping[str, str] = field(default_factory=dict)
    script: str = ""

    def threat_in(self, text: str) -> str | None:
        """The name of the first threat that the folded `text` holds in this language; None when it holds none."""
        if self.script and not compiled(self.script).search(text):
            return None
        for name, pattern in self.lures:
            if compiled(pattern).search(text):
                return name
        return self._joined(text)

    def _joined(self, text: str) -> str | None:
        for sentence in _SENTENCE.split(text) if self.words else ():
            if len(sentence) < _SHORTEST_CHARS or ("harmless" in self.words and self._has("harmless", sentence)):
                continue
            for name, ideas in _RULES:
                if all(self._has(idea, sentence) for idea in ideas):
                    return name
        return None

    def _has(self, idea: str, sentence: str) -> bool:
        pattern = self.words.get(idea) or _EVERYWHERE.get(idea)
        return pattern is not None and compiled(pattern).search(sentence) is not None
