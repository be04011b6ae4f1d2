"""Finds the words that a person typed and that a search on the web may contain.

What somebody keeps secret is often typed right before a question about something else: "My PIN is
4471. When does the ferry leave?" The words of such a clause may only be searched for if the clause
itself asks for it (`core/review/data/searches.toml` has the words).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from core.guard.guard import find_suspicion
from core.review.negation import to_plain_pattern
from core.review.wishes import UNSPACED_LANGUAGES, find_languages, split_clauses
from core.text.normalize import language_data

# A clause of at most this many words may be the secret that the clause before it announces.
_MAX_SECRET_WORDS = 3
_SENTENCE_END = re.compile(r"(?<=[.!?\u2026])\s+|(?<=[\u3002\uff01\uff1f])|\n")


def list_searchable(texts: Iterable[str]) -> str:
    """Return the typed texts whose words a search may have, without clauses that state a secret."""
    return "\n".join(map(_drop_secrets, texts))


def _drop_secrets(text: str) -> str:
    """Return a text, or its clauses as plain words without those that may state a secret."""
    languages = find_languages(text)
    kept: list[str] = []
    has_secret = is_announced = False
    for sentence in filter(None, _SENTENCE_END.split(text)):
        clauses = [clause for clause, _ in split_clauses(sentence, languages)]
        is_question = sentence.rstrip().endswith(("?", "\uff1f")) and len(clauses) == 1
        is_key = find_suspicion(sentence) is not None
        for clause in clauses:
            names_secret = _has(clause, "secrets", languages)
            is_value = is_announced and len(clause.split()) <= _MAX_SECRET_WORDS
            asks = _has(clause, "lookups", languages) or (is_question and not is_value)
            if asks or not (names_secret or is_value or is_key):
                kept.append(clause)
            else:
                has_secret = True
            is_announced = names_secret
    return "\n".join(kept) if has_secret else text


def _has(clause: str, name: str, languages: Iterable[str]) -> bool:
    return any(_pattern(language, name).search(clause) for language in languages)


@cache
def _pattern(language: str, name: str) -> re.Pattern[str]:
    words = to_plain_pattern(language_data("searches", "core.review")[language][name])
    is_spaced = language not in UNSPACED_LANGUAGES and language != "ko"
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)" if is_spaced else words)
