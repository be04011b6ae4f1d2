"""Split texts into tokens, with the phrases of a lexicon.

All readers of times use `tokenize`. Requests are split with the lexicon of one language, and
sentences about the past with a lexicon of all languages (see `period_lexicon`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from core.dates.lexicon import MIN_CORRECTABLE, PREFIX_LETTERS, Lexicon, ShortWeekdays
from core.dates.tokens import Kind, Token, Unit
from core.text.normalize import LETTER_CLASS, plain_form

MAX_TEXT_CHARS = 2_000
"""Only this many characters at the beginning of a text are read."""
MAX_START_CHARS = 200
MAX_END_CHARS = 150
"""Between this many characters at both ends, a request isn't searched for times."""
MAX_WORD_CHARS = 40
"""Longer runs of letters and signs, as in Chinese, may be cut."""
MAX_MINUTE = 59
NO_CLOCK_TIME = -1
"""The number of a CLOCK that doesn't exist, such as 13:70."""

_DIGITS = re.compile(
    r"""
    (?P<iso>\d{4}(?P<line>[-/.])\d{1,2}(?P=line)\d{1,2}(?:t(?=\d))?)(?![-.]?\d)
    |(?P<month>(?<![-/.\d])(?:19|20|21)\d\d-(?:0[1-9]|1[012]))(?![-/\da-z])
    |(?P<clock>(?<![\d.,:])(?P<hour>\d{1,2})(?P<mark>[:h])(?P<minute>\d\d)(?::[0-5]\d)?)(?!\d)
    |(?P<date>(?<![\d.,:/])\d{1,2}(?P<sign>[./-])\d{1,2}(?P=sign)(?:\d{4}|\d\d))(?![\d/]|[-.]\d)
    |(?P<short>(?<![\d.,:/])(?P<left>\d{1,2})(?P<point>[./])(?P<right>\d{1,2})\.?)(?![\d/:])
    |(?P<ordinal>(?<![\d.,])\d{1,2})(?:st|nd|rd|th|er|º|ª)\b
    |(?P<number>\d+(?:[.,]\d{1,3}(?!\d))?)
    """,
    re.VERBOSE,
)
_LETTERS = rf"(?!\d){LETTER_CLASS}|[\u0900-\u0963\u0970-\u0dff]"
"""Part of a regular expression: a letter that joins others to a word, or an Indian vowel sign."""
_WORD = re.compile(rf"(?:{_LETTERS})++|\d++|[\s\S]")
_WORD_WITH_PARTICLES = re.compile(rf"(?:{_LETTERS}|[\uac00-\ud7af])++|\d++|[\s\S]")
_HAN_NUMBER = re.compile("[零〇一二两三四五六七八九十百]+")
_HAN_DIGITS = {character: value for value, character in enumerate("〇一二三四五六七八九")}
_HAN_DIGITS |= {"零": 0, "两": 2}
_SIGNS = {",": Kind.COMMA, "，": Kind.COMMA, "、": Kind.COMMA, ":": Kind.COLON, "：": Kind.COLON}
_SIGNS |= {"-": Kind.TO, "–": Kind.TO, "—": Kind.TO, "~": Kind.TO, "〜": Kind.TO, "。": Kind.COMMA}
_SIGNS |= {"،": Kind.COMMA}


class Text(NamedTuple):
    """A text in plain form, and the position of each plain character in the original text."""

    original: str
    plain: str
    offsets: list[int] | None

    def locate(self, index: int) -> int:
        """Return the index in the original text for an index in the plain text."""
        if self.offsets is None:
            return index
        return self.offsets[index] if index < len(self.offsets) else len(self.original)


def plain_text(text: str) -> Text:
    """Return a text with its plain form. Only the beginning of a long text is converted."""
    original = text[:MAX_TEXT_CHARS]
    plain, offsets = plain_form(original)
    return Text(original, plain, offsets)


def tokenize(text: Text, lexicon: Lexicon, unread: slice | None = None) -> list[Token]:
    """Return the tokens of a text. White space results in no token.

    The `unread` part of the plain text becomes a single token of the kind OTHER.
    """
    tokens: list[Token] = []
    position = 0
    while position < len(text.plain):
        if text.plain[position] == " ":
            position += 1
            continue
        if unread is not None and unread.start <= position < unread.stop:
            tokens.append(Token(Kind.OTHER, start=position, end=unread.stop))
            position = unread.stop
            continue
        pieces, position = _read_piece(text.plain, position, lexicon)
        tokens.extend(pieces)
    tokens = _read_short_days(tokens, text.plain, lexicon.short_weekdays)
    return list(_join_numbers(tokens)) if any(map(_is_ten, tokens)) else tokens


def find_middle(plain: str) -> slice | None:
    """Return the words between the ends of a long request, or None for other requests.

    A request names its time at one of its ends: "tomorrow at 9 …", "… tomorrow at 9".
    """
    if len(plain) <= MAX_START_CHARS + MAX_END_CHARS:
        return None
    start = _find_word_start(plain, MAX_START_CHARS)
    return slice(start, max(start + 1, _find_word_start(plain, len(plain) - MAX_END_CHARS)))


def _find_word_start(plain: str, position: int) -> int:
    """Return the start of the word at a position, or the position if the word is very long."""
    start = plain.rfind(" ", position - MAX_WORD_CHARS, position) + 1
    return start or position


def plain_sentence(text: str) -> Text:
    """Return a text without the marks at its end: the point of "on 3." makes no day."""
    source = plain_text(text)
    return source._replace(plain=source.plain.rstrip("?!.؟ "))


def has_unknown_word(phrase: str, lexicon: Lexicon) -> bool:
    """Return whether a phrase in plain form has a word that is in no phrase of the lexicon."""
    position = 0
    while position < len(phrase):
        _, end = _match_phrase(phrase, position, lexicon)
        if end == position:
            end = _end_of_word(phrase, position, lexicon)
            if phrase[position:end].isalpha():
                return True
        position = end
    return False


_ISO_TIME = re.compile(r"(?<=\d-\d\d)t(?=\d\d:)")
"""The letter of 2026-12-01T09:00."""
_OFFSET = re.compile(r"(?:utc|gmt)\s?([+-])(\d{1,2})(?![\d:])")


def _read_offset(plain: str, position: int) -> Token | None:
    """Return the ZONE of "UTC+1". Its IANA name has the opposite sign."""
    match = _OFFSET.match(plain, position)
    if match is None or int(match[2]) > 12:
        return None
    sign = "-" if match[1] == "+" else "+"
    zone = f"Etc/GMT{sign}{int(match[2])}"
    return Token(Kind.ZONE, zone=zone, start=position, end=match.end())


def _read_piece(plain: str, position: int, lexicon: Lexicon) -> tuple[Sequence[Token], int]:
    """Return the tokens at a position of the plain text, and where they end."""
    initial = plain[position]
    offset = _read_offset(plain, position) if initial in "ug" else None
    if offset is not None:
        return (offset,), offset.end
    if initial == "t" and _ISO_TIME.match(plain, position):
        return (Token(Kind.AT, start=position, end=position + 1),), position + 1
    if initial in lexicon.initials:
        phrase, end = _match_phrase(plain, position, lexicon)
        if end > position:
            return [token._replace(start=position, end=end) for token in phrase], end
    digits = _DIGITS.match(plain, position) if initial.isdecimal() else None
    if digits:
        return (_tokenize_digits(digits),), digits.end()
    if lexicon.is_unspaced:
        han = _HAN_NUMBER.match(plain, position)
        if han:
            token = Token(Kind.NUMBER, _parse_han_number(han[0]), start=position, end=han.end())
            return (token,), han.end()
    end = _end_of_word(plain, position, lexicon)
    piece = plain[position:end]
    name = _correct_name(piece, lexicon) if lexicon.long_names else ""
    if name:
        return [token._replace(start=position, end=end) for token in lexicon.phrases[name]], end
    return (Token(_SIGNS.get(piece, Kind.OTHER), start=position, end=end),), end


def _match_phrase(plain: str, position: int, lexicon: Lexicon) -> tuple[tuple[Token, ...], int]:
    """Return the tokens of the longest phrase at a position, and where it ends.

    Without a phrase, return () and the position. In scripts with spaces, a phrase consists of whole
    words.
    """
    for length in _list_lengths(lexicon, plain, position):
        end = position + length
        form = plain[position:end]
        if len(form) < length:
            continue  # The text is too short.
        if form in lexicon.phrases and _is_whole(plain, position, end, lexicon):
            if (
                form[-1] in lexicon.shared_ends
                and length > 1
                and _begins_phrase(plain, end - 1, lexicon)
            ):
                continue
            if plain[:position].endswith("'") and _is_zone(lexicon.phrases[form]):
                continue  # The "est" of French "c'est" isn't a time zone.
            return lexicon.phrases[form], end
        if form in lexicon.stems and _is_stem(plain, position, end, lexicon):
            return lexicon.stems[form], _end_of_word(plain, end - 1, lexicon)
    return (), position


def _list_lengths(lexicon: Lexicon, plain: str, position: int) -> Sequence[int]:
    """Return the lengths of the phrases that may begin at a position, longest first."""
    prefix = plain[position : position + PREFIX_LETTERS]
    lengths = lexicon.lengths.get(prefix, ())
    for length in range(len(prefix) - 1, 0, -1):
        if prefix[:length] in lexicon.lengths:
            lengths = (*lengths, length)
    return lengths


def _is_zone(tokens: Sequence[Token]) -> bool:
    return bool(tokens) and tokens[0].kind is Kind.ZONE


def _begins_phrase(plain: str, position: int, lexicon: Lexicon) -> bool:
    """Return whether a phrase of several characters begins at a position."""
    return any(
        length > 1 and plain[position : position + length] in lexicon.phrases
        for length in _list_lengths(lexicon, plain, position)
    )


def _correct_name(word: str, lexicon: Lexicon) -> str:
    """Return the name of the day or month that a long word means with one wrong letter, or ""."""
    if len(word) < MIN_CORRECTABLE - 1 or not word.isalpha():
        return ""
    names = lexicon.long_names.get(word[0], ())
    return next((name for name in names if _differ_by_one(word, name)), "")


def _differ_by_one(word: str, name: str) -> bool:
    """Return whether one letter is missing, added or wrong, or two letters are swapped."""
    if abs(len(word) - len(name)) > 1:
        return False
    pairs = enumerate(zip(word, name, strict=False))
    begin = next((index for index, (left, right) in pairs if left != right), None)
    if begin is None:
        return True
    first, second = word[begin:], name[begin:]
    if len(first) == len(second):
        is_swapped = first[:2] == second[:2][::-1] and first[2:] == second[2:]
        return is_swapped or first[1:] == second[1:]
    return first[1:] == second or first == second[1:]


def _read_short_days(
    tokens: list[Token], plain: str, short_weekdays: ShortWeekdays | None
) -> list[Token]:
    """Read one-letter weekdays.

    They are read as weekdays only after "every week", after another weekday, or in a list.
    """
    if short_weekdays is None:
        return tokens
    result: list[Token] = []
    position = 0
    for token in tokens:
        if token.start < position:
            continue
        begins_word = token.start == 0 or not plain[token.start - 1].isalnum()
        if begins_word and token.end - token.start < MIN_CORRECTABLE:
            days, position = _match_short_days(plain, token.start, short_weekdays)
            if len(days) > 1:
                result += days
                continue
        result.append(token)
        is_week = token.kind is Kind.REPEAT and token.unit is Unit.WEEK
        if is_week or token.kind is Kind.WEEKDAY:
            days, position = _match_short_days(plain, token.end, short_weekdays)
            result += days
    return result


def _match_short_days(
    plain: str, start: int, short_weekdays: ShortWeekdays
) -> tuple[list[Token], int]:
    """Return the one-letter weekdays at a position and where they end, or [] and 0."""
    days: list[Token] = []
    position = start
    while match := short_weekdays.item.match(plain, position):
        day = short_weekdays.days[match[1]]
        days.append(Token(Kind.WEEKDAY, day, start=match.start(1), end=match.end()))
        position = match.end()
    if not days or not short_weekdays.end.match(plain, position):
        return [], 0
    return days, position


def _is_whole(plain: str, start: int, end: int, lexicon: Lexicon) -> bool:
    """Return whether a phrase is more than a part of a word or number.

    Only in languages with particles may a text be read from within a word.
    """
    if lexicon.has_particles and not _begins_whole(plain, start, end, lexicon):
        return False
    if end == len(plain) or plain[end] == " " or not _joins(plain, end, lexicon):
        return True
    return _is_hangul(plain[end]) and _continues(plain, end, lexicon)


def _is_stem(plain: str, start: int, end: int, lexicon: Lexicon) -> bool:
    """Return whether a stem and a short ending are a whole word."""
    if lexicon.has_particles and not _begins_whole(plain, start, start + 1, lexicon):
        return False
    return _end_of_word(plain, end - 1, lexicon) - end <= lexicon.max_ending_letters


def _begins_whole(plain: str, start: int, end: int, lexicon: Lexicon) -> bool:
    """Return whether a phrase begins a word, or follows another phrase in a Korean word."""
    if not _is_hangul(plain[start]) and _joins(plain, start, lexicon):
        return False
    begins_word = start == 0 or not plain[start - 1].isalnum()
    return not (begins_word and plain[start:end] in lexicon.particles)


def _joins(plain: str, position: int, lexicon: Lexicon) -> bool:
    """Return whether the characters before and after a position are in one word or number."""
    if position <= 0 or position >= len(plain):
        return False
    return _end_of_word(plain, position - 1, lexicon) > position


def _end_of_word(plain: str, position: int, lexicon: Lexicon) -> int:
    """Return where the word, number or sign at a position ends."""
    word = _WORD_WITH_PARTICLES if lexicon.has_particles else _WORD
    match = word.match(plain, position)
    return position + 1 if match is None else match.end()


def _is_hangul(character: str) -> bool:
    return "\uac00" <= character <= "\ud7af"


def _continues(plain: str, end: int, lexicon: Lexicon) -> bool:
    """Return whether the rest of a Korean word consists of phrases, like the 에는 of "9시에는"."""
    return _split_hangul(plain[end : _end_of_word(plain, end, lexicon)], lexicon)


@lru_cache(maxsize=2_000)
def _split_hangul(word: str, lexicon: Lexicon) -> bool:
    """Return whether a run of Korean letters consists of phrases of the lexicon."""
    if not word:
        return True
    for length in _list_lengths(lexicon, word, 0):
        if word[:length] in lexicon.phrases and _split_hangul(word[length:], lexicon):
            return True
    return False


def _tokenize_digits(match: re.Match[str]) -> Token:
    """Return the token of a clock time, a date or a number in digits."""
    numbers = tuple(map(int, re.findall(r"\d+", match[0])))
    token = Token(Kind.NUMBER, is_digits=True, start=match.start(), end=match.end())
    if match["iso"] or match["month"] or match["date"]:
        return token._replace(kind=Kind.DATE, date=numbers)
    if match["clock"]:
        minute = int(match["hour"]) * 60 + int(match["minute"])
        if int(match["minute"]) > MAX_MINUTE:
            minute = NO_CLOCK_TIME
        return token._replace(kind=Kind.CLOCK, number=minute)
    if match["short"]:
        if match["point"] != ".":
            return token._replace(kind=Kind.DATE, date=numbers)
        has_final_point = match["short"].endswith(".")
        return token._replace(kind=Kind.CLOCK_OR_DATE, date=numbers, number=has_final_point)
    if match["ordinal"]:
        return token._replace(kind=Kind.MONTH_DAY, number=numbers[0])
    number = float(match["number"].replace(",", "."))
    is_year = len(match["number"]) == 4 and 1990 <= number < 2200
    return token._replace(kind=Kind.YEAR if is_year else Kind.NUMBER, number=number)


def _parse_han_number(text: str) -> int:
    """Return the value of a number such as 二十五 or 一百二."""
    total = 0
    digit = 0
    for character in text:
        if character in ("十", "百"):
            total += (digit or 1) * (10 if character == "十" else 100)
            digit = 0
        else:
            digit = digit * 10 + _HAN_DIGITS[character]
    return total + digit


def _join_numbers(tokens: Sequence[Token]) -> Iterator[Token]:
    """Join number words such as "forty" and "five"."""
    index = 0
    while index < len(tokens):
        token = tokens[index]
        next_index = index + 1
        # Skip the hyphen of "forty-five".
        if next_index < len(tokens) and _is_hyphen_after(tokens[next_index], token):
            next_index += 1
        # Russian "без двадцати семь" is twenty to seven.
        follows_without = index > 0 and tokens[index - 1].kind is Kind.WITHOUT
        if _is_ten(token) and next_index < len(tokens) and not follows_without:
            ones = tokens[next_index]
            if _is_small_number(ones):
                yield token._replace(number=token.number + ones.number, end=ones.end)
                index = next_index + 1
                continue
        yield token
        index += 1


def _is_ten(token: Token) -> bool:
    """Return whether a token is a word from "twenty" to "ninety"."""
    is_word = token.kind is Kind.NUMBER and not token.is_digits
    return is_word and 20 <= token.number < 100 and token.number % 10 == 0


def _is_hyphen_after(token: Token, previous: Token) -> bool:
    return token.kind is Kind.TO and token.start == previous.end


def _is_small_number(token: Token) -> bool:
    return token.kind is Kind.NUMBER and not token.is_digits and 1 <= token.number <= 9
