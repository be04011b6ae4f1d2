"""What may be meant by what was typed, and said instead: slips of the finger (Latin letters on QWERTY, Cyrillic), other
forms of a word, and other ways to write it: ``CA 1502`` and ``CA1502``, ``getUserById`` and ``get_user_by_id``,
``たまご`` and ``タマゴ``, ``450度`` and ``四百五十度``, ``7pm`` and ``19:00``. Pure; some were never said.

Kinds of slips after Kernighan, Church, Gale: "A spelling correction program based on a noisy channel model" (1990); the
likelihoods are rough, only their order matters.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain, combinations, islice, pairwise, permutations, takewhile

from core.text.normalize import language_data, words_of
from core.text.terms import stop_words, word_terms

Way = tuple[str, ...]
"""Terms that belong together."""

MOST = 100  # so many ways at most, of a text
LOOK_CHARS = 300
SHORTEST_PART = 3  # letters of a word that may be a part of another
PARTS = 5  # an identifier of more parts is looked for as it was typed
NUMBER_DIGITS = 9
_TOKEN = re.compile(r"(?<!\S)\S{2,60}(?!\S)")
_KINDS = re.compile(r"\d+|[^\W\d_]+")
_HUMPS = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+|\d+")
_HIRAGANA = re.compile("[\u3041-\u3096\u30fc]{2,12}")
_KATAKANA = re.compile("[\u30a1-\u30f6\u30fc]{2,12}")
_PARTICLES = "はがをにでともののへやかねよ"
_KATAKANA_OF = {code: code + 0x60 for code in range(0x3041, 0x3097)}
_HIRAGANA_OF = {katakana: hiragana for hiragana, katakana in _KATAKANA_OF.items()}
_DIGITS = "零一二三四五六七八九"
_NUMERAL = re.compile("([〇零一二两三四五六七八九十百千万]+)([\u4e00-\u9fff]?)")
_FIGURE = re.compile("(?<![\\d.,])(\\d{1,9})([\u4e00-\u9fff])")
"""Both with what is counted."""
_RUN = re.compile(r"\d+(?:[ .,/'()-]{1,2}\d+)*", re.ASCII)
_TIME = re.compile(r"\b(\d{1,2})(?:[:.h](\d\d))? ?(am|pm)?\b", re.ASCII | re.IGNORECASE)
SHORTEST, LONGEST = 4, 15  # digits of a number that may be written in groups
GROUPS_MOST = 5
PHONE = 7


def other_ways(text: str) -> list[Way]:
    """Other ways to write the words, numbers and times of a text as `normalize.clean` leaves it, and to tell what it
    asks for."""
    text = text[:LOOK_CHARS]
    told = language_data("words")["answered_with"].items()
    answers = (tuple(word_terms(word)) for asked, word in told if asked in text.casefold())
    return [way for way in dict.fromkeys(islice(chain(answers, _numbers(text), _writings(text)), MOST)) if way]


def _writings(text: str) -> Iterator[Way]:
    tokens = _TOKEN.findall(text)
    for token in tokens:
        yield from _identifier(token)
    for one, other in pairwise(words_of(text)):
        if _are_joined(one.casefold(), other.casefold()):
            yield from ((term,) for term in word_terms(one + other))
    if 2 < len(tokens) <= PARTS and all(token.isalnum() and token.isascii() for token in tokens):
        yield tuple(word_terms("".join(tokens)))
    if not text.isascii():
        yield from _kana(text)
        yield from _numerals(text)


def _are_joined(one: str, other: str) -> bool:
    """Whether two words may be said as one: ``CA 1502``, ``ice cream``."""
    if one.isalpha() and other.isalpha():
        return min(len(one), len(other)) >= SHORTEST_PART and stop_words().isdisjoint((one, other))
    return one.isdecimal() != other.isdecimal() and (one + other).isascii()


def _identifier(token: str) -> Iterator[Way]:
    """What has signs between its parts as one word, and what is one word in its parts."""
    words = words_of(token)
    if 2 <= len(words) <= PARTS and token.isascii():
        yield tuple(word_terms("".join(words)))
    for word in words:
        if not word.isascii():
            continue
        kinds = _KINDS.findall(word)
        for parts in (kinds, [kinds[0], "".join(kinds[1:])], _HUMPS.findall(word)):
            if 2 <= len(parts) <= PARTS and "".join(parts) == word and parts[-1]:
                way = tuple(word_terms(" ".join(parts)))
                yield way if len(way) > 1 else ()


def _kana(text: str) -> Iterator[Way]:
    """Katakana as Hiragana; Hiragana as Katakana, also without a particle before or behind it."""
    for found in _KATAKANA.finditer(text):
        yield tuple(word_terms(found[0].translate(_HIRAGANA_OF)))
    for found in _HIRAGANA.finditer(text):
        stretch = found[0]
        ends = [stretch, stretch[:-1]] if stretch[-1] in _PARTICLES else [stretch]
        begins = [end[1:] for end in ends if end[0] in _PARTICLES]
        for part in (*ends, *begins):
            if len(part) > 1:
                yield tuple(word_terms(part.translate(_KATAKANA_OF)))


def _numerals(text: str) -> Iterator[Way]:
    """Characters in figures; figures before a Han character in characters: ``3点`` as ``三点``."""
    for written, counted in _NUMERAL.findall(text):
        number = _value(written)
        if number is not None and (number > 9 or counted):
            yield tuple(filter(None, (str(number), counted)))
            if number >= 10_000 and number % 10_000 == 0:
                yield (str(number // 10_000), "万")
    for figures, counted in _FIGURE.findall(text):
        written = _in_characters(int(figures))
        yield tuple(word_terms(written + counted))
        if written[0] == "二" and written[1:2] in ("", "百", "千", "万"):
            yield tuple(word_terms("两" + written[1:] + counted))


def _in_characters(number: int) -> str:
    """A whole number as it is written in Chinese and Japanese: 450 is 四百五十, 12 is 十二."""
    if number >= 10_000:
        rest = number % 10_000
        gap = "零" if 0 < rest < 1_000 else ""
        return f"{_in_characters(number // 10_000)}万{gap}{_in_characters(rest) if rest else ''}"
    places = zip(f"{number:04}", ("千", "百", "十", ""), strict=True)
    signs = "".join(_DIGITS[int(digit)] + unit for digit, unit in places)
    written = re.sub("零[千百十零]*", "零", signs).strip("零") or "零"
    return written[1:] if written.startswith("一十") else written


def _value(written: str) -> int | None:
    """The number of characters like 四百五十 and 一千二 (which is 1200); None where they are none."""
    total = section = digit = 0
    unit = 1
    for number in (int(unicodedata.numeric(sign)) for sign in written[:NUMBER_DIGITS].replace("两", "二")):
        if not number:
            unit = 1
        elif number == 10_000:
            total, section, digit, unit = (section + digit) * number, 0, 0, number
        elif number >= 10:
            section, digit, unit = section + (digit or 1) * number, 0, number
        elif digit:
            return None
        else:
            digit = number
    return total + section + (digit * unit // 10 if unit >= 100 else digit)


def _numbers(text: str) -> Iterator[Way]:
    for match in _TIME.finditer(text):
        yield from _times(int(match[1]), match[2], (match[3] or "").lower())
    for run in _RUN.finditer(text):
        groups = re.findall(r"\d+", run[0])
        for start, end in combinations(range(len(groups) + 1), 2):
            joined = "".join(groups[start:end])
            if end - start > 1 and SHORTEST <= len(joined) <= LONGEST:
                yield (joined,)
        if len(groups) == 1 and SHORTEST <= len(groups[0]) <= LONGEST:
            yield from _grouped(groups[0])


def _grouped(digits: str) -> Iterator[Way]:
    """In thousands; what is long enough for a telephone, in all groups of two to four."""
    head = len(digits) % 3 or 3
    yield (digits[:head], *(digits[place : place + 3] for place in range(head, len(digits), 3)))
    if len(digits) < PHONE:
        return
    for count in range(1, GROUPS_MOST):
        for cuts in combinations(range(2, len(digits) - 1), count):
            parts = tuple(digits[start:end] for start, end in pairwise((0, *cuts, len(digits))))
            if all(2 <= len(part) <= 4 for part in parts):
                yield parts


def _times(hour: int, minute: str | None, half: str) -> Iterator[Way]:
    if half and 1 <= hour <= 12:
        full = hour % 12 + (12 if half == "pm" else 0)
        yield (str(full), minute or "00")
        yield (f"{full:02}", minute or "00")
    elif minute and not half and hour < 24:
        hour, half = hour % 12 or 12, "pm" if hour >= 12 else "am"
    else:
        return
    if minute in (None, "00"):
        yield (f"{hour}{half}",)
        yield (str(hour), half)
    if minute is not None:
        yield (str(hour), f"{minute}{half}")
        yield (str(hour), minute, half)


_KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_ALPHABETS = (("abcdefghijklmnopqrstuvwxyz", "aeiouy"), ("абвгдежзийклмнопрстуфхцчшщъыьэюя", "аеиоуыэюя"))
"""Letters and the vowels among them; what a word is mended with are those of its first letter."""
SWAPPED, DOUBLED, DROPPED, ADDED, BESIDE, VOWEL = 1.0, 1.0, 0.7, 0.5, 0.8, 0.4
FIRST = 0.6  # the first letter is seldom wrong


def meant(word: str) -> dict[str, float]:
    """Every text from which `word` (small letters) is one slip away, with its likelihood between 0 and 1."""
    found: dict[str, float] = {}
    for text, likelihood in _meant(word):
        if text != word and likelihood > found.get(text, 0.0):
            found[text] = likelihood
    return found


def _meant(word: str) -> Iterator[tuple[str, float]]:
    beside = _beside()
    letters, vowels = next((alphabet for alphabet in _ALPHABETS if word[:1] in alphabet[0]), ("", ""))
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        trust = FIRST if place == 0 else 1.0
        for letter in letters:
            is_double = letter in (before[-1:], after[:1])
            yield before + letter + after, (DOUBLED if is_double else DROPPED) * trust
        if not after:
            return
        is_double = after[0] == before[-1:]
        yield before + after[1:], (DOUBLED if is_double else ADDED) * trust
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:], SWAPPED * trust
        for letter in beside.get(after[0], ""):
            yield before + letter + after[1:], BESIDE * trust
        if after[0] in vowels:
            for letter in vowels:
                yield before + letter + after[1:], VOWEL * trust


@lru_cache(maxsize=1)
def _beside() -> Mapping[str, str]:
    """The keys around each key."""
    places = [(key, row, column + row / 2) for row, keys in enumerate(_KEYBOARD) for column, key in enumerate(keys)]
    beside: defaultdict[str, str] = defaultdict(str)
    for (letter, row, place), (other, line, column) in permutations(places, 2):
        if abs(line - row) <= 1 and abs(column - place) <= 1:
            beside[letter] += other
    return beside


KIN_LETTERS = 4
KIN_SHARE = 0.6


def are_kin(one: str, other: str) -> bool:
    """Whether two words begin alike for `KIN_LETTERS` and `KIN_SHARE` of the longer: adopt, adoptive; Russian cases."""
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return shared >= KIN_LETTERS and shared >= KIN_SHARE * max(len(one), len(other)) and one != other


FORM_LETTERS = 4  # letters of a word that is taken for the singular of another
_CYRILLIC = re.compile("[\u0430-\u044f\u0451]{3,}")


def forms_of(word: str) -> tuple[str, ...]:
    """All forms of a folded word by number and case, itself first: ferry, ferries; Москва, Москве. Nothing else."""
    found: list[str] = []
    if _CYRILLIC.fullmatch(word):
        # Which ending is one cannot be told for sure, so whatever may be is taken for it.
        endings = ("", *language_data("words")["russian_endings"].split())
        stems = [word.removesuffix(one) for one in endings if word.endswith(one)]
        found = [stem + ending for stem in stems if len(stem) >= FORM_LETTERS - 1 for ending in endings]
    elif word.isascii() and word.isalpha() and len(word) >= FORM_LETTERS - 1:
        found = _singular_and_plural(word)
    return tuple(dict.fromkeys((word, *found)))


def _singular_and_plural(word: str) -> list[str]:
    found = [f"{word}s", f"{word}es"]
    if word.endswith("y"):
        found.append(f"{word[:-1]}ies")
    if word.endswith("ies"):
        found.append(f"{word[:-3]}y")
    found += [word[: -len(ending)] for ending in ("s", "es") if word.endswith(ending)]
    return [form for form in found if len(form) >= FORM_LETTERS]
