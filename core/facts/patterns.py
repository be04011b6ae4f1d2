"""Load the patterns of statements from `data/patterns.toml`, and compile each of them once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

from core.store.facts.rows import FactKind
from core.text.normalize import fold, language_data
from core.text.terms import relation_words

LANGUAGES = (
    "english",
    "german",
    "french",
    "spanish",
    "portuguese",
    "russian",
    "chinese",
    "japanese",
    "korean",
    "turkish",
)
UNSPACED_LANGUAGES = ("chinese", "japanese", "korean")
NON_LATIN_LANGUAGES = frozenset({"russian", *UNSPACED_LANGUAGES})
"""Each statement in these languages contains a letter outside of ASCII."""
ASCII_LANGUAGES = tuple(name for name in LANGUAGES if name not in NON_LATIN_LANGUAGES)
Shape = Literal["place", "name", "title", "thing", "date", "number", "free"]
WordTable = Literal["relations", "things"]
"""A word list with translations: relations such as "sister", or things that people have."""

MIN_SIGN_CHARS = 3
_LITERAL_START = re.compile(r"[^\W_]+(?: [^\W_]+)*(?![?*{\w])")
"""The literal words at the beginning of an expression, without an optional last letter."""
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
"""A placeholder in a pattern, such as ``{relation}``."""
_GROUP_NAME = re.compile(r"\(\?P<[a-z_]+>")
_data = partial(language_data, "patterns", "core.facts")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPattern:
    """A pattern for one way to state a fact. See the top of `data/patterns.toml`."""

    # The regular expression for a whole clause, with placeholders.
    text: str
    # The attribute, such as "home". It may contain the placeholder ``{what}``. It is empty for a
    # statement without an attribute.
    what: str
    # The shape that the value must have.
    shape: Shape
    kind: FactKind = "identity"
    # For things that a person likes or dislikes: "like" or "dislike". Each thing then has an
    # attribute of its own.
    stance: str = ""
    # Whether the clause may contain a denial, such as "not".
    may_deny: bool = False
    # Whether the clause names a relative or friend of the speaker: "my sister is Ana".
    is_relation: bool = False


@cache
def claim_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern that doesn't match a whole statement, such as the pattern of denials."""
    return compile_pattern("".join(_data()["patterns"][name]))


@cache
def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern.

    Placeholders are replaced first, including those inside other placeholders.
    """
    return re.compile(_fill_placeholders(text), re.IGNORECASE | re.DOTALL)


def _fill_placeholders(text: str) -> str:
    while _PLACEHOLDER.search(text):
        text = _PLACEHOLDER.sub(lambda match: _placeholders()[match[1]], text)
    return text


@cache
def _placeholders() -> Mapping[str, str]:
    """Return the regular expression for each placeholder, by name."""
    parts = {name: "".join(text) for name, text in _data()["parts"].items()}
    parts["relation"] = _any_of(relation_words())
    for language, words in _translations("relations").items():
        parts[f"relation_{language}"] = _any_of(" ".join(words.values()).split())
    for language, words in _translations("things").items():
        parts[f"things_{language}"] = f"(?P<what>{_any_of(' '.join(words.values()).split())})"
    return parts


def _any_of(words: Iterable[str]) -> str:
    """Return a regular expression for any of the words. Longer words come first."""
    return "|".join(sorted(words, key=len, reverse=True))


def _translations(table: WordTable) -> Mapping[str, Mapping[str, str]]:
    """Return a table of English words and their translations, by language.

    For example, the German table maps "wife" to "frau ehefrau".
    """
    if table == "relations":
        relations: Mapping[str, Mapping[str, str]] = language_data("attributes")["kin_abroad"]
        return relations
    things: Mapping[str, Mapping[str, str]] = _data()["things"]
    return things


@cache
def load_english_words(table: WordTable) -> Mapping[str, str]:
    """Return the English translation of each word of other languages."""
    english_words: dict[str, str] = {}
    for translations in _translations(table).values():
        for english, words in translations.items():
            english_words |= dict.fromkeys(words.split(), english)
    return english_words


@cache
def load_patterns(language: str) -> tuple[ClaimPattern, ...]:
    """Return the patterns of a language's statements in the order in which they are tried."""
    data = _data()
    patterns: list[ClaimPattern] = []
    for meaning, texts in data[language].items():
        patterns += [ClaimPattern(text=text, **data["meanings"][meaning]) for text in texts]
    return tuple(patterns)


@cache
def any_claim_pattern(language: str) -> re.Pattern[str]:
    """Return a pattern that matches the clauses that at least one pattern of a language matches.

    Most clauses state no fact. Comparing them with one pattern instead of dozens takes a quarter of
    the time.
    """
    texts = [f"(?:{pattern.text})" for pattern in load_patterns(language)]
    # The same names of groups occur in several patterns, which `re` doesn't allow.
    return compile_pattern(_GROUP_NAME.sub("(?:", _fill_placeholders("|".join(texts))))


@cache
def naming_verbs() -> Mapping[str, str]:
    """Return the verb that gives a name, such as "heißt", by language."""
    verbs: Mapping[str, str] = _data()["named"]
    return verbs


@cache
def load_words(name: str) -> frozenset[str]:
    return frozenset(_data()["words"][name].split())


@cache
def change_signs() -> Mapping[str, tuple[str, ...]]:
    """Return the beginnings of expressions of change and correction, in all languages.

    They are grouped by their first two characters, so that a text is compared with only a few of
    them. Compiling the expressions themselves would delay the first message.
    """
    signs: set[str] = set()
    data = language_data("changes", "core.facts")
    for language, lists in data.items():
        min_chars = 1 if language in UNSPACED_LANGUAGES else MIN_SIGN_CHARS
        for expression in (*lists.get("change", ()), *lists.get("correction", ())):
            beginning = _LITERAL_START.match(fold(expression))
            if beginning is not None and len(beginning[0]) >= min_chars:
                signs.add(beginning[0])
    signs -= set(data["shared"]["no_signs"].split())
    groups: dict[str, list[str]] = {}
    for sign in signs:
        groups.setdefault(sign[:2], []).append(sign)
    return {start: tuple(group) for start, group in groups.items()}


@cache
def correction_openings() -> tuple[str, ...]:
    """Return the beginnings of corrections that count only at the beginning of a message."""
    openings: set[str] = set()
    for lists in language_data("changes", "core.facts").values():
        for expression in lists.get("correction", ()):
            beginning = _LITERAL_START.match(fold(expression[1:]))
            if expression.startswith("^") and beginning is not None:
                openings.add(beginning[0])
    return tuple(openings)


def compile_expressions(expressions: Iterable[str], language: str) -> re.Pattern[str]:
    """Compile expressions of a language.

    If the language has spaces between words, a match must not be part of a longer word.
    """
    if language in UNSPACED_LANGUAGES:
        # Texts are folded before they are searched, so the expressions are folded, too.
        return re.compile("|".join(map(fold, expressions)))
    return re.compile(rf"(?<!\w)(?:{'|'.join(expressions)})(?!\w)")
