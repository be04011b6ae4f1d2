"""Texts are compared by their signs, units, decimals and accents."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.text import exact_words
from core.text.exact_words import Difference, compare_exactly
from core.text.normalize import NormalForm, to_normal_form
from tests.fixtures.growth import assert_linear
from tests.fixtures.tables import each_row


@each_row(
    ("text", "source", "difference"),
    [
        ("€40", "40 euros", Difference.NONE),
        ("under 50", "<50", Difference.NONE),
        ("minus 18", "\u221218", Difference.NONE),
        ("1.50", "1,5", Difference.NONE),
        ("9:15", "9.15 Uhr", Difference.NONE),
        ("3 May", "am 3.5. um sieben", Difference.NONE),
        ("rooms 5-10", "5-10", Difference.NONE),
        ("yüzde 50", "%50", Difference.NONE),
        ("il est né", "Je suis né", Difference.NONE),
        ("er fährt", "ich fahre", Difference.NONE),
        ("7:30", "07:30", Difference.NONE),
        ("50", "50 %", Difference.UNCLEAR),
        ("3", "2-3", Difference.UNCLEAR),
        ("2", "½", Difference.UNCLEAR),
        ("42", "0042", Difference.UNCLEAR),
        ("7 pm", "7am", Difference.CHANGED),
        ("at 10", "at 10:30", Difference.UNCLEAR),
        ("in C", "in C++", Difference.UNCLEAR),
        ("forderte", "fördert", Difference.UNCLEAR),
        ("\u30d0\u30ea", "\u30d1\u30ea", Difference.UNCLEAR),
        ("40 $", "40 €", Difference.CHANGED),
        (">50", "<50", Difference.CHANGED),
        ("18", "-18", Difference.CHANGED),
        ("5 mg", "0.5 mg.", Difference.CHANGED),
        ("in C#", "in C++ or C", Difference.CHANGED),
    ],
)
def test_text_differs_if_a_sign_unit_decimal_or_accent_does(
    text: str, source: str, difference: Difference
) -> None:
    assert compare_exactly(text, [source]) is difference


@each_row(
    "make_word",
    [
        # Numbers that differ, and a sign with spaces before its word.
        lambda number: f"{number}.{number} ",
        lambda number: f"-{number}     x ",
        # Words that all begin with the same letters, all with an accent.
        lambda number: "\u00e1" * 6 + "".join(chr(97 + int(digit)) for digit in str(number)) + " ",
    ],
)
def test_comparing_many_different_words_takes_linear_time(make_word: Callable[[int], str]) -> None:
    words = "".join(map(make_word, range(1_000, 5_000)))
    assert_linear(lambda text: compare_exactly(text[1:], [text]), words)


def test_normal_form_of_each_text_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["Bring 5 l\u00edtros, por fav\u00f3r", "Traz 5 litros \u00e0s nove"]
    converted: list[str] = []

    def convert(form: NormalForm, text: str) -> str:
        converted.append(text)
        return to_normal_form(form, text)

    monkeypatch.setattr(exact_words, "to_normal_form", convert)
    compare_exactly(texts[0], texts[1:])
    assert converted == texts


def test_comparing_with_many_combining_marks_takes_linear_time() -> None:
    marks = "remind me to call mum a" + "\u0300\u0323" * 10_000
    assert_linear(lambda text: compare_exactly("call mum", [text]), marks)
