"""Read messages in which every word has a role, such as "I won't need that one anymore".

A vocabulary is a table of `data/<name>.toml`, which lists the phrases of a language for each role.
People write countless such sentences with the same few words. Phrases are compared in plain form. A
star at the end of a phrase matches any ending.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from core.scheduling.phrases import plain_words
from core.text.normalize import language_data

MAX_ENDING_LETTERS = 6
"""A star at the end of a phrase matches an ending of at most this many letters."""
_UNSPACED_LANGUAGES = frozenset({"ja", "zh"})

Roles = frozenset[str]


class _Entry(NamedTuple):
    """A phrase of a vocabulary, and its role."""

    form: str
    role: str
    is_stem: bool


class Vocabulary(NamedTuple):
    """The phrases of one language, each with its role."""

    language: str
    # The phrases by their first character, longest first.
    entries: Mapping[str, Sequence[_Entry]]

    @property
    def is_unspaced(self) -> bool:
        """Whether the language has no spaces between words."""
        return self.language in _UNSPACED_LANGUAGES

    def prepare(self, text: str) -> str:
        """Return the plain words of a text, without spaces if the language has none."""
        words = plain_words(text)
        return words.replace(" ", "") if self.is_unspaced else words

    def read_roles(self, text: str) -> set[Roles]:
        """Return the roles of a text's phrases, or an empty set if a word has no role.

        If the text can be divided into phrases in several ways, return a result for each.
        """
        words = self.prepare(text)
        # The roles of the text up to each position at which a phrase may end.
        roles_by_end: dict[int, set[Roles]] = {0: {frozenset()}}
        for position in range(len(words)):
            results = roles_by_end.get(position)
            if results is None:
                continue
            if words[position] == " ":
                roles_by_end.setdefault(position + 1, set()).update(results)
                continue
            for end, role in self._match(words, position):
                extended_results = {roles | {role} for roles in results}
                roles_by_end.setdefault(end, set()).update(extended_results)
        return roles_by_end.get(len(words), set())

    def split(self, text: str) -> tuple[Roles, str]:
        """Return the roles of a text, and its plain words without a role.

        At each position, the longest phrase counts.
        """
        words = self.prepare(text)
        roles: set[str] = set()
        other_words: list[str] = []
        position = 0
        while position < len(words):
            longest_match = next(self._match(words, position), None)
            if longest_match is not None:
                position, role = longest_match
                roles.add(role)
                # Keep the words before and after a phrase apart.
                other_words.append(" ")
            else:
                end = max(self._end_of_word(words, position), position + 1)
                other_words.append(words[position:end])
                position = end
        return frozenset(roles), " ".join("".join(other_words).split())

    def _match(self, words: str, position: int) -> Iterator[tuple[int, str]]:
        """Yield the end and the role of each phrase at a position, the longest phrase first."""
        for entry in self.entries.get(words[position], ()):
            if not words.startswith(entry.form, position):
                continue
            end = position + len(entry.form)
            if entry.is_stem:
                word_end = self._end_of_word(words, end)
                if word_end - end <= MAX_ENDING_LETTERS:
                    yield word_end, entry.role
            elif self.is_unspaced or entry.form.endswith("'") or self._is_word_end(words, end):
                yield end, entry.role

    def _end_of_word(self, words: str, position: int) -> int:
        if self.is_unspaced:
            return position + 1
        while position < len(words) and words[position] != " ":
            position += 1
        return position

    @staticmethod
    def _is_word_end(words: str, end: int) -> bool:
        return end == len(words) or words[end] == " "


@cache
def load_vocabularies(name: str) -> tuple[Vocabulary, ...]:
    """Return the vocabularies of `data/<name>.toml`, one for each language."""
    data: Mapping[str, Any] = language_data(name, "core.scheduling")
    return tuple(_build(language, tables) for language, tables in data.items())


def _build(language: str, tables: Mapping[str, str]) -> Vocabulary:
    """Build a vocabulary from its table, which lists phrases by role."""
    entries: dict[str, list[_Entry]] = {}
    for role, phrases in tables.items():
        for phrase in re.split(r"[,\n]", phrases):
            form = plain_words(phrase)
            if language in _UNSPACED_LANGUAGES:
                form = form.replace(" ", "")
            if form:
                is_stem = phrase.strip().endswith("*")
                entries.setdefault(form[0], []).append(_Entry(form, role, is_stem))
    for group in entries.values():
        group.sort(key=lambda entry: -len(entry.form))
    return Vocabulary(language, entries)
