"""Compares texts by accents, signs, decimals and units, which the plain form of a text lacks.

In the plain form (`core.text.normalize.comparison_form`), "papá" is "papa", "A+" is "A-", and "0.5"
contains a 5. So a text may have only the words of another text and still say something else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
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
    source = "\n".join(sources)
    return max(
        _compare_figures(find_figures(text), find_figures(source)),
        _compare_signed_words(text, source),
        _compare_accents(text, source),
        _compare_crosses(text, source),
    )


def _compare_crosses(text: str, source: str) -> Difference:
    is_crossed_out = _CROSS.search(source) is not None and _CROSS.search(text) is None
    return Difference.UNCLEAR if is_crossed_out else Difference.NONE


# --- Figures ---


def find_figures(text: str) -> list[Figure]:
    """Return the numbers of a text in digits."""
    plain = _MINUS_SIGNS.sub("-", comparison_form(text))
    return [_read_figure(match, plain) for match in _FIGURE.finditer(plain)]


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
        kind=_find_kind(digits, plain[match.end("value") :]),
    )


def _find_kind(digits: str, behind: str) -> FigureKind:
    is_day_and_month = behind.startswith(".") and _DAY_AND_MONTH.fullmatch(digits) is not None
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
    behind = plain[match.end() :].lstrip()
    for sign, forms in language_data("signs")[name].items():
        ahead, after = _compile_words(forms)
        if ahead.search(before) or after.match(behind):
            return str(sign)
    return ""


@cache
def _compile_words(forms: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return a pattern for words at the end of a text, and one for words at its beginning."""
    return re.compile(rf"(?<![^\W\d])(?:{forms})$"), re.compile(rf"(?:{forms})(?![a-z])")


def _compare_figures(figures: Iterable[Figure], sources: Sequence[Figure]) -> Difference:
    differences = [_compare_figure(figure, sources) for figure in figures]
    return max(differences, default=Difference.NONE)


def _compare_figure(figure: Figure, sources: Sequence[Figure]) -> Difference:
    same = [each for each in sources if _is_same_value(each, figure)]
    if same:
        return min(_compare_signs(figure, each) for each in same)
    if any(_has_other_zeros(each, figure) for each in sources):
        return Difference.UNCLEAR
    for each in sources:
        # The 5 of "0.5" isn't the number 5.
        if each.kind is not FigureKind.DATE and figure.value in re.split("[.:/-]", each.value):
            is_decimal = each.kind is FigureKind.DECIMAL
            return Difference.CHANGED if is_decimal else Difference.UNCLEAR
    return Difference.NONE


def _is_same_value(figure: Figure, other: Figure) -> bool:
    """Return whether two numbers have the same digits. "10.30" may also be the time 10:30."""
    return figure.value.replace(":", ".") == other.value.replace(":", ".")


def _has_other_zeros(figure: Figure, other: Figure) -> bool:
    """Return whether zeros make two numbers different. The zero of the hour 07 doesn't."""
    longest = max(len(figure.value), len(other.value))
    return longest > MAX_HOUR_DIGITS and figure.value.lstrip("0") == other.value.lstrip("0")


def _compare_signs(figure: Figure, other: Figure) -> Difference:
    if figure.sign != other.sign:
        signs = (figure.sign, other.sign)
        return Difference.CHANGED if "-" in signs or signs in _OPPOSITES else Difference.UNCLEAR
    if figure.unit == other.unit:
        return Difference.NONE
    return Difference.CHANGED if figure.unit and other.unit else Difference.UNCLEAR


# --- Words ---


def _compare_signed_words(text: str, source: str) -> Difference:
    """Compare words such as "A+" with the same words that have another sign or none."""
    signed, typed = _list_signed_words(text), _list_signed_words(source)
    words, source_words = _WORD.findall(text), _WORD.findall(source)
    difference = Difference.NONE
    for word in signed.keys() | typed.keys():
        signs, typed_signs = signed.get(word, set()), typed.get(word, set())
        if signs and word in source_words and not signs <= typed_signs:
            return Difference.CHANGED
        if typed_signs and not signs and word in words:
            difference = Difference.UNCLEAR
    return difference


def _list_signed_words(text: str) -> dict[str, set[str]]:
    signs: dict[str, set[str]] = {}
    for word, sign in _SIGNED_WORD.findall(text.replace("\u2212", "-").replace("\u2013", "-")):
        signs.setdefault(word, set()).add(sign)
    return signs


def _compare_accents(text: str, source: str) -> Difference:
    """Compare the accents of words that have the same letters, or begin with them."""
    exact_source = _write_exactly(source)
    plain_source = _drop_marks(source)
    source_words = {*_WORD.findall(exact_source)}
    plain_words = {comparison_form(word) for word in source_words}
    for word in {*_WORD.findall(_write_exactly(text))} - source_words:
        if _KANA.match(word):
            if word not in exact_source and _drop_marks(word) in plain_source:
                return Difference.UNCLEAR
        elif comparison_form(word) in plain_words or _drops_accent(word, source_words):
            return Difference.UNCLEAR
    return Difference.NONE


def _write_exactly(text: str) -> str:
    return to_normal_form("NFKC", text).casefold()


def _drop_marks(text: str) -> str:
    """Return a text without the marks that tell kana apart, such as those of "ba" and "pa"."""
    return to_normal_form("NFKC", _KANA_MARK.sub("", to_normal_form("NFKD", text)))


def _drops_accent(word: str, source_words: Collection[str]) -> bool:
    """Return whether words begin with the same letters, and all have an accent that `word` lacks.

    The last shared letter isn't compared, because it may belong to an ending: "nací", "nació".
    """
    drops = set()
    for other in source_words:
        shared = _count_shared(comparison_form(word), comparison_form(other))
        if shared >= max(MIN_STEM_LETTERS, len(word) - 2):
            stem, other_stem = word[: shared - 1], other[: shared - 1]
            drops.add(stem.isascii() and stem != other_stem)
    return drops == {True}


def _count_shared(word: str, other: str) -> int:
    """Return how many of their first letters two words share."""
    for index, (letter, other_letter) in enumerate(zip(word, other, strict=False)):
        if letter != other_letter:
            return index
    return min(len(word), len(other))
