"""Looks at text that is about to become durable for what no honest text has; wordings of attacks are not chased.

Who said a thing decides what becomes of it (see `core.types.Origin`); this is the look at how it is made. Says what is
wrong in a phrase that follows "it contains"; decides nothing. Patterns are data in `patterns.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from core.guard.fence import neutralise
from core.guard.normalize import hidden, mixed_word, without_hidden

LIMIT_CHARS = 50_000
"""Longer text is not looked at: that is a finding by itself."""
_WORD_END = re.compile(r"[)\s]")

REASONS = {
    "length": f"more than {LIMIT_CHARS:,} characters, which is more than can be looked at",
    "control": "control characters",
    "invisible": "invisible characters",
    "direction": "characters that turn the direction of reading",
    "lookalike": "a word with letters of another alphabet that look the same",
    "forgery": "what looks like a message of this program's own",
    "exfiltration": "an address that data would be sent to",
    "secret": "a key or a link with a secret in it",
}


class Pattern:
    """Found where `then` matches behind a match of `first`, in the same line or, where `is_word`, word: two searches
    that take turns keep the time linear. `needs`: without one of these (in small letters) nothing is searched."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        flags = re.MULTILINE if table.get("is_case_sensitive") else re.MULTILINE | re.IGNORECASE
        self.name, self.needs = table["name"], table["needs"]
        self.first = re.compile(table["first"], flags)
        self.then = re.compile(table["then"], flags) if "then" in table else None
        self.is_word = table.get("is_word", False)

    def is_in(self, text: str) -> bool:
        found = self.first.search(text)
        while found is not None and self.then is not None:
            begin = found.end()
            line_end = text.find("\n", begin)
            end = line_end if line_end >= 0 else len(text)
            if self.is_word and (word_end := _WORD_END.search(text, begin, end)):
                end = word_end.start()
            if self.then.search(text, begin, end):
                return True
            found = self.first.search(text, end)
        return found is not None


def suspicion(text: str) -> str | None:
    """The first thing in `text` that no honest text has, as a noun phrase; None when there is nothing."""
    if len(text) > LIMIT_CHARS:
        return REASONS["length"]
    if found := hidden(text):
        return f"{REASONS[found[0]]} ({found[1]})"
    if neutralise(text) != text:
        return REASONS["forgery"]
    if word := mixed_word(text):
        return f"{REASONS['lookalike']} (“{word[:40]}”)"
    lowered = text.lower()
    for pattern in _patterns():
        if any(one in lowered for one in pattern.needs) and pattern.is_in(text):
            return REASONS[pattern.name]
    return None


def cleaned(text: str) -> str:
    """`text` without hidden characters, and with round brackets around what looks like a fence of ours."""
    return neutralise(without_hidden(text))


@cache
def _patterns() -> tuple[Pattern, ...]:
    tables = tomllib.loads(files("core.guard").joinpath("patterns.toml").read_text("utf-8"))["pattern"]
    return tuple(map(Pattern, tables))
