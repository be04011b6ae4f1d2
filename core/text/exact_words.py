"""Compares texts by accents, signs, decimals and units, which the plain form of a text lacks.

In the plain form (`core.text.normalize.comparison_form`), "papá" is "papa", "A+" is "A-", and "0.5"
contains a 5. So a text may have only the words of another text and still say something else.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import cache

from core.text.normalize import comparison_form, language_data, to_normal_form

MIN_STEM_LETTERS = 4
"""Words with this many equal first letters are compared by their accents."""
MAX_HOUR_DIGITS = 2
"""A zero before a longer number is part of it, as in the PIN 0042."""
MAX_SIGN_WORD_CHARS = 20
"""A word that means a sign, such as "minus", has at most this many characters."""

# A number with its parts, such as "0.5", "10:30" or "3.5.2026", and the signs around it.
_FIGURE = re.compile(
    r"(?P<sign>[<>\u2264\u2265]\s?|(?<![\w)])[-+])?(?P<currency>[%$\u20ac\xa3\xa5\u20bd\u20ba\u20a9]\s?)?"
    r"(?P<value>(?:(?<![\w.,])\.)?\d+(?:[.,:/\u2044-]\d+)*)(?P<plus>\+(?!\w))?"
    r"(?P<unit>\s?(?:[%$\u20ac\xa3\xa5\u20bd\u20ba\u20a9]|[ap]\.?m\b))?"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:[,.]\d{3})+")
_DECIMAL = re.compile(r"\d*\.\d+")
# "3.5." is a day and a month.
_DAY_AND_MONTH = re.compile(r"(?:[1-9]|[12]\d|3[01])\.(?:[1-9]|1[0-2])")
# A word with a sign of its own: a blood type, or a language such as "C++".
_SIGNED_WORD = re.compile(r"(?<!\w)([^\W\d_]+)([+#]+|(?<=[A-Z])-)(?!\w)")
_WORD = re.compile(
    r"[\u3041-\u309f]{2,}|[\u30a1-\u30ff]{2,}|[^\W\d_\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3]+"
)
_KANA = re.compile("[\u3041-\u30ff]")
_KANA_MARK = re.compile("[\u3099\u309a]")
# Signs that cross out the text next to them.
_CROSS = re.compile("~~|[\U0001f6ab\u274c\u2717\u2718\u2716\U0001f44e\u26d4]")
_MINUS_SIGNS = re.compile("[\u2212\u2012\uff0d](?=\\d)")
_LIMITS = {"\u2264": "<", "\u2265": ">"}
# Pairs of signs that mean the opposite of each other or of no sign.
_OPPOSITES = frozenset({("<", ">"), (">", "<")})


class Difference(IntEnum):
    """How the words and figures of a text differ from those of other texts."""

    NONE = 0
    # An accent, a unit or a sign is missing or added. Perhaps it's only written differently.
    UNCLEAR = 1
    # A number or its sign has changed.
    CHANGED = 2


class FigureKind(Enum):
    DECIMAL = "decimal"
    DATE = "date"
    # A whole number, a time such as 10:30, a range or a fraction.
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Figure:
    """A number in digits, with its sign and unit."""

    # The digits, with a point before decimals. Zeros at the end are left out: "1.5", "10:30".
    value: str
    # "-", "<", ">", "+" or "".
    sign: str = ""
    # "%", a currency sign or "".
    unit: str = ""
    kind: FigureKind = FigureKind.OTHER


def compare_exactly(text: str, sources: Sequence[str]) -> Difference:
    """Return how a text differs from others in signs, units, decimals and accents.

    Words and numbers that the other texts don't contain in any form aren't compared.
    """
    compared = _ExactText.of(text)
    source = _ExactText.of("\n".join(sources))
    return max(
        _compare_figures(compared, source),
        _compare_signed_words(compared, source),
        _compare_accents(compared, source),
        _compare_crosses(compared, source),
    )


@dataclass(frozen=True, slots=True)
class _ExactText:
    """A text and its normal forms. Folding a long text takes long, so it happens only once."""

    written: str
    # In NFKC.
    normal: str
    # The comparison form, see `core.text.normalize.comparison_form`.
    plain: str

    @classmethod
    def of(cls, text: str) -> _ExactText:
        normal = to_normal_form("NFKC", text)
        return cls(text, normal, comparison_form(normal))

    def find_exact_words(self) -> set[str]:
        """Return the words in lower case, with their accents."""
        return {*_WORD.findall(self.normal.casefold())}


def _compare_crosses(text: _ExactText, source: _ExactText) -> Difference:
    is_removed = _CROSS.search(source.written) and not _CROSS.search(text.written)
    return Difference.UNCLEAR if is_removed else Difference.NONE


# --- Figures ---


def _find_figures(text: _ExactText) -> Collection[Figure]:
    """Return the different numbers of a text in digits, in their order."""
    plain = _MINUS_SIGNS.sub("-", text.plain)
    return dict.fromkeys(_read_figure(match, plain) for match in _FIGURE.finditer(plain)).keys()


def _read_figure(match: re.Match[str], plain: str) -> Figure:
    digits = match["value"]
    if _THOUSANDS.fullmatch(digits):
        digits = re.sub("[.,]", "", digits)
    digits = digits.replace(",", ".").replace("\u2044", "/")
    sign = (match["sign"] or match["plus"] or "").strip()
    unit = (match["currency"] or match["unit"] or "").strip().replace(".", "")
    return Figure(
        value=_shorten(digits),
        sign=_LIMITS.get(sign, sign) or _find_word(match, plain, "signs"),
        unit=unit or _find_word(match, plain, "units"),
        kind=_find_kind(digits, plain[match.end("value") : match.end("value") + 1]),
    )


def _find_kind(digits: str, next_character: str) -> FigureKind:
    is_day_and_month = next_character == "." and _DAY_AND_MONTH.fullmatch(digits) is not None
    if len(re.findall("[./-]", digits)) > 1 or is_day_and_month:
        return FigureKind.DATE
    return FigureKind.DECIMAL if _DECIMAL.fullmatch(digits) else FigureKind.OTHER


def _shorten(digits: str) -> str:
    """Return digits without needless zeros: "1.50" as "1.5", and "10:00" as "10"."""
    if _DECIMAL.fullmatch(digits):
        whole, _, rest = digits.partition(".")
        digits = f"{whole or '0'}.{rest.rstrip('0')}".rstrip(".")
    hour, colon, minutes = digits.partition(":")
    if colon:
        digits = f"{hour.removeprefix('0') or '0'}:{minutes}"
    return digits.removesuffix(":00")


def _find_word(match: re.Match[str], plain: str, name: str) -> str:
    """Return the sign that the word before or after a number means, or ""."""
    before = plain[max(0, match.start() - MAX_SIGN_WORD_CHARS) : match.start()].rstrip()
    for sign, forms in language_data("signs")[name].items():
        ahead, after = _compile_words(forms)
        if ahead.search(before) or after.match(plain, match.end()):
            return str(sign)
    return ""


@cache
def _compile_words(forms: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return a pattern for words at the end of a text, and one for words after any spaces."""
    return re.compile(rf"(?<![^\W\d])(?:{forms})$"), re.compile(rf"\s*+(?:{forms})(?![a-z])")


def _compare_figures(text: _ExactText, source: _ExactText) -> Difference:
    figures = _find_figures(text)
    if not figures:
        return Difference.NONE
    sources = _FigureIndex(_find_figures(source))
    return max(_compare_figure(figure, sources) for figure in figures)


class _FigureIndex:
    """Finds numbers by their digits, so that each of many numbers is found at once."""

    def __init__(self, figures: Iterable[Figure]) -> None:
        self._by_value: dict[str, list[Figure]] = {}
        # The length of the longest number, by its digits without zeros at the beginning.
        self._longest: dict[str, int] = {}
        # The first number with a part, such as "10:30" for "10" and "30".
        self._by_part: dict[str, Figure] = {}
        for figure in figures:
            self._add(figure)

    def _add(self, figure: Figure) -> None:
        self._by_value.setdefault(figure.value.replace(":", "."), []).append(figure)
        digits = figure.value.lstrip("0")
        self._longest[digits] = max(len(figure.value), self._longest.get(digits, 0))
        # The 5 of "0.5" isn't the number 5, but the parts of a date are numbers.
        if figure.kind is not FigureKind.DATE:
            for part in re.split("[.:/-]", figure.value):
                self._by_part.setdefault(part, figure)

    def find_same(self, figure: Figure) -> Sequence[Figure]:
        """Return the numbers with the same digits. "10.30" may also be the time 10:30."""
        return self._by_value.get(figure.value.replace(":", "."), ())

    def has_other_zeros(self, figure: Figure) -> bool:
        """Return whether zeros make a number different. The zero of the hour 07 doesn't."""
        longest = self._longest.get(figure.value.lstrip("0"))
        return longest is not None and max(longest, len(figure.value)) > MAX_HOUR_DIGITS

    def find_with_part(self, figure: Figure) -> Figure | None:
        """Return the first number that contains the whole other number as a part, or None."""
        return self._by_part.get(figure.value)


def _compare_figure(figure: Figure, sources: _FigureIndex) -> Difference:
    same = sources.find_same(figure)
    if same:
        return min(_compare_signs(figure, each) for each in same)
    if sources.has_other_zeros(figure):
        return Difference.UNCLEAR
    whole = sources.find_with_part(figure)
    if whole is None:
        return Difference.NONE
    return Difference.CHANGED if whole.kind is FigureKind.DECIMAL else Difference.UNCLEAR


def _compare_signs(figure: Figure, other: Figure) -> Difference:
    if figure.sign != other.sign:
        signs = (figure.sign, other.sign)
        return Difference.CHANGED if "-" in signs or signs in _OPPOSITES else Difference.UNCLEAR
    if figure.unit == other.unit:
        return Difference.NONE
    return Difference.CHANGED if figure.unit and other.unit else Difference.UNCLEAR


# --- Words ---


def _compare_signed_words(text: _ExactText, source: _ExactText) -> Difference:
    """Compare words such as "A+" with the same words that have another sign or none."""
    signed, typed = _list_signed_words(text.written), _list_signed_words(source.written)
    if not signed and not typed:
        return Difference.NONE
    words, source_words = {*_WORD.findall(text.written)}, {*_WORD.findall(source.written)}
    if any(
        word in source_words and not signs <= typed.get(word, set())
        for word, signs in signed.items()
    ):
        return Difference.CHANGED
    loses_sign = any(word in words and word not in signed for word in typed)
    return Difference.UNCLEAR if loses_sign else Difference.NONE


def _list_signed_words(text: str) -> dict[str, set[str]]:
    signs: dict[str, set[str]] = {}
    for word, sign in _SIGNED_WORD.findall(text.replace("\u2212", "-").replace("\u2013", "-")):
        signs.setdefault(word, set()).add(sign)
    return signs


def _compare_accents(text: _ExactText, source: _ExactText) -> Difference:
    """Compare the accents of words that have the same letters, or begin with them."""
    source_words = source.find_exact_words()
    new_words = text.find_exact_words() - source_words
    kana = {word for word in new_words if _KANA.match(word)}
    if kana and _changes_kana_marks(kana, source):
        return Difference.UNCLEAR
    spellings = _Spellings(source_words)
    is_changed = any(map(spellings.has_other_accents, new_words - kana))
    return Difference.UNCLEAR if is_changed else Difference.NONE


def _changes_kana_marks(words: Iterable[str], source: _ExactText) -> bool:
    """Return whether a text has one of the words, but with other marks, such as "ba" for "pa"."""
    exact_source = source.normal.casefold()
    plain_source = _drop_kana_marks(source.normal)
    return any(
        word not in exact_source and _drop_kana_marks(word) in plain_source for word in words
    )


def _drop_kana_marks(text: str) -> str:
    return to_normal_form("NFKC", _KANA_MARK.sub("", to_normal_form("NFKD", text)))


class _Spellings:
    """The words of a text, found by their letters without accents."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = sorted((comparison_form(word), word) for word in words)

    def has_other_accents(self, word: str) -> bool:
        """Return whether the same letters occur with other accents, or only with accents.

        `word` itself doesn't occur.
        """
        plain = comparison_form(word)
        is_written_otherwise = any(other == plain for other, _ in self._iterate_from(plain, 1))
        return is_written_otherwise or self._drops_accent(word, plain)

    def _drops_accent(self, word: str, plain: str) -> bool:
        """Return whether words begin with the same letters, and all have an accent `word` lacks.

        The last shared letter isn't compared, because it may belong to an ending: "nací", "nació".
        """
        min_shared = max(MIN_STEM_LETTERS, len(word) - 2)
        if len(plain) < min_shared:
            return False
        is_found = False
        for other_plain, other in self._iterate_from(plain[:min_shared]):
            shared = _count_shared(plain, other_plain)
            if shared < min_shared:
                break
            stem = word[: shared - 1]
            if not stem.isascii() or stem == other[: shared - 1]:
                return False
            is_found = True
        return is_found

    def _iterate_from(self, plain: str, count: int | None = None) -> Iterator[tuple[str, str]]:
        """Yield words in the order of their plain forms, from this one on."""
        first = bisect_left(self._words, (plain, ""))
        end = len(self._words) if count is None else first + count
        for index in range(first, min(end, len(self._words))):
            yield self._words[index]


def _count_shared(word: str, other: str) -> int:
    """Return how many of their first letters two words share."""
    for index, (letter, other_letter) in enumerate(zip(word, other, strict=False)):
        if letter != other_letter:
            return index
    return min(len(word), len(other))
