"""Finds alternatives for the words of a query: spellings, typo corrections, and inflected forms.

Examples of other spellings are ``CA 1502`` and ``CA1502``, ``getUserById`` and ``get_user_by_id``,
``たまご`` and ``タマゴ``, ``450度`` and ``四百五十度``, ``7pm`` and ``19:00``. Some results
aren't real words, so callers use only the results that the index contains.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain, combinations, islice, pairwise, permutations

from core.text.normalize import language_data, words_of
from core.text.terms import stop_words, word_terms

Variant = tuple[str, ...]
"""Terms that together can replace a part of the query."""

MAX_VARIANTS = 100
MAX_QUERY_CHARS = 300
"""The rest of a longer text is ignored."""
MIN_PART_LETTERS = 3
"""Parts of a word with fewer letters aren't tried as words."""
MAX_PARTS = 5
"""An identifier with more parts is searched only as it was typed."""

# A token between spaces, of 2 to 60 characters.
_TOKEN = re.compile(r"(?<!\S)\S{2,60}(?!\S)")
# "CA1502" has the parts "CA" and "1502".
_DIGITS_OR_LETTERS = re.compile(r"\d+|[^\W\d_]+")
# "getHTTPPage" has the parts "get", "HTTP" and "Page".
_CAMEL_CASE_PART = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+|\d+")


def spelling_variants(text: str) -> list[Variant]:
    """Return other spellings of parts of a query, at most `MAX_VARIANTS`.

    They include words that are typical of answers to the question. The query must be cleaned by
    `normalize.clean_query`.
    """
    text = text[:MAX_QUERY_CHARS]
    variants = chain(_answer_words(text), _number_variants(text), _word_variants(text))
    distinct = dict.fromkeys(islice(variants, MAX_VARIANTS))
    return [variant for variant in distinct if variant]


def _answer_words(text: str) -> Iterator[Variant]:
    """Yield words that are typical of the answers to a question: "called" for "name of"."""
    for question, answer in language_data("words")["answered_with"].items():
        if question in text.casefold():
            yield tuple(word_terms(answer))


# --- Words ---


def _word_variants(text: str) -> Iterator[Variant]:
    """Yield the variants of words: joined words, joined or split identifiers, Kana and numerals."""
    tokens = _TOKEN.findall(text)
    for token in tokens:
        yield from _identifier_variants(token)
    for first, second in pairwise(words_of(text)):
        if _may_be_joined(first.casefold(), second.casefold()):
            for term in word_terms(first + second):
                yield (term,)
    # Three to five plain words may also be one word: "getusername" for "get user name".
    is_plain_phrase = all(token.isalnum() and token.isascii() for token in tokens)
    if 2 < len(tokens) <= MAX_PARTS and is_plain_phrase:
        yield tuple(word_terms("".join(tokens)))
    if not text.isascii():
        yield from _kana_variants(text)
        yield from _numeral_variants(text)


def _may_be_joined(first: str, second: str) -> bool:
    """Return whether people may also write two words as one: ``CA 1502``, ``ice cream``."""
    if first.isalpha() and second.isalpha():
        is_long_enough = min(len(first), len(second)) >= MIN_PART_LETTERS
        return is_long_enough and stop_words().isdisjoint((first, second))
    return first.isdecimal() != second.isdecimal() and (first + second).isascii()


def _identifier_variants(token: str) -> Iterator[Variant]:
    """Yield the parts of an identifier joined into one word, and as separate words.

    For example, ``get_user_by_id`` becomes ``getuserbyid``, and ``CA1502`` becomes ``CA 1502``.
    """
    words = words_of(token)
    if 2 <= len(words) <= MAX_PARTS and token.isascii():
        yield tuple(word_terms("".join(words)))
    for word in words:
        if not word.isascii():
            continue
        parts = _DIGITS_OR_LETTERS.findall(word)
        head_and_rest = [parts[0], "".join(parts[1:])]
        # "B2B" is divided into "B", "2", "B" and into "B", "2B".
        for division in (parts, head_and_rest, _CAMEL_CASE_PART.findall(word)):
            # The parts must be the whole word, and none may be missing.
            is_complete = "".join(division) == word and division[-1]
            if not is_complete or not 2 <= len(division) <= MAX_PARTS:
                continue
            variant = tuple(word_terms(" ".join(division)))
            if len(variant) > 1:
                yield variant


# --- Kana ---

_HIRAGANA = re.compile("[\u3041-\u3096\u30fc]{2,12}")
_KATAKANA = re.compile("[\u30a1-\u30f6\u30fc]{2,12}")
_PARTICLES = "はがをにでともののへやかねよ"
_TO_KATAKANA = {code: code + 0x60 for code in range(0x3041, 0x3097)}
_TO_HIRAGANA = {katakana: hiragana for hiragana, katakana in _TO_KATAKANA.items()}


def _kana_variants(text: str) -> Iterator[Variant]:
    """Yield each Katakana word in Hiragana, and each Hiragana word in Katakana.

    A Hiragana word is also tried without a particle at its beginning or end.
    """
    for match in _KATAKANA.finditer(text):
        yield tuple(word_terms(match[0].translate(_TO_HIRAGANA)))
    for match in _HIRAGANA.finditer(text):
        parts = [match[0]]
        if match[0][-1] in _PARTICLES:
            parts.append(match[0][:-1])
        parts += [part[1:] for part in parts if part[0] in _PARTICLES]
        for part in parts:
            if len(part) > 1:
                yield tuple(word_terms(part.translate(_TO_KATAKANA)))


# --- Han numerals ---

MAX_NUMERAL_SIGNS = 9
_HAN_DIGITS = "零一二三四五六七八九"
_HAN_UNITS = ((100_000_000, "亿"), (10_000, "万"))
_HAN_NUMERAL = re.compile("([〇零一二两三四五六七八九十百千万]+)([\u4e00-\u9fff]?)")
"""A numeral, and the character after it (group 2), which may count something: ``四百五十度``."""
_FIGURES_BEFORE_HAN = re.compile("(?<![\\d.,])(\\d{1,9})([\u4e00-\u9fff])")
"""Figures, and the character after them (group 2), which may count something: ``450度``."""


def _numeral_variants(text: str) -> Iterator[Variant]:
    """Yield Han numerals as figures, and figures before a Han character as numerals.

    For example, ``四百五十度`` becomes ``450 度``, and ``3点`` becomes ``三点``.
    """
    for numeral, noun in _HAN_NUMERAL.findall(text):
        number = _parse_han_numeral(numeral)
        # A single numeral without a noun is usually part of a word.
        if number is None or (number <= 9 and not noun):
            continue
        if noun:
            yield (str(number), noun)
        else:
            yield (str(number),)
        if number >= 10_000 and number % 10_000 == 0:
            yield (str(number // 10_000), "万")
    for figures, noun in _FIGURES_BEFORE_HAN.findall(text):
        numeral = _format_han_numeral(int(figures))
        yield tuple(word_terms(numeral + noun))
        # A two at the beginning may also be written as 两.
        if numeral[0] == "二" and numeral[1:2] in ("", "百", "千", "万"):
            yield tuple(word_terms("两" + numeral[1:] + noun))


def _format_han_numeral(number: int) -> str:
    """Return a whole number in Han numerals: 四百五十 for 450, 十二 for 12.

    A ten at the beginning has no 一, but any other ten has one: 二万零一十 for 20010.
    """
    numeral = _spell_han_numeral(number)
    return numeral.removeprefix("一") if numeral.startswith("一十") else numeral


def _spell_han_numeral(number: int) -> str:
    """Return a whole number in Han numerals, with 一 before every ten: 一十二 for 12."""
    for size, sign in _HAN_UNITS:
        if number < size:
            continue
        count, remainder = divmod(number, size)
        numeral = f"{_spell_han_numeral(count)}{sign}"
        if 0 < remainder < size // 10:
            numeral += "零"
        return numeral + (_spell_han_numeral(remainder) if remainder else "")
    # For 405: 零千, 四百, 零十, 五. Each group of zeros then becomes a single 零: 四百零五.
    places = zip(f"{number:04}", ("千", "百", "十", ""), strict=True)
    signs = "".join(_HAN_DIGITS[int(digit)] + unit for digit, unit in places)
    return re.sub("零[千百十零]*", "零", signs).strip("零") or "零"


def _parse_han_numeral(numeral: str) -> int | None:
    """Return the value of a Han numeral, or None if the numeral is invalid.

    For example, 四百五十 is 450. In 一千二 the last unit is left out, so the value is 1200.
    """
    total = 0  # the part before 万
    section = 0  # thousands, hundreds and tens
    digit = 0  # the last digit, if its unit hasn't been read yet
    unit = 1  # the last unit
    signs = numeral[:MAX_NUMERAL_SIGNS].replace("两", "二")
    for value in (int(unicodedata.numeric(sign)) for sign in signs):
        if value == 0:
            unit = 1
        elif value == 10_000:
            total = (section + digit) * value
            section = digit = 0
            unit = value
        elif value >= 10:
            section += (digit or 1) * value
            digit = 0
            unit = value
        elif digit:
            return None  # two digits in a row
        else:
            digit = value
    if unit >= 100:
        # The unit of the last digit is left out: 一千二 is 1000 + 2 * 100.
        digit *= unit // 10
    return total + section + digit


# --- Numbers and times ---

MIN_GROUPED_DIGITS, MAX_GROUPED_DIGITS = 4, 15
"""Numbers of this length may be written in groups of digits."""
MIN_PHONE_DIGITS = 7
"""From this length on, a number may be a telephone number, with groups of any size."""
MAX_PHONE_CUTS = 4
# Groups of digits: "1,500", "(0351) 123-456".
_DIGIT_GROUPS = re.compile(r"\d+(?:[ .,/'()-]{1,2}\d+)*", re.ASCII)
# A clock time: "7pm", "7:30 am", "19.00", "19h30".
_TIME = re.compile(r"\b(\d{1,2})(?:[:.h](\d\d))? ?(am|pm)?\b", re.ASCII | re.IGNORECASE)


def _number_variants(text: str) -> Iterator[Variant]:
    """Yield times on the other clock, numbers without separators, and long numbers divided.

    For example, "7pm" becomes "19 00", "1,500" becomes "1500", and "1500" becomes "1 500".
    """
    for match in _TIME.finditer(text):
        yield from _time_variants(int(match[1]), match[2], (match[3] or "").lower())
    for match in _DIGIT_GROUPS.finditer(text):
        groups = re.findall(r"\d+", match[0])
        # Join each sequence of two or more neighbouring groups.
        for start, end in combinations(range(len(groups) + 1), 2):
            digits = "".join(groups[start:end])
            if end - start > 1 and MIN_GROUPED_DIGITS <= len(digits) <= MAX_GROUPED_DIGITS:
                yield (digits,)
        if len(groups) == 1 and MIN_GROUPED_DIGITS <= len(groups[0]) <= MAX_GROUPED_DIGITS:
            yield from _divide_digits(groups[0])


def _divide_digits(digits: str) -> Iterator[Variant]:
    """Yield the ways to divide a number into groups of digits.

    Every number is divided by thousands: "1 234 567". A possible telephone number is also divided
    into groups of two to four digits in all possible ways.
    """
    # The first group has one to three digits.
    head = len(digits) % 3 or 3
    thousands = [digits[place : place + 3] for place in range(head, len(digits), 3)]
    yield (digits[:head], *thousands)
    if len(digits) < MIN_PHONE_DIGITS:
        return
    for count in range(1, MAX_PHONE_CUTS + 1):
        for cuts in combinations(range(2, len(digits) - 1), count):
            ends = (0, *cuts, len(digits))
            groups = tuple(digits[start:end] for start, end in pairwise(ends))
            if all(2 <= len(group) <= 4 for group in groups):
                yield groups


def _time_variants(hour: int, minute: str | None, half: str) -> Iterator[Variant]:
    """Yield other ways to write a clock time. `half` is "am", "pm" or "" for the 24-hour clock.

    For example, "7pm" has the variants "19 00" and "7 pm", and "19:30" has "7 30pm" and "7 30 pm".
    """
    if half and 1 <= hour <= 12:
        hour_of_day = hour % 12 + 12 if half == "pm" else hour % 12
        yield (str(hour_of_day), minute or "00")
        yield (f"{hour_of_day:02}", minute or "00")
    elif minute and not half and hour < 24:
        half = "pm" if hour >= 12 else "am"
        hour = hour % 12 or 12
    else:
        return
    if minute in (None, "00"):
        yield (f"{hour}{half}",)
        yield (str(hour), half)
    if minute is not None:
        yield (str(hour), f"{minute}{half}")
        yield (str(hour), minute, half)


# --- Typing errors ---

_KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_ALPHABETS = (
    ("abcdefghijklmnopqrstuvwxyz", "aeiouy"),
    ("абвгдежзийклмнопрстуфхцчшщъыьэюя", "аеиоуыэюя"),
)
"""Letters, and the vowels among them."""

# How likely each kind of error is. Only the order of the values matters.
SWAPPED_LETTERS = 1.0
DOUBLE_LETTER = 1.0
NEIGHBOUR_KEY = 0.8
MISSING_LETTER = 0.7
EXTRA_LETTER = 0.5
OTHER_VOWEL = 0.4
FIRST_LETTER_FACTOR = 0.6
"""The first letter is seldom wrong."""


def spelling_corrections(word: str) -> dict[str, float]:
    """Return the possible corrections of a lower-case word with one typing error.

    The values are rough likelihoods from 0 to 1. The kinds of errors are those of Kernighan, Church
    and Gale, "A spelling correction program based on a noisy channel model" (1990).
    """
    corrections: dict[str, float] = {}
    for text, likelihood in _list_corrections(word):
        if text != word and likelihood > corrections.get(text, 0.0):
            corrections[text] = likelihood
    return corrections


def _list_corrections(word: str) -> Iterator[tuple[str, float]]:
    """Yield each possible correction at each position of a word, with its likelihood.

    A correction may be yielded several times.
    """
    letters, vowels = _alphabet_of(word)
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        factor = FIRST_LETTER_FACTOR if place == 0 else 1.0
        # Insert a missing letter.
        for letter in letters:
            is_double = letter in (before[-1:], after[:1])
            likelihood = DOUBLE_LETTER if is_double else MISSING_LETTER
            yield before + letter + after, likelihood * factor
        if not after:
            return
        # Remove an extra letter.
        is_double = after[0] == before[-1:]
        yield before + after[1:], (DOUBLE_LETTER if is_double else EXTRA_LETTER) * factor
        # Swap two letters back.
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:], SWAPPED_LETTERS * factor
        # Replace a wrong letter with one from a neighbouring key, or with another vowel.
        for letter in _neighbour_keys().get(after[0], ""):
            yield before + letter + after[1:], NEIGHBOUR_KEY * factor
        if after[0] in vowels:
            for letter in vowels:
                yield before + letter + after[1:], OTHER_VOWEL * factor


def _alphabet_of(word: str) -> tuple[str, str]:
    """Return the letters and the vowels of the alphabet in which a word begins.

    Both are empty if the alphabet is unknown.
    """
    for letters, vowels in _ALPHABETS:
        if word[:1] in letters:
            return letters, vowels
    return "", ""


@lru_cache(maxsize=1)
def _neighbour_keys() -> Mapping[str, str]:
    """Return the keys around each key of a QWERTY keyboard."""
    places: list[tuple[str, int, float]] = []
    for row, keys in enumerate(_KEYBOARD):
        for index, key in enumerate(keys):
            # Each row is shifted by half a key.
            places.append((key, row, index + row / 2))
    neighbours: defaultdict[str, str] = defaultdict(str)
    for (key, row, column), (other_key, other_row, other_column) in permutations(places, 2):
        if abs(other_row - row) <= 1 and abs(other_column - column) <= 1:
            neighbours[key] += other_key
    return neighbours


# --- Forms of words ---

RELATED_PREFIX_LETTERS = 4
RELATED_PREFIX_SHARE = 0.6
MIN_SINGULAR_LETTERS = 4
"""A shorter word isn't returned as a form of another word."""
_CYRILLIC = re.compile("[\u0430-\u044f\u0451]{3,}")


def are_related(word: str, other: str) -> bool:
    """Return whether two different words begin alike, such as "adopt" and "adoptive".

    The common beginning must have at least `RELATED_PREFIX_LETTERS` letters, and at least
    `RELATED_PREFIX_SHARE` of the letters of the longer word.
    """
    if word == other:
        return False
    common = 0
    for letter, other_letter in zip(word, other, strict=False):
        if letter != other_letter:
            break
        common += 1
    longest = max(len(word), len(other))
    return common >= RELATED_PREFIX_LETTERS and common >= RELATED_PREFIX_SHARE * longest


def inflected_forms(word: str) -> tuple[str, ...]:
    """Return a folded word and its other forms: "ferry" and "ferries", "Москва" and "Москве".

    Forms are known only for English and Russian words.
    """
    forms: list[str] = []
    if _CYRILLIC.fullmatch(word):
        forms = _russian_forms(word)
    elif word.isascii() and word.isalpha() and len(word) >= MIN_SINGULAR_LETTERS - 1:
        forms = _english_forms(word)
    return tuple(dict.fromkeys((word, *forms)))


def _russian_forms(word: str) -> list[str]:
    """Return the word with its ending replaced by each Russian ending.

    If several endings match, such as "и" and "ами", each of them is replaced.
    """
    endings = ("", *language_data("words")["russian_endings"].split())
    forms: list[str] = []
    for ending in endings:
        stem = word.removesuffix(ending)
        if word.endswith(ending) and len(stem) >= MIN_SINGULAR_LETTERS - 1:
            forms += [stem + other_ending for other_ending in endings]
    return forms


def _english_forms(word: str) -> list[str]:
    """Return possible singulars and plurals of an English word."""
    forms = [f"{word}s", f"{word}es"]
    if word.endswith("y"):
        forms.append(f"{word[:-1]}ies")
    if word.endswith("ies"):
        forms.append(f"{word[:-3]}y")
    for ending in ("s", "es"):
        if word.endswith(ending):
            forms.append(word.removesuffix(ending))
    return [form for form in forms if len(form) >= MIN_SINGULAR_LETTERS]
