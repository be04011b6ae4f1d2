"""What may be meant by what was typed: slips, forms of a word, numbers, other spellings."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.search.query import plan_inflected, plan_typed
from core.text.normalize import clean_query
from core.text.terms import terms_of
from core.text.variants import (
    MAX_VARIANTS,
    are_related,
    inflected_forms,
    spelling_corrections,
    spelling_variants,
)
from tests.bench.hurry import slip
from tests.fixtures.tables import each_row


@each_row(
    ("typed", "written"),
    [
        ("CA 1502", "CA1502"),
        ("What is the name of the plumber?", "called"),
        ("What is the plumber called?", "name"),
        ("ca1502 again", "CA 1502"),
        ("ABC-1234", "abc1234"),
        ("Win11", "win 11"),
        ("MyHome5G", "MyHome-5G"),
        ("16 GB", "16GB"),
        ("node.js", "nodejs"),
        ("wi-fi", "wifi"),
        ("O'Brien", "obrien"),
        ("foo_bar_baz", "foobarbaz"),
        ("getUserById2", "get user id 2"),
        ("HTTPServer", "HTTP server"),
        ("get user name", "getUserName"),
        ("タマゴ", "たまご"),
        ("たまごの値段", "タマゴ"),
        ("ラーメン", "らーめん"),
        ("3点", "三点"),
        ("12号", "十二号"),
        ("450度", "四百五十度"),
        ("105块", "一百零五块"),
        ("2个", "两个"),
        ("200块", "两百块"),
        ("38000元", "三万八千元"),
        ("20010元", "二万零一十元"),
        ("210元", "二百一十元"),
        ("120000元", "十二万元"),
        ("120000000元", "一亿二千万元"),
        ("500000300元", "五亿零三百元"),
        ("1600萬", "一千六百万"),
        ("三点", "3点"),
        ("二十", "20"),
        ("六百八十万", "680万"),
        ("一千二", "1200"),
        ("兩萬三", "23000"),
        ("一百零五", "105"),
        ("二万零一十", "20010"),
    ],
)
def test_spelling_variants_of_a_query_match_the_other_way_a_term_is_written(
    typed: str, written: str
) -> None:
    ways = spelling_variants(clean_query(typed))
    assert any(set(way) >= set(terms_of(written)) for way in ways), ways


@each_row("text", ["", "ferry", "the ferry", "7", "?", "一", "百万十三三", "ー", "x" * 5_000])
def test_query_without_another_spelling_has_no_variants(text: str) -> None:
    assert spelling_variants(clean_query(text)) == []


@pytest.mark.slow
@given(st.text(alphabet="ab AB12._-'たまゴラー三十百千万点号度", max_size=400))
def test_spelling_variants_of_a_query_are_limited_in_number_and_never_empty(text: str) -> None:
    ways = spelling_variants(clean_query(text))
    assert len(ways) <= MAX_VARIANTS
    assert all(way and all(way) for way in ways)


@each_row(
    ("typed", "word", "likelihood"),
    [
        ("lisbno", "lisbon", 1.0),
        ("restaurrant", "restaurant", 1.0),
        ("resturant", "restaurant", 0.7),
        ("retaurant", "restaurant", 0.7),
        ("comit", "commit", 1.0),
        ("lisvon", "lisbon", 0.8),
        ("lizbon", "lisbon", 0.8),
        ("seperate", "separate", 0.4),
        ("harxbour", "harbour", 0.5),
    ],
)
def test_spelling_correction_has_the_expected_likelihood(
    typed: str, word: str, likelihood: float
) -> None:
    assert spelling_corrections(typed)[word] == likelihood


def test_spelling_correction_of_the_first_letter_is_less_likely() -> None:
    assert spelling_corrections("kisbon")["lisbon"] < spelling_corrections("lisvon")["lisbon"]
    assert spelling_corrections("isbon")["lisbon"] < spelling_corrections("lisbn")["lisbon"]


def test_typing_slip_in_a_cyrillic_word_is_corrected() -> None:
    for typed in ("превет", "приввет", "рпивет", "привт", "приветы"):
        assert "привет" in spelling_corrections(typed), typed


def test_every_slip_that_the_benchmark_makes_is_undone() -> None:
    chance = Random(3)
    for word in ("ferry", "harbour", "grandmother", "committee"):
        for typed in {slip(word, chance) for _ in range(100)} - {word}:
            assert word in spelling_corrections(typed)


@each_row(
    ("one", "other", "expected"),
    [
        ("adopt", "adoptive", True),
        ("photo", "photograph", False),
        ("photograph", "photographi", True),
        ("парома", "паром", True),
        ("port", "porto", True),
        ("car", "cars", False),
        ("transport", "translate", False),
        ("adopt", "adopt", False),
        ("", "", False),
    ],
)
def test_two_words_are_related_only_if_they_are_inflected_forms_of_one_word(
    one: str, other: str, expected: bool
) -> None:
    assert are_related(one, other) is are_related(other, one) is expected


@each_row(
    ("word", "form"),
    [
        ("ferry", "ferries"),
        ("ferries", "ferry"),
        ("porto", "portos"),
        ("glasses", "glass"),
        ("москва", "москве"),
        ("москве", "москва"),
        ("анну", "анной"),
        ("сергею", "сергей"),
        ("ивана", "иван"),
    ],
)
def test_inflected_forms_include_plural_and_case_forms(word: str, form: str) -> None:
    assert form in inflected_forms(word)


@each_row(
    ("word", "other"),
    [
        ("reading", "read"),
        ("news", "new"),
        ("porto", "portal"),
        ("mars", "mar"),
        ("анна", "антон"),
        ("ana", "an"),
    ],
)
def test_inflected_forms_of_a_word_do_not_include_an_unrelated_word(word: str, other: str) -> None:
    assert other not in inflected_forms(word)
    assert inflected_forms(word)[0] == word


def test_query_with_operators_or_signs_is_not_inflected() -> None:
    for text in (
        '"ferry"',
        "ferry OR boat",
        "ferry -boat",
        "ferr*",
        "波尔图",
        "core/store.py",
        "🦜",
        "",
    ):
        assert plan_inflected(text) == plan_typed(text)
    assert plan_inflected("Ferry Köln").highlights == (
        "ferry|ferrys|ferryes|ferries",
        "koln|kolns|kolnes",
    )


@each_row(
    ("typed", "way"),
    [
        ("912345678", ("912", "345", "678")),
        ("5551234567", ("555", "123", "4567")),
        ("0171234567", ("01", "71", "23", "45", "67")),
        ("+351 912 345 678", ("912345678",)),
        ("+351 912 345 678", ("351912345678",)),
        ("1200", ("1", "200")),
        ("1234567", ("1", "234", "567")),
        ("€1,200", ("1200",)),
        ("1.200", ("1200",)),
        ("7pm", ("19", "00")),
        ("7 pm", ("7pm",)),
        ("7 PM", ("19", "00")),
        ("9am", ("09", "00")),
        ("12am", ("0", "00")),
        ("19:00", ("7pm",)),
        ("0:30", ("12", "30am")),
        ("20:30", ("8", "30pm")),
        ("8:30pm", ("20", "30")),
    ],
)
def test_spelling_variants_of_a_number_include_its_digits_or_its_number_word(
    typed: str, way: tuple[str, ...]
) -> None:
    assert way in spelling_variants(typed)


@each_row(
    ("text", "ways"),
    [
        ("", []),
        ("ferry", []),
        ("7", []),
        ("1234567890123456", []),
        ("25:00", [("2500",)]),
        ("13pm", [("13", "pm")]),
        ("3 may", [("3may",)]),
    ],
)
def test_number_that_is_not_a_time_gets_no_spelling_of_a_time(
    text: str, ways: list[tuple[str, ...]]
) -> None:
    assert spelling_variants(text) == ways


@pytest.mark.slow
@given(st.text(alphabet="0123456789 .:,-apmh/", max_size=600))
def test_spelling_variants_are_limited_in_number_and_are_single_words(text: str) -> None:
    ways = spelling_variants(text)
    assert len(ways) <= MAX_VARIANTS
    assert all(way and all(word.isalnum() and word.isascii() for word in way) for way in ways)
