"""Splits typed text into plain words and clauses, and detects its language.

`core/review/data/wishes.toml` contains the words of each language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from core.review.negation import to_plain_pattern
from core.text.languages import latin_stop_words, script_stop_words
from core.text.normalize import fold, is_unspaced, language_data, plain_with_offsets, words_of
from core.text.pastes import QUOTATION
from core.text.terms import stop_words, terms_of

LANGUAGES = ("en", "de", "es", "fr", "pt", "ru", "zh", "ja", "ko", "tr")
UNSPACED_LANGUAGES = frozenset({"zh", "ja"})
# Tables with stems of Korean words, to which endings are added.
_KOREAN_PARTS = frozenset({"hearsay", "request", "denial", "ends", "pauses"})
_NAMES = {"german": "de", "spanish": "es", "french": "fr", "portuguese": "pt", "turkish": "tr"}
_SCRIPTS = (
    ("ko", re.compile("[\uac00-\ud7a3]")),
    ("ja", re.compile("[\u3041-\u30ff]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("ru", re.compile("[\u0400-\u052f]")),
)
LATIN = frozenset({"en", "de", "es", "fr", "pt", "tr"})
# Letters that only one language has.
_LETTERS = {
    "de": "\u00df\u00e4",
    "es": "\u00f1\u00bf\u00a1",
    "fr": "\u0153\u00e8\u00f9\u00eb",
    "pt": "\u00e3\u00f5",
    "tr": "\u011f\u015f\u0131",
}
# Languages that can't be told apart in short texts.
_RELATED = frozenset({"es", "pt"})
SENTENCE_END = re.compile(
    r"(?<=[.!?\u2026])(?<!\b[A-Z][a-z]\.)(?<!\b[A-Z]\.)(?<!\b[A-Z][a-z]{2}\.)\s+"
    r"|(?<=[\u3002\uff01\uff1f])"
)
ANSWER_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])[)\]*_”\"']*\s+|(?<=[。！？])|\n+")
_CLAUSE_END = re.compile(
    r"(?<!\d)[,:](?!\d)|[,:]\s|[;()\u2013\u2014\uff0c\uff1a\uff1b\u3001\u201d\u2026]|\s-\s"
)
# "Do" in Turkish, as in "iptal et". The French "et" never ends a text.
_TURKISH_VERB = "et"
# The placeholder for a quotation, because its words aren't the person's own.
_MASK = "\u00a7"
_NOT_A_WORD = re.compile(rf"[^\w'{_MASK}]+")
# Numbers in a list stay in one clause.
_NUMBER_LIST = re.compile(
    r"(\d)(?:\s*,\s*|\s+(?:and|und|y|et|e|\u0438|ve)\s+|\s*[\u3001\u548c\u3068]\s*)(?=\d)"
)
# A comma before "that", as in "vergiss, dass …".
_SUBORDINATE = re.compile(
    r",(?=\s+(?:dass|da\u00df|was|wer|wie|wo|that|what|who|where|\u0447\u0442\u043e|\u043a\u0430\u043a|\u0433\u0434\u0435|\u043a\u0442\u043e)\b)"
)
# A colon directly after the verb: "fix: the boat is green".
_VERB_WITH_COLON = re.compile(r"^\s*(\w+(?:\s+\w+)?)\s*[:\uff1a](?=\s)")
# The maximum number of words before a dictated text.
_MAX_LEAD_WORDS = 6
# The last two are words of Chinese.
_QUESTION_MARKS = ("?", "\uff1f", "\u5417", "\u55ce")


def is_question(text: str) -> bool:
    return text.rstrip(" \u3002.").endswith(_QUESTION_MARKS)


def mask_quotations(text: str) -> str:
    """Return a text with a placeholder for each quotation."""
    return QUOTATION.sub(f" {_MASK} ", text)


def unmask(words: str, quotations: Iterable[str]) -> str:
    """Return plain words with the quotations in place of their placeholders."""
    for quotation in quotations:
        words = words.replace(_MASK, quotation, 1)
    return words


def gap_of(language: str) -> str:
    """Return the separator between two words of a language."""
    return "" if language in UNSPACED_LANGUAGES else " "


def split_clauses(sentence: str, languages: frozenset[str]) -> list[tuple[str, bool]]:
    """Return the clauses of a sentence as plain words, and whether a colon precedes each clause."""
    text = _VERB_WITH_COLON.sub(r"\1 ", _NUMBER_LIST.sub(r"\1 ", sentence))
    text = _SUBORDINATE.sub(" ", text)
    clauses: list[tuple[str, bool]] = []
    is_after_colon = False
    start = 0
    ends = [*_CLAUSE_END.finditer(text), None]
    for end in ends:
        part = text[start : end.start() if end else len(text)]
        for number, piece in enumerate(joint_pattern(languages).split(to_plain(part))):
            if piece.strip():
                clauses.append((piece.strip(), is_after_colon and number == 0))
        if end:
            is_after_colon = end[0].strip() in (":", "\uff1a")
            start = end.end()
    return clauses


def to_plain(text: str) -> str:
    """Return a text as words in lower case, without accents and punctuation."""
    plain = plain_with_offsets(fold(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")))[0]
    return " ".join(_NOT_A_WORD.sub(" ", plain).split())


def count_common_words(text: str) -> dict[str, int]:
    """Return how many common words of each language with Latin letters a text contains."""
    words = [word for word in words_of(text.casefold()) if len(word) > 1]
    counts = {"en": sum(word in stop_words() for word in words)}
    for name, language in _NAMES.items():
        known = sum(word in latin_stop_words(name) for word in words)
        letters = sum(letter in _LETTERS[language] for letter in text.casefold())
        counts[language] = known + letters
    if words[-1:] == [_TURKISH_VERB]:
        counts["fr"] -= 1
        counts["tr"] += 1
    return counts


def find_languages(text: str) -> frozenset[str]:
    """Return the languages that a text may be in, always including English.

    For a text in Latin letters, these are the languages with the most of its common words, or one
    fewer. A text without common words may be in any of them.
    """
    for language, script in _SCRIPTS:
        if script.search(text):
            return frozenset({language, "en"})
    counts = count_common_words(text)
    max_count = max(counts.values())
    if max_count == 0:
        return LATIN
    languages = {language for language, count in counts.items() if count >= max(1, max_count - 1)}
    if not languages.isdisjoint(_RELATED):
        languages |= _RELATED
    return frozenset({*languages, "en"})


@cache
def joint_pattern(languages: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern for words that join two clauses, such as "and" and "then"."""
    joints = []
    for language in sorted(languages):
        words = language_data("wishes", "core.review")[language]["joint"]
        pattern = f"(?:{words})".replace("(?:?:", "(?:")
        joints.append(pattern if language in UNSPACED_LANGUAGES else rf"(?:^|\s){pattern}\s")
    return re.compile("|".join(joints))


def has_marker(plain: str, name: str, languages: Iterable[str]) -> bool:
    """Return whether a plain text contains a word from the table `name` in one of the languages."""
    return any(marker(language, name).search(plain) is not None for language in languages)


@cache
def marker(language: str, name: str) -> re.Pattern[str]:
    """Return a pattern for the words in one table of a language, such as the words for hearsay."""
    words = language_data("wishes", "core.review")[language][name]
    joined = "|".join(words) if isinstance(words, list) else words
    joined = to_plain_pattern(joined)
    is_spaced = language not in UNSPACED_LANGUAGES and not (
        language == "ko" and name in _KOREAN_PARTS
    )
    return re.compile(rf"(?<!\w)(?:{joined})(?!\w)" if is_spaced else joined)


@cache
def small_words(language: str) -> frozenset[str]:
    """Return the small words that may occur in an item's name, and single Latin letters.

    Single letters occur as endings after an apostrophe.
    """
    words = language_data("wishes", "core.review")[language]["small"].split()
    letters = () if language in UNSPACED_LANGUAGES else "abcdefghijklmnopqrstuvwxyz"
    return frozenset({*map(to_plain, words), *letters})


@cache
def polite_words(language: str) -> frozenset[str]:
    """Return the small words of a language, and the words that begin or end a request."""
    data = language_data("wishes", "core.review")[language]
    phrases = " ".join((*data["lead"], *data["tail"]))
    return small_words(language) | frozenset(to_plain(phrases).split())


def split_list(words: str, language: str) -> list[str]:
    """Return the parts of plain words that are joined by words such as "and"."""
    return [part for part in joint_pattern(frozenset({language})).split(words) if part.strip()]


@cache
def detail_words(language: str) -> frozenset[str]:
    """Return words that name an item only together with other words, such as days of the week."""
    words = language_data("wishes", "core.review")[language]["filler"].split()
    return frozenset(filter(None, map(to_plain, words)))


@cache
def filler_words(language: str) -> frozenset[str]:
    """Return words that don't name an item, such as articles, and the `detail_words`."""
    forms = set(detail_words(language))
    for name, code in _NAMES.items():
        if code == language:
            forms |= {to_plain(word) for word in latin_stop_words(name)}
    if language == "ru":
        forms |= {to_plain(word) for word in script_stop_words()}
    if language == "en":
        forms |= {to_plain(word) for word in stop_words()}
    return frozenset(form for form in forms if form)


@cache
def list_plain_words(table: str) -> frozenset[str]:
    """Return the words in a table of `wishes.toml` for all languages, without accents."""
    tables = language_data("wishes", "core.review")
    return frozenset(to_plain(word) for words in tables[table].values() for word in words)


def is_plain_yes(text: str) -> bool:
    """Return whether a text is just a "yes" in any language, perhaps with polite words."""
    if "?" in text or "\uff1f" in text:
        return False
    yes, polite = list_plain_words("yes"), list_plain_words("polite")
    words = to_plain(text).split()
    while words and words[-1] in polite and " ".join(words) not in yes:
        words = words[:-1]
    return " ".join(words) in yes or ("".join(words) in yes and is_unspaced(text))


def is_dictated(text: str, message: str) -> bool:
    """Return whether a message only instructs to write a text, such as "Write: met Ana today"."""
    lead, colon, rest = message.partition(":")
    if not colon or rest.strip() != text.strip() or not 0 < len(lead.split()) <= _MAX_LEAD_WORDS:
        return False
    return not has_marker(to_plain(lead), "denial", find_languages(lead))


def list_questions(text: str) -> list[str]:
    """Return the sentences of a text that are questions."""
    sentences = ANSWER_SENTENCE_END.split(text.strip())
    return [sentence for sentence in sentences if ends_with_question(sentence)]


def ends_with_question(text: str) -> bool:
    return text.rstrip(" *_”\"')]").endswith(("?", "\uff1f"))


def asks_for_yes(answer: str) -> bool:
    """Return whether an answer ends with its only question, so that a "yes" answers it."""
    return ends_with_question(answer) and len(list_questions(answer)) == 1


def list_question_terms(question: str) -> frozenset[str]:
    """Return the terms of a question without those of an offer such as "Shall I"."""
    terms = set(terms_of(question))
    for language in LANGUAGES:
        offer = marker(language, "offer").search(to_plain(question))
        if offer is not None:
            terms.difference_update(terms_of(offer[0]))
    return frozenset(terms)
