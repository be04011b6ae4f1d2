"""Identifiers, Kana and East Asian numbers as somebody else may have written them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.normalize import clean
from core.text.terms import terms_of
from core.text.variants import MOST, other_ways


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("CA 1502", "CA1502"),
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
        ("1600萬", "一千六百万"),
        ("三点", "3点"),
        ("二十", "20"),
        ("六百八十万", "680万"),
        ("一千二", "1200"),
        ("兩萬三", "23000"),
        ("一百零五", "105"),
    ],
)
def test_another_way_to_write_it(typed: str, written: str) -> None:
    ways = other_ways(clean(typed))
    assert any(set(way) >= set(terms_of(written)) for way in ways), ways


@pytest.mark.parametrize("text", ["", "ferry", "the ferry", "7", "?", "一", "百万十三三", "ー", "x" * 5_000])
def test_what_has_no_other_way(text: str) -> None:
    assert other_ways(clean(text)) == []


@given(st.text(alphabet="ab AB12._-'たまゴラー三十百千万点号度", max_size=400))
def test_the_ways_are_few_and_have_terms(text: str) -> None:
    ways = other_ways(clean(text))
    assert len(ways) <= MOST
    assert all(way and all(way) for way in ways)
