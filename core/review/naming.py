"""Finds out whether a wish names one specific thing, such as one of a person's reminders.

A thing is named by its number next to the word for its kind ("reminder 4"), as one of all things of
its kind ("all my reminders"), or by words of its text. These words must name it better than any
other thing of the kind that the person can see, and most of the words must be its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from core.dates.mentions import month_number
from core.review.wishes import (
    UNSPACED_LANGUAGES,
    Wish,
    detail_words,
    filler_words,
    find_languages,
    is_against,
    to_plain,
)
from core.text.normalize import is_unspaced, language_data
from core.text.terms import word_terms
from core.types import Subject

ENDING_TABLES = ("remove", "weaken", "stated")
KINDS = ("reminder", "memory", "skill")
# Two words are forms of one word if at least this many of their first letters agree.
_MIN_STEM_LETTERS = 4
_MIN_CYRILLIC_STEM_LETTERS = 3
_MAX_ENDING_LETTERS = 4
_MIN_COMPOUND_LETTERS = 6
_UNSPACED_LETTERS = "\u3041-\u30ff\u4e00-\u9fff"
_PART = re.compile(rf"\d+|[{_UNSPACED_LETTERS}]+|[^\W\d_{_UNSPACED_LETTERS}]+")
_HIRAGANA = re.compile("[\u3041-\u309f]+")
# A word with a capital behind another word.
_INNER_CAPITAL = re.compile(r"(?<=\w[\s,])\s?([A-Z\u00c0-\u00de\u0410-\u042f][^\W\d_]+)")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_CYRILLIC = re.compile("[\u0400-\u052f]")
# Endings of words that mark the subject of a clause: the one who does something.
_SUBJECT_PARTICLES = {"ko": ("\uac00", "\uc774", "\uaed8\uc11c"), "ja": ("\u304c",)}
# In scripts without spaces, at most one letter in this many may be missing.
_MAX_MISSING_SHARE = 4
# In these languages, a clause may begin with its subject, and nothing marks it as the subject.
_STRICT_LANGUAGES = frozenset({"de", "zh"})
_USER_WORDS = frozenset({"user", "users", "nutzer", "usuario", "utilizador", "utilisateur"})
# This many words of a note or fact name it without a word such as "note".
_MIN_CLEAR_SCORE = 2
_DOUBTED_KIND = "memory"


@dataclass(frozen=True, slots=True)
class _Part:
    """A word of a wish: a number, a word for a kind or for all, content, and so on.

    A detail, such as a day of the week, tells apart things that are named by content.
    """

    text: str
    role: str


def names_subject(wish: Wish, subject: Subject) -> bool:
    """Return True if a wish names a thing, and no other thing of its kind.

    A wish to plan something new names nothing that exists. A wish for a later day isn't for now,
    unless the day belongs to the thing, as in "cancel the dentist on Friday".
    """
    if not _is_for_now(wish, subject):
        return False
    parts = _read_parts(wish)
    if not _may_mean_kind(wish, parts, subject.kind):
        return False
    content = [part.text for part in parts if part.role == "content"]
    numbers = _find_numbers(parts, has_content=bool(content), language=wish.language)
    if numbers:
        return subject.number in numbers and not _names_another(wish, content, subject)
    roles = {part.role for part in parts}
    has_kind = not roles.isdisjoint(KINDS)
    if wish.table == "stated" and not has_kind and "generic" not in roles:
        return False
    if not content and has_kind and "all" in roles:
        return True
    return _names_by_words(wish, parts, content, subject)


def _names_another(wish: Wish, content: Sequence[str], subject: Subject) -> bool:
    """Return True if the words beside a number name only something else, such as Eve's list."""
    is_ending = wish.table in ENDING_TABLES
    return is_ending and bool(content) and _compare(content, subject.text)[0] == 0


def _is_for_now(wish: Wish, subject: Subject) -> bool:
    """Return True if a wish is for a thing that exists, for now, and not for a text."""
    if wish.table == "plan" or (wish.later and not _states_day(subject, wish.later)):
        return False
    return wish.table not in ENDING_TABLES or not is_kept_or_in_text(wish.sentence, subject)


def is_kept_or_in_text(message: str, subject: Subject) -> bool:
    """Return True if a message keeps a thing, or is about a text that mentions its name."""

    def names(clause: str) -> bool:
        return _compare(_PART.findall(clause), subject.text)[0] > 0

    return is_against(message, names, f"{subject.text} {subject.label}")


def _states_day(subject: Subject, day: str) -> bool:
    """Return True if a thing's text contains the words of a day."""
    return _compare(_PART.findall(day), subject.text)[0] > 0 and consists_of(day, subject.text)


def mentions_subject(message: str, subject: Subject) -> bool:
    """Return True if a message has words of a thing's text, and of no other thing more.

    The thing's number next to the word for its kind is enough, too.
    """
    for language in find_languages(message):
        plain = to_plain(message)
        if language in UNSPACED_LANGUAGES:
            plain = plain.replace(" ", "")
        wish = Wish(plain, "", language, is_object_first=False, sentence=message)
        parts = _read_parts(wish)
        content = [part.text for part in parts if part.role == "content"]
        numbers = _find_numbers(parts, has_content=bool(content), language=language)
        if subject.number and subject.number in numbers:
            return True
        words = [*content, *(part.text for part in parts if part.role == "detail")]
        total = _compare(words, subject.text)[0]
        if total == 0 and _shares_compound(content, subject.text):
            return True
        is_best = all(total >= _compare(words, other)[0] for other in subject.others)
        if is_best and _compare(content, subject.text)[0]:
            return True
    return False


def _shares_compound(words: Sequence[str], text: str) -> bool:
    """Return True if one of the words begins a longer word of a text, such as "dentistry"."""
    return any(
        len(word) >= _MIN_COMPOUND_LETTERS and other.startswith(word)
        for word in words
        for other in to_plain(text).split()
    )


def _may_mean_kind(wish: Wish, parts: Sequence[_Part], kind: str) -> bool:
    """Return True unless a wish names another kind of thing.

    Doubt ("that's not true") can only mean a memory, because reminders and skills claim nothing.
    """
    if wish.table in ("doubt", "denied") and kind not in ("", _DOUBTED_KIND):
        return False
    kinds = {part.role for part in parts if part.role in KINDS}
    return not kind or not kinds or kind in kinds


def _names_by_words(
    wish: Wish, parts: Sequence[_Part], content: Sequence[str], subject: Subject
) -> bool:
    """Return True if most words of a wish are a thing's own, and it fits them best."""
    own_score, missing = _compare(content, subject.text)
    if own_score == 0:
        return False
    is_strict = wish.is_object_first and wish.language in _STRICT_LANGUAGES
    # Doubt such as "Dr. Silva isn't my favourite" says something else.
    if missing and (is_strict or wish.table == "doubt"):
        return False
    # The new text of a change may follow: "to green".
    limit = own_score + 1 if wish.table == "change" else own_score
    if (
        missing >= limit
        or _is_idiom(wish, parts, own_score, subject)
        or _has_doer(wish, content, subject)
    ):
        return False
    if wish.table == "denied" and not _states_all(wish, subject):
        return False
    words = [*content, *(part.text for part in parts if part.role == "detail")]
    own_total, _ = _compare(words, subject.text)
    return all(own_total > _compare(words, other)[0] for other in subject.others)


def _is_idiom(wish: Wish, parts: Sequence[_Part], score: int, subject: Subject) -> bool:
    """Return True if "forget the invoice" may be an idiom, and no wish to erase a stored text."""
    if subject.kind != _DOUBTED_KIND or wish.table not in ("remove", "weaken", "stated"):
        return False
    if score >= _MIN_CLEAR_SCORE or any(part.role in KINDS for part in parts):
        return False
    known = language_data("wishes", "core.review")[wish.language]["known"]
    return not set(map(to_plain, known)) & set(wish.object.split())


def _states_all(wish: Wish, subject: Subject) -> bool:
    """Return True if the words of a wish contain all that a note or fact states of the person."""
    fillers = filler_words(wish.language) | filler_words("en") | _USER_WORDS
    words = [word for word in _PART.findall(to_plain(subject.text)) if word not in fillers]
    return _compare(words, wish.object)[1] == 0


def consists_of(text: str, source: str) -> bool:
    """Return True if all words of a text that name something are in another text.

    In scripts without spaces, a quarter of the letters may differ.
    """
    spaced, runs = _split_naming_words(text)
    covered, missing = _compare(runs, source)
    return _compare(spaced, source)[1] == 0 and _MAX_MISSING_SHARE * missing <= covered + missing


def resembles(text: str, source: str) -> bool:
    """Return True if half of a text's words that name something are in another text.

    So must be all its figures, and all words with a capital but the first one.
    """
    spaced, runs = _split_naming_words(text)
    covered, missing = (
        sum(counts) for counts in zip(_compare(spaced, source), _compare(runs, source), strict=True)
    )
    anchors = [*re.findall(r"\d+", text), *_INNER_CAPITAL.findall(text)]
    return 0 < covered >= missing and _compare([*map(to_plain, anchors)], source)[1] == 0


def _split_naming_words(text: str) -> tuple[list[str], list[str]]:
    """Return the words that name something, and such runs of scripts without spaces."""
    fillers: set[str] = set()
    for language in find_languages(text):
        fillers |= filler_words(language) - detail_words(language)
    words = [word for word in _PART.findall(to_plain(text)) if word not in fillers]
    spaced = [word for word in words if not is_unspaced(word) or _HANGUL.search(word)]
    runs = [piece for word in words if word not in spaced for piece in _HIRAGANA.split(word)]
    return spaced, [run for run in runs if run]


def _compare(words: Sequence[str], text: str) -> tuple[int, int]:
    """Return how many of the words a text contains, and how many it doesn't contain.

    Chinese, Japanese and Thai words count by letters. A word such as "lh400" of the
    text also counts as its letters and its digits, because `words` are split like that.
    """
    plain = to_plain(text)
    text_words = {*plain.split(), *_PART.findall(plain)}
    covered = 0
    missing = 0
    for word in words:
        # Korean counts by words, because it has spaces between them.
        if is_unspaced(word) and not _HANGUL.search(word):
            count = _count_letters(word, plain)
            covered += count
            missing += len(word) - count
        elif any(is_same_word(word, other) for other in text_words):
            covered += 1
        else:
            missing += 1
    return covered, missing


def _count_letters(run: str, text: str) -> int:
    """Return how many letters of a run are in a text together with one of their neighbours.

    A run of one letter needs no neighbour.
    """
    if len(run) == 1 or run in text:
        return len(run) if run in text else 0
    shared = set()
    for index in range(len(run) - 1):
        if run[index : index + 2] in text:
            shared |= {index, index + 1}
    return len(shared)


def _has_doer(wish: Wish, content: Sequence[str], subject: Subject) -> bool:
    """Return True if a particle marks a word as the subject, so that the clause is no wish.

    In Korean, words of the thing's own text don't count.
    """
    for particle in _SUBJECT_PARTICLES.get(wish.language, ()):
        for word in content:
            if word.endswith(particle) and _compare([word], subject.text)[0] == 0:
                return True
        before, found, _ = wish.object.partition(particle)
        runs = [run for run in _HIRAGANA.split(before) if run]
        if wish.language == "ja" and found and runs and _compare(runs[-1:], subject.text)[0] == 0:
            return True
    return False


def _find_numbers(parts: Sequence[_Part], *, has_content: bool, language: str) -> set[str]:
    """Return the numbers that name things.

    They are next to a word for a kind ("reminder 4"), or the wish contains no other content.
    """
    numbers: set[str] = set()
    is_number_first = language in ("zh", "ja", "ko", "tr")
    markers: set[str] = set(KINDS)
    if not has_content or any(part.role in KINDS for part in parts):
        markers.add("word of numbers")
    neighbours = [_Part("", ""), *parts, _Part("", "")]
    for before, part, after in zip(neighbours, parts, neighbours[2:], strict=False):
        if part.role != "number":
            continue
        if (
            before.role in markers
            or (before.role == "number" and before.text in numbers)
            or (is_number_first and (after.role in markers or not has_content))
            or (not has_content and after.role not in markers)
        ):
            numbers.add(part.text)
    return numbers


def _read_parts(wish: Wish) -> list[_Part]:
    """Return the words and numbers of a wish with their roles."""
    languages = (wish.language, "en") if wish.language != "en" else ("en",)
    parts: list[_Part] = []
    for match in _PART.finditer(wish.object):
        word = match[0]
        if word.isdecimal():
            parts.append(_Part(str(int(word[:40])), "number"))
        elif is_unspaced(word) and not _HANGUL.search(word):
            parts += _read_run(word, languages)
        else:
            parts.append(_Part(word, _find_role(word, languages)))
    return parts


def _read_run(run: str, languages: Sequence[str]) -> list[_Part]:
    """Return the parts of a run in a script without spaces."""
    parts: list[_Part] = []
    position = 0
    language = "ja" if "ja" in languages else "zh"
    for match in [*_run_pattern(language).finditer(run), None]:
        end = match.start() if match else len(run)
        rest = run[position:end]
        if language == "ja":
            rest = _HIRAGANA.sub(" ", rest)
        parts += [_Part(piece, "content") for piece in rest.split()]
        if match:
            parts.append(_Part(match[0], _find_role(match[0], (language,))))
            position = match.end()
    return parts


@cache
def _run_pattern(language: str) -> re.Pattern[str]:
    data = language_data("wishes", "core.review")[language]
    words = {to_plain(word) for name in (*KINDS, "all", "number") for word in data[name]}
    words |= set(filler_words(language))
    return re.compile("|".join(sorted(map(re.escape, words), key=len, reverse=True)))


@cache
def _find_role(word: str, languages: tuple[str, ...]) -> str:
    """Return the role of a word of a wish: "content" if no list of the languages contains it."""
    for language in languages:
        data = language_data("wishes", "core.review")[language]
        for role, name in (("word of numbers", "number"), ("all", "all"), ("generic", "generic")):
            if word in map(to_plain, data.get(name, ())):
                return role
        for kind in KINDS:
            if any(_matches_star(word, entry) for entry in data[kind]):
                return kind
    if month_number(word) or any(word in detail_words(language) for language in languages):
        return "detail"
    if any(word in filler_words(language) for language in languages):
        return "filler"
    # Single Latin letters are endings behind an apostrophe.
    is_ending = len(word) == 1 and languages[0] not in UNSPACED_LANGUAGES
    return "filler" if is_ending and word.isascii() else "content"


def _matches_star(word: str, entry: str) -> bool:
    plain = to_plain(entry.removesuffix("*"))
    return word.startswith(plain) if entry.endswith("*") else word == plain


def is_same_word(one: str, other: str) -> bool:
    """Return True if two plain words are probably forms of one word, such as "car" and "cars"."""
    if one == other or set(word_terms(one)) & set(word_terms(other)):
        return True
    short, long = sorted((one, other), key=len)
    shared = 0
    while shared < len(short) and short[shared] == long[shared]:
        shared += 1
    if _HANGUL.search(one):
        return shared >= min(2, len(short)) and len(long) - shared <= _MAX_ENDING_LETTERS
    min_stem = _MIN_CYRILLIC_STEM_LETTERS if _CYRILLIC.search(one) else _MIN_STEM_LETTERS
    is_long_enough = shared >= min_stem and shared >= len(short) - 1
    return is_long_enough and len(long) - shared <= _MAX_ENDING_LETTERS
