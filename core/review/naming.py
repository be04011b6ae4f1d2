"""Decides whether a request names exactly one item, such as a reminder or note.

`names_subject` requires an exact name. `mentions_subject` only requires words that no other item
has. This is enough to ask the helper model, or to trust a conversation without foreign text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from core.dates.periods_in_text import month_number
from core.review.doubts import speaks_against_change
from core.review.negation import to_plain_pattern
from core.review.phrases import (
    UNSPACED_LANGUAGES,
    detail_words,
    filler_words,
    find_languages,
    marker,
    to_plain,
)
from core.review.wishes import Wish, find_wishes
from core.text.normalize import is_unspaced, language_data, to_normal_form
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
INNER_CAPITAL = re.compile(r"(?<=\w[\s,])\s?([A-Z\u00c0-\u00de\u0410-\u042f][^\W\d_]+)")
_HANGUL = re.compile("[\uac00-\ud7a3]")
# A verb before "not": "\uc77c\ud558\uc9c0 \uc54a\uc544".
_KOREAN_NEGATED = re.compile(r"(?<!\w)(\w)\w*\uc9c0$")
_CYRILLIC = re.compile("[\u0400-\u052f]")
# In scripts without spaces, at most one letter in this many may be missing.
_MAX_MISSING_SHARE = 4
# The whole text of a reminder names it without a word such as "reminder" if it has this many words
# or, in a script without spaces, letters.
_MIN_CLEAR_WORDS = 2
# "Forget the fact" is an idiom.
_IDIOM_KIND = "memory"
_MIN_CLEAR_LETTERS = 4
# The articles and endings of a word, such as in "d'appeler" or "4'u".
# Where a dictated text may begin.
_LEAD_END = re.compile(r"[:,;.]\s+|\s:\s+|[\uff1a\uff0c\u3002]\s*")
_INDEFINITE = re.compile(r"(?<!\w)(?:an?|eine?n?|un|una|une|uma?|bir)(?!\w)")
_ENDING = re.compile(r"(?<!\w)[^\W\d]{1,2}'|'\w{1,3}(?!\w)|'")


@dataclass(frozen=True, slots=True)
class _Part:
    """A word of a request, with its role: a number, a word for a kind or for all, content, and so
    on.

    The role "detail" is for words such as a day of the week. They distinguish items that are
    already named by content.
    """

    text: str
    role: str


def names_subject(wish: Wish, subject: Subject, foreign_texts: Sequence[str] = ()) -> bool:
    """Return whether a request names exactly one item, and has no other content.

    The request may contain the number of the item as it is shown ("reminder 4"), all words of its
    text, or its kind if there is no other item of that kind. If a foreign text also contains the
    name, the name may mean something else. If there are foreign texts, the words must also contain
    the kind: "cancel the gym membership" may be about the membership, not about a reminder with
    this text.
    """
    if wish.table == "plan":
        return False
    needs_kind = bool(foreign_texts) and not wish.is_about_reminders
    words = _NUMBER_LIST.sub(" ", wish.object)
    kinds = _list_shown_kinds(subject)
    read = _names_unspaced if wish.language in UNSPACED_LANGUAGES else _names_spaced
    if not read(words, subject, kinds, wish.language, needs_kind=needs_kind):
        return False
    name = _list_content(words, wish.language)
    if re.fullmatch(kinds, name) and any(_mentions_kind(text, kinds) for text in foreign_texts):
        # "Forget the reminder" may be about the reminder of an unpaid bill.
        return False
    edge = "" if wish.language in UNSPACED_LANGUAGES else " "
    return not any(
        f"{edge}{name}{edge}" in f" {_list_content(text, wish.language)} " for text in foreign_texts
    )


def _mentions_kind(text: str, kinds: str) -> bool:
    """Return whether a text has a word for a kind in any language.

    The Turkish word for a note doesn't count, because it is an English word, too.
    """
    matches = re.finditer(rf"(?<![a-z])(?:{kinds})(?![a-z])", to_plain(text))
    return any(match[0] != "not" for match in matches)


def _names_spaced(
    words: str, subject: Subject, kinds: str, language: str, *, needs_kind: bool
) -> bool:
    """Return whether words of a language with spaces name an item exactly."""
    if subject.number and subject.number in _read_numbers(words, kinds, language):
        return True
    name = _list_content(words, language)
    if re.fullmatch(kinds, name):
        # "Drop a note" doesn't name one of the notes.
        return (
            not _INDEFINITE.search(words)
            and not subject.others
            and not (subject.kind == _IDIOM_KIND and subject.number)
        )
    text = _list_content(subject.text, language)
    is_unique = all(_list_content(other, language) != text for other in subject.others)
    has_kind = re.fullmatch(rf"(?:{kinds}) {re.escape(text)}|{re.escape(text)} (?:{kinds})", name)
    is_clear = subject.kind == "reminder" and text.count(" ") + 1 >= _MIN_CLEAR_WORDS
    is_verbatim = (
        is_clear and not needs_kind and _drop_lead(words, language) == to_plain(subject.text)
    )
    return bool(text) and is_unique and (has_kind is not None or is_verbatim)


def _drop_lead(words: str, language: str) -> str:
    """Return words without the small words at their beginning."""
    parts = words.split()
    while parts and parts[0] in _list_small(language):
        parts = parts[1:]
    return " ".join(parts)


def _read_numbers(words: str, kinds: str, language: str) -> list[str]:
    """Return the numbers in words such as "the reminders 3 and 4".

    `kinds` is a pattern for the words of the item's kind, such as "reminders?". If there are other
    words, or if a number occurs twice, the result is empty.
    """
    small = "|".join(map(re.escape, _list_small(language)))
    marks = "|".join(map(re.escape, sorted(_list_words(language, "number"))))
    plain = _ENDING.sub(" ", words).strip()
    if len({*re.findall(r"\d+", plain)}) != len(re.findall(r"\d+", plain)):
        return []
    match = re.fullmatch(rf"(?:(?:{small}) )*(?:{kinds})(?: (?:{marks}))? ?(\d[\d ]*)", plain)
    if match is None and language in ("ko", "tr"):
        match = re.fullmatch(rf"(\d+)(?: ?(?:{marks}))? (?:{kinds})", plain)
    if match is None and language == "ko":
        match = re.fullmatch(rf"(?:{kinds}) (\d+) ?(?:{marks})\w?", plain)
    return match[1].split() if match else []


def _names_unspaced(
    words: str, subject: Subject, kinds: str, language: str, *, needs_kind: bool
) -> bool:
    """Return whether words of a script without spaces name an item exactly."""
    small = "|".join(map(re.escape, _list_small(language)))
    marks = "|".join(map(re.escape, sorted(_list_words(language, "number"))))
    around, kinds, plain = f"(?:{small}){{0,4}}", f"(?:{kinds})", words.replace(" ", "")
    number, text = subject.number, _list_content(subject.text, language)
    forms = []
    if number:
        forms += [f"{kinds}(?:{marks})?{number}(?:{marks})?"]
        forms += [f"(?:{marks})?{number}(?:{marks})?{around}{kinds}"]
    is_unique = all(_list_content(other, language) != text for other in subject.others)
    if text and is_unique:
        forms += [f"{text}{around}{kinds}", f"{kinds}{around}{text}"]
        if subject.kind == "reminder" and len(text) >= _MIN_CLEAR_LETTERS and not needs_kind:
            forms.append(text)
    if not subject.others and not (subject.kind == _IDIOM_KIND and number):
        forms.append(kinds)
    return any(re.fullmatch(f"{around}{form}{around}", plain) for form in forms)


def _list_content(text: str, language: str) -> str:
    """Return the plain words of a text without small words, such as articles."""
    plain = _ENDING.sub(" ", to_plain(text))
    if language in UNSPACED_LANGUAGES:
        return plain.replace(" ", "")
    small = _list_small(language)
    return " ".join(word for word in plain.split() if word not in small)


@cache
def _list_small(language: str) -> tuple[str, ...]:
    """Return the small words of a language and of English, without single letters as endings."""
    tables = language_data("wishes", "core.review")
    words = {to_plain(word) for code in (language, "en") for word in tables[code]["small"].split()}
    return tuple(sorted(words, key=len, reverse=True))


def _list_shown_kinds(subject: Subject) -> str:
    """Return a pattern of the words for the kind of an item that people see, in all languages."""
    name = subject.kind
    if name == "memory":
        name = "fact" if subject.number else "note"
    words = language_data("wishes", "core.review")["shown"].get(name, "(?!)")
    return to_plain_pattern(words)


@cache
def _list_words(language: str, name: str) -> frozenset[str]:
    """Return the words in a table, without the asterisk for any ending."""
    words = language_data("wishes", "core.review")[language].get(name, ())
    return frozenset(to_plain(word.removesuffix("*")) for word in words)


def points_at_thing(wish: Wish) -> bool:
    """Return whether a request has only words such as "it", "that one" and "all reminders"."""
    return wish.table != "plan" and _points_at(wish, "")


def _points_at(wish: Wish, text: str) -> bool:
    """Return whether a request has only words for an item's kind, small words, and text words."""
    roles = (*KINDS, "all", "generic", "filler", "detail")
    parts = _read_parts(wish.object, wish.language)
    return all(part.role in roles or _compare([part.text], text)[0] > 0 for part in parts)


def _write_plainly(text: str) -> str:
    """Return a text in lower case without signs at its end. Other signs can change its meaning."""
    return " ".join(to_normal_form("NFC", text).casefold().split()).rstrip(" .!\u3002")


def dictates_change(message: str, text: str, subject: Subject) -> bool:
    """Return whether a message asks to change an item, and then contains the exact new text.

    An example is "Change the note about my car: my car is blue".
    """
    plain_text = _write_plainly(text)
    lead_ends = list(_LEAD_END.finditer(message))

    def shortness(lead_end: re.Match[str]) -> int:
        return -len(_write_plainly(message[lead_end.end() :]))

    # Each rest of the message is shorter than the one before, so only one can be the text.
    index = bisect_left(lead_ends, -len(plain_text), key=shortness)
    if index == len(lead_ends):
        return False
    lead_end = lead_ends[index]
    if _write_plainly(message[lead_end.end() :]) != plain_text:
        return False
    wishes = find_wishes([message[: lead_end.start()].rstrip()], Effect.CHANGE)
    return any(_points_at(wish, subject.text) for wish in wishes)


def is_kept_or_in_text(message: str, subject: Subject) -> bool:
    """Return whether a message asks to keep an item, or is about a text rather than the item."""

    def names(clause: str) -> bool:
        return _compare(_PART.findall(clause), subject.text)[0] > 0

    return speaks_against_change(message, names, f"{subject.text} {subject.label}")


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


def says_only_that_it_ended(message: str, subject: Subject) -> bool:
    """Return whether a message has no words but an item's own, and words such as "not" and "over".

    "Dr. Silva isn't my dentist any more" does so, and "my dentist doesn't take cards" doesn't. A
    message with a word for the kind of the item is about the item itself: "that note is wrong".
    """
    item = f"{subject.text} {subject.label}"
    for language in find_languages(message):
        parts = _read_parts(_drop_ends(message, language), language)
        content = [part.text for part in parts if part.role == "content"]
        names_kind = any(part.role == subject.kind for part in parts)
        if names_kind or _compare(content, item)[1] == 0:
            return True
    return False


def _drop_ends(message: str, language: str) -> str:
    """Return the plain words of a message without words such as "not", "over" and "until"."""
    plain = words = to_plain(message)
    if language in UNSPACED_LANGUAGES:
        plain = plain.replace(" ", "")
    plain = _table_pattern("beside_ends", language).sub(" ", plain)
    for name in ("ends", "pauses", "denial"):
        plain = marker(language, name).sub(" ", plain)
    if language != "ko":
        return plain
    # A Korean ending that is left of a word is dropped, and a negated verb becomes its beginning.
    kept = [word for word in plain.split() if f" {word}" in f" {words}"]
    return " ".join(_KOREAN_NEGATED.sub(r"\1", word) for word in kept)


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
    ignored = {*_list_words(wish.language, "number"), *_list_small(wish.language)}
    plain = _ENDING.sub(" ", wish.object)
    name = [word for word in _PART.findall(plain) if word not in ignored]
    return wish.table != "plan" and bool(subject.number) and name == [subject.number]


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
    anchors = [*re.findall(r"\d+", text), *INNER_CAPITAL.findall(text)]
    return 0 < covered >= missing and _compare([*map(to_plain, anchors)], source)[1] == 0


def is_about_words_of(text: str, source: str) -> bool:
    """Return whether most of the words that name something in a question or a lead are in `source`.

    The words of an offer itself don't count, such as "Shall I delete" in "Shall I delete the swim
    reminder?", or "keep in mind". "Shall I delete reminder 1?" and "Tomorrow:" have no others.
    """
    effects = (Effect.REMOVE, Effect.WEAKEN, Effect.CHANGE, Effect.PLAN)
    objects = {wish.object for effect in effects for wish in find_wishes([], effect, [text])}
    plain = to_plain(text)
    for language in find_languages(text):
        offered = objects or {marker(language, "offer").sub(" ", plain)}
        for words in offered:
            run = words.replace(" ", "") if language in UNSPACED_LANGUAGES else words
            run = _table_pattern("noted", language).sub(" ", run)
            parts = _read_parts(run, language)
            content = [part.text for part in parts if part.role == "content"]
            covered, missing = _compare(content, source)
            if covered > missing or not content:
                return True
    return False


@cache
def _table_pattern(table: str, language: str) -> re.Pattern[str]:
    """Return a pattern for the words in a table that has one pattern for each kind of script."""
    words = language_data("wishes", "core.review")[table]
    if language in UNSPACED_LANGUAGES:
        return re.compile(to_plain_pattern(words["unspaced"]))
    return re.compile(rf"(?<!\w)(?:{to_plain_pattern(words['spaced'])})(?!\w)")


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


def is_same_word(word: str, other: str) -> bool:
    """Return whether two plain words are probably forms of the same word, such as "car"
    and "cars".
    """
    if word == other or set(word_terms(word)) & set(word_terms(other)):
        return True
    short, long = sorted((word, other), key=len)
    shared = 0
    while shared < len(short) and short[shared] == long[shared]:
        shared += 1
    if _HANGUL.search(word):
        return shared >= min(2, len(short)) and len(long) - shared <= _MAX_ENDING_LETTERS
    min_stem = _MIN_CYRILLIC_STEM_LETTERS if _CYRILLIC.search(word) else _MIN_STEM_LETTERS
    is_long_enough = shared >= min_stem and shared >= len(short) - 1
    return is_long_enough and len(long) - shared <= _MAX_ENDING_LETTERS
