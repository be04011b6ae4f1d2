"""Finds clauses that refuse a change, such as "stop deleting my reminders".

A person who says "don't remove it", "hands off" or "no need to pause it" uses the same verbs as a
person who requests the change. `core/review/data/refusals.toml` lists the forms of these verbs, the
words that refuse, and whether those words come before or after the verb.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from core.text.normalize import fold, language_data, plain_with_offsets
from core.types import Effect

# The tables with the forms of the verbs for an effect.
_FORMS = {
    Effect.REMOVE: ("endings",),
    Effect.WEAKEN: ("endings",),
    Effect.CHANGE: ("endings", "changes"),
    Effect.PLAN: ("plans",),
}
# The maximum distance between a word that refuses and the verb, in words, or in letters for a
# script without spaces.
_GAPS = {"spaced": r"(?: [\w']+){0,4}?[ ']", "unspaced": r"[^\u4e86]{0,6}?"}


def list_refusals(
    clauses: Sequence[str], effect: Effect | None, languages: Iterable[str]
) -> set[str]:
    """Return the clauses of a sentence that refuse an effect.

    A clause that consists only of "stop" is joined with the next clause.
    """
    if effect not in _FORMS:
        return set()
    refusals: set[str] = set()
    before = ""
    for clause in clauses:
        if any(_refuses(f"{before} {clause}".strip(), effect, code) for code in languages):
            refusals.add(clause)
        is_stop = any(_pattern(code, "stops").fullmatch(clause) for code in languages)
        before = clause if is_stop else ""
    return refusals


def _refuses(text: str, effect: Effect, language: str) -> bool:
    """Return whether plain words refuse an effect.

    "Don't let me forget" doesn't refuse anything, because it requests a reminder.
    """
    if effect is Effect.CHANGE and _pattern(language, "kept").search(text):
        return True
    if _refusal_pattern(language, effect).search(text) is None:
        return False
    return effect is not Effect.PLAN or _pattern(language, "forgetting").search(text) is None


def to_plain_pattern(pattern: str) -> str:
    """Return a pattern in lower case and without accents, so that it matches plain words."""
    return plain_with_offsets(fold(pattern))[0].replace("\\W", "\\w")


@cache
def _refusal_pattern(language: str, effect: Effect) -> re.Pattern[str]:
    """Return a pattern for a word that refuses, and the verb before or after it."""
    data = language_data("refusals", "core.review")[language]
    forms = "|".join(to_plain_pattern(data[name]) for name in _FORMS[effect])
    parts = []
    if data["before"]:
        edge, gap = (r"(?<!\w)", _GAPS["spaced"]) if data["is_spaced"] else ("", _GAPS["unspaced"])
        parts.append(rf"{edge}(?:{to_plain_pattern(data['before'])}){gap}(?:{forms})")
    behind = data["behind_plans" if effect is Effect.PLAN else "behind"]
    if behind:
        edge = r"(?<!\w)" if data["is_spaced"] else ""
        parts.append(rf"{edge}(?:{forms})(?:{to_plain_pattern(behind)})")
    return re.compile("|".join(parts))


@cache
def _pattern(language: str, name: str) -> re.Pattern[str]:
    words = language_data("refusals", "core.review")[language].get(name)
    return re.compile(to_plain_pattern(words) if words else r"(?!)")
