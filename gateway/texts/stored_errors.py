"""Finds the key and the values of an error that core stored as an English sentence.

The gateway shows stored errors in the person's language, so it looks up which sentence of
`core/errors.toml` a text is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from core.errors import load_sentences

# The keys of clauses in `core/errors.toml` that are stored with their values.
_CLAUSE_PREFIXES = (
    "waits_",
    "source_",
    "label_",
    "mark_",
    "damage_",
    "left_out_",
    "import_",
    "archive_",
)
# The keys of the errors of memory services that an explanation follows.
_EXPLAINED_ERRORS = ("service_failed", "service_refuses", "service_rests")
# Patterns for values. If a value isn't listed, it may be any text.
_VALUES = {"number": r"\d+", "percent": r"\d+", "file": r"\S+"}


@cache
def load_clause_patterns() -> Mapping[str, re.Pattern[str]]:
    """Return a pattern for each English clause that may be stored with its values, by its key."""
    return {
        key: re.compile(_to_pattern(sentence), re.DOTALL)
        for key, sentence in load_sentences().items()
        if key.startswith(_CLAUSE_PREFIXES) and "{" in sentence
    }


@cache
def load_service_patterns() -> Mapping[str, re.Pattern[str]]:
    """Return a pattern for each English error of memory services, by its key.

    Some errors are followed by the service's own explanation, which may be another error.
    """
    patterns = dict(compile_patterns("service_"))
    for key in _EXPLAINED_ERRORS:
        explained = f"{patterns[key].pattern}(?:: (?P<explanation>.+))?"
        patterns[key] = re.compile(explained, re.DOTALL)
    return patterns


@cache
def compile_patterns(prefix: str) -> Mapping[str, re.Pattern[str]]:
    """Return a pattern for each English sentence whose key has a prefix, by its key.

    The sentences with the most fixed text come first, because others may match the same text.
    """
    sentences = {
        key: sentence for key, sentence in load_sentences().items() if key.startswith(prefix)
    }
    keys = sorted(sentences, key=lambda key: _count_fixed_text(sentences[key]), reverse=True)
    return {key: re.compile(_to_pattern(sentences[key]), re.DOTALL) for key in keys}


def _count_fixed_text(sentence: str) -> int:
    """Return the number of characters outside of placeholders."""
    return len(re.sub(r"\{[^}]*\}", "", sentence))


def _to_pattern(sentence: str) -> str:
    """Return a pattern that matches an English sentence with any values."""
    parts = re.split(r"\{(\w+)(?::,)?\}", sentence)
    parts[::2] = map(re.escape, parts[::2])
    names: set[str] = set()
    for place in range(1, len(parts), 2):
        name = parts[place]
        # A repeated value must be the same each time.
        parts[place] = f"(?P={name})" if name in names else f"(?P<{name}>{_VALUES.get(name, '.+')})"
        names.add(name)
    return "".join(parts)


def is_clause(text: str) -> bool:
    """Return whether core can have stored this text: a sentence, or a clause with its values."""
    return text in load_sentences().values() or any(
        pattern.fullmatch(text) for pattern in load_clause_patterns().values()
    )


def read_values(match: re.Match[str]) -> dict[str, object]:
    """Return the values of a stored clause, with numbers as integers and alternatives as a list."""
    values: dict[str, object] = {}
    for name, value in match.groupdict().items():
        if value is None:
            continue
        values[name] = value
        if name == "words":
            values[name] = re.split("(?<=”) or (?=“)", value)
        elif re.fullmatch(r"\d+(,\d+)*", value):
            values[name] = int(value.replace(",", ""))
    return values
