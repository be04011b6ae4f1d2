"""Numbers and times as somebody else may have written them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.variants import NUMBERS_MOST, other_ways


@pytest.mark.parametrize(
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
def test_another_way_to_write_it(typed: str, way: tuple[str, ...]) -> None:
    assert way in other_ways(typed)


@pytest.mark.parametrize("text", ["", "ferry", "7", "25:00", "13pm", "3 may", "1234567890123456"])
def test_what_has_no_other_way(text: str) -> None:
    assert other_ways(text) == []


@given(st.text(alphabet="0123456789 .:,-apmh/", max_size=600))
def test_the_ways_are_few_and_of_one_word_each(text: str) -> None:
    ways = other_ways(text)
    assert len(ways) <= NUMBERS_MOST
    assert all(way and all(word.isalnum() and word.isascii() for word in way) for way in ways)
