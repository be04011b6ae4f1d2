"""Decides whether a request names exactly one item, such as a reminder or note, and nothing else.

Each word of the request must be a word from the item's text, the word for its kind ("reminder"),
its number next to that word, or a small word such as an article (`small` in `data/wishes.toml`). No
other item of the same kind that the person can see may have as many of the words. A request may
also name all items of a kind, or several items joined with "and".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from core.dates.periods_in_text import month_number
from core.review.doubts import is_against
from core.review.phrases import (
    UNSPACED_LANGUAGES,
    detail_words,
    filler_words,
    find_languages,
    small_words,
    split_list,
    to_plain,
)
from core.review.wishes import Wish, find_wishes
from core.text.normalize import is_unspaced, language_data
from core.text.terms import word_terms
from core.types import Effect, Subject

KINDS = ("reminder", "memory", "skill")
# Two words are forms of one word if at least this many of their first letters agree.
_MIN_STEM_LETTERS = 4
_MIN_CYRILLIC_STEM_LETTERS = 3
_MAX_ENDING_LETTERS = 4
_MIN_COMPOUND_LETTERS = 6
_UNSPACED_LETTERS = "\u3041-\u30ff\u4e00-\u9fff"
_PART = re.compile(rf"\d+|[{_UNSPACED_LETTERS}]+|[^\W\d_{_UNSPACED_LETTERS}]+")
# Numbers in a list, separated by at most a word such as "and".
_NUMBER_LIST = re.compile(r"(?<=\d)(?: (?:and|und|y|et|e|\u0438|ve) | ?[\u548c\u3068] ?)(?=\d)")
_HIRAGANA = re.compile("[\u3041-\u309f]+")
# A capitalized word after another word.
_INNER_CAPITAL = re.compile(r"(?<=\w[\s,])\s?([A-Z\u00c0-\u00de\u0410-\u042f][^\W\d_]+)")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_CYRILLIC = re.compile("[\u0400-\u052f]")
# In scripts without spaces, at most one letter in this many may be missing.
_MAX_MISSING_SHARE = 4
# This many words of a note or fact name it without a word such as "note".
_MIN_CLEAR_SCORE = 2
_IDIOM_KIND = "memory"


@dataclass(frozen=True, slots=True)
class _Part:
    """A word of a request, with its role: a number, a word for a kind or for all, content, and so
    on.

    The role "detail" is for words such as a day of the week. They distinguish items that are
    already named by content.
    """

    text: str
    role: str


@dataclass(frozen=True, slots=True)
class _Name:
    """The words of a request in which every word names an item or is a small word."""

    # The words that occur in the item's text.
    own_words: tuple[str, ...]
    has_kind: bool
    has_number: bool
    has_all: bool

    @property
    def score(self) -> int:
        return sum(len(word) if _is_run(word) else 1 for word in self.own_words)


def names_subject(wish: Wish, subject: Subject, new_text: str = "") -> bool:
    """Return whether a request names an item, no other item of its kind, and nothing else.

    A request to change something may also contain words from `new_text`. A request to plan
    something new doesn't name an existing item.
    """
    if wish.table == "plan":
        return False
    words = _NUMBER_LIST.sub(" ", wish.object)
    if _names_only(words, wish, subject, new_text):
        return True
    items = split_list(words, wish.language)
    others = [replace(subject, text=other, number="") for other in subject.others]
    return (
        len(items) > 1
        and all(
            _names_only(item, wish, subject, new_text)
            or any(_read_name(item, wish.language, other, "") is not None for other in others)
            for item in items
        )
        and any(_names_only(item, wish, subject, new_text) for item in items)
    )


def _names_only(words: str, wish: Wish, subject: Subject, new_text: str) -> bool:
    """Return whether words name an item, no other item, and nothing else."""
    name = _read_name(words, wish.language, subject, new_text)
    if name is None or (wish.table == "stated" and not name.has_kind):
        return False
    if name.has_number or (name.has_all and name.has_kind and not name.score):
        return True
    # "Forget the invoice" may be an idiom rather than a request to erase a stored text.
    is_idiom = subject.kind == _IDIOM_KIND and not name.has_kind
    if name.score < (_MIN_CLEAR_SCORE if is_idiom else 1):
        return False
    return all(_compare(name.own_words, other)[0] < name.score for other in subject.others)


def _read_name(
    words: str, language: str, subject: Subject, new_text: str, *, is_bare: bool = False
) -> _Name | None:
    """Parse words that name an item. Return None if a word has another meaning.

    A number must be next to the word for the item's kind, unless `is_bare`.
    """
    own_words: list[str] = []
    roles: set[str] = set()
    parts = _PART.findall(words)
    is_numbered = subject.number in parts
    for part in parts:
        if _is_run(part):
            pieces = _read_run_of_name(part, language, subject, new_text)
        elif part.isdecimal() and is_numbered:
            # "Reminders 3 and 4" names both reminders.
            pieces = [(part, "number")]
        else:
            pieces = [(part, _find_role_in_name(part, language, subject, new_text))]
        for piece, role in pieces:
            if role == "own":
                own_words.append(piece)
            roles.add(role)
    has_bare_number = "number" in roles and "kind" not in roles
    if "other" in roles or (has_bare_number and not is_bare):
        return None
    return _Name(tuple(own_words), "kind" in roles, "number" in roles, "all" in roles)


def _find_role_in_name(word: str, language: str, subject: Subject, new_text: str) -> str:
    """Return the role of a word in the name of an item: "own", "kind", "small" and so on.

    The role is "other" if the word doesn't belong to a name.
    """
    if word.isdecimal():
        return "own" if word in _PART.findall(to_plain(subject.text)) else "other"
    kinds = _find_kinds(word, language)
    if kinds and (not subject.kind or subject.kind in kinds):
        return "kind"
    if _compare([word], subject.text)[0]:
        return "own"
    for role, name in (("kind", "generic"), ("all", "all"), ("small", "number")):
        if word in _list_words(language, name):
            return role
    if any(word in small_words(code) for code in (language, "en")):
        return "small"
    return "small" if new_text and _compare([word], new_text)[0] else "other"


def _read_run_of_name(
    run: str, language: str, subject: Subject, new_text: str
) -> list[tuple[str, str]]:
    """Split a text without spaces into the longest pieces that have a role in a name."""
    own_text = to_plain(subject.text).replace(" ", "")
    known_text = to_plain(new_text).replace(" ", "")
    kinds = (subject.kind,) if subject.kind in KINDS else KINDS
    kind_words = {word: "kind" for kind in kinds for word in _list_words(language, kind)}
    known = dict.fromkeys(small_words(language), "small")
    known |= dict.fromkeys(_list_words(language, "number"), "small")
    known |= dict.fromkeys(_list_words(language, "all"), "all") | kind_words
    pieces: list[tuple[str, str]] = []
    position = 0
    while position < len(run):
        own_end = _find_end(run, position, lambda piece: piece in own_text)
        known_end = _find_end(run, position, known.__contains__)
        new_end = _find_end(run, position, lambda piece: piece in known_text)
        end = max(own_end, known_end, new_end)
        piece = run[position:end]
        if end == position:
            return [(run, "other")]
        if known_end == end:
            pieces.append((piece, known[piece]))
        else:
            pieces.append((piece, "own" if own_end == end else "small"))
        position = end
    return pieces


def _find_end(run: str, start: int, is_known: Callable[[str], bool]) -> int:
    """Return the end of the longest known piece that begins at `start`, or `start`."""
    ends = range(len(run), start, -1)
    return next((end for end in ends if is_known(run[start:end])), start)


def _find_kinds(word: str, language: str) -> list[str]:
    """Return the kinds of items that a word may mean in this language or in English."""
    tables = [language_data("wishes", "core.review")[code] for code in {language, "en"}]
    return [
        kind
        for kind in KINDS
        if any(_matches_star(word, entry) for data in tables for entry in data[kind])
    ]


@cache
def _list_words(language: str, name: str) -> frozenset[str]:
    """Return the words in a table, without the asterisk that stands for any ending."""
    words = language_data("wishes", "core.review")[language].get(name, ())
    return frozenset(to_plain(word.removesuffix("*")) for word in words)


def _is_run(word: str) -> bool:
    """Return whether a word is in a script without spaces. Korean doesn't count."""
    return is_unspaced(word) and not _HANGUL.search(word)


def is_kept_or_in_text(message: str, subject: Subject) -> bool:
    """Return whether a message wants to keep an item, or is about a text that mentions its name."""

    def names(clause: str) -> bool:
        return _compare(_PART.findall(clause), subject.text)[0] > 0

    return is_against(message, names, f"{subject.text} {subject.label}")


def mentions_subject(message: str, subject: Subject) -> bool:
    """Return whether a message has words from an item's text, and no other item has more of them.

    The item's number is enough if it's next to the word for its kind, or in a request such as "drop
    4".
    """
    if any(_names_number(wish, subject) for wish in _list_wishes(message)):
        return True
    return any(
        _mentions_in_language(message, subject, language) for language in find_languages(message)
    )


def _mentions_in_language(message: str, subject: Subject, language: str) -> bool:
    plain = to_plain(message)
    if language in UNSPACED_LANGUAGES:
        plain = plain.replace(" ", "")
    parts = _read_parts(plain, language)
    content = [part.text for part in parts if part.role == "content"]
    numbers = _find_numbers(parts, has_content=bool(content), language=language)
    if subject.number and subject.number in numbers:
        return True
    words = [*content, *(part.text for part in parts if part.role == "detail")]
    total = _compare(words, subject.text)[0]
    if total == 0 and _shares_compound(content, subject.text):
        return True
    is_best = all(total >= _compare(words, other)[0] for other in subject.others)
    return bool(is_best and _compare(content, subject.text)[0])


def _list_wishes(message: str) -> list[Wish]:
    effects = (Effect.REMOVE, Effect.WEAKEN, Effect.PLAN)
    return [wish for effect in effects for wish in find_wishes([message], effect)]


def _names_number(wish: Wish, subject: Subject) -> bool:
    """Return whether a request names an item by its number alone."""
    name = _read_name(wish.object, wish.language, subject, "", is_bare=True)
    return wish.table != "plan" and name is not None and name.has_number


def _shares_compound(words: Sequence[str], text: str) -> bool:
    """Return whether one of the words begins a longer word in a text, as "dentist" begins
    "dentistry".
    """
    return any(
        len(word) >= _MIN_COMPOUND_LETTERS and other.startswith(word)
        for word in words
        for other in to_plain(text).split()
    )


def consists_of(text: str, source: str) -> bool:
    """Return whether all content words of a text occur in `source`.

    In scripts without spaces, a quarter of the letters may differ.
    """
    spaced, runs = _split_naming_words(text)
    covered, missing = _compare(runs, source)
    return _compare(spaced, source)[1] == 0 and _MAX_MISSING_SHARE * missing <= covered + missing


def resembles(text: str, source: str) -> bool:
    """Return whether at least half of a text's content words occur in `source`.

    All numbers must occur, too, and all capitalized words except the first.
    """
    spaced, runs = _split_naming_words(text)
    covered, missing = (
        sum(counts) for counts in zip(_compare(spaced, source), _compare(runs, source), strict=True)
    )
    anchors = [*re.findall(r"\d+", text), *_INNER_CAPITAL.findall(text)]
    return 0 < covered >= missing and _compare([*map(to_plain, anchors)], source)[1] == 0


def _split_naming_words(text: str) -> tuple[list[str], list[str]]:
    """Return the content words of a text, and its pieces in scripts without spaces."""
    fillers: set[str] = set()
    for language in find_languages(text):
        fillers |= filler_words(language) - detail_words(language)
    words = [word for word in _PART.findall(to_plain(text)) if word not in fillers]
    spaced = [word for word in words if not is_unspaced(word) or _HANGUL.search(word)]
    runs = [piece for word in words if word not in spaced for piece in _HIRAGANA.split(word)]
    return spaced, [run for run in runs if run]


def _compare(words: Sequence[str], text: str) -> tuple[int, int]:
    """Return how many of the words a text contains, and how many it doesn't contain.

    Chinese, Japanese and Thai words are counted by letters. A word of the text such as "lh400" also
    counts as its letters and its digits, because `words` are split the same way.
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
    """Return how many letters of a word occur in a text next to one of their neighbours.

    A word of one letter needs no neighbour.
    """
    if len(run) == 1 or run in text:
        return len(run) if run in text else 0
    shared = set()
    for index in range(len(run) - 1):
        if run[index : index + 2] in text:
            shared |= {index, index + 1}
    return len(shared)


def _find_numbers(parts: Sequence[_Part], *, has_content: bool, language: str) -> set[str]:
    """Return the numbers that name items.

    A number names an item if it's next to a word for the kind ("reminder 4"), or if the request has
    no other content.
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


def _read_parts(plain: str, language: str) -> list[_Part]:
    """Return the words and numbers of a plain text with their roles."""
    languages = (language, "en") if language != "en" else ("en",)
    parts: list[_Part] = []
    for match in _PART.finditer(plain):
        word = match[0]
        if word.isdecimal():
            parts.append(_Part(str(int(word[:40])), "number"))
        elif is_unspaced(word) and not _HANGUL.search(word):
            parts += _read_run(word, languages)
        else:
            parts.append(_Part(word, _find_role(word, languages)))
    return parts


def _read_run(run: str, languages: Sequence[str]) -> list[_Part]:
    """Return the parts of a text in a script without spaces."""
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
    """Return the role of a word in a request, or "content" if it isn't in any list."""
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
    # Single Latin letters are endings after an apostrophe.
    is_ending = len(word) == 1 and languages[0] not in UNSPACED_LANGUAGES
    return "filler" if is_ending and word.isascii() else "content"


def _matches_star(word: str, entry: str) -> bool:
    plain = to_plain(entry.removesuffix("*"))
    return word.startswith(plain) if entry.endswith("*") else word == plain


def is_same_word(one: str, other: str) -> bool:
    """Return whether two plain words are probably forms of the same word, such as "car"
    and "cars".
    """
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
