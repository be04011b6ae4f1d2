"""Numbers and times as somebody else may have written them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.variants import MOST, other_ways


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


@pytest.mark.parametrize("text", ["", "ferry", "7", "1234567890123456"])
def test_what_has_no_other_way(text: str) -> None:
    assert other_ways(text) == []


@pytest.mark.parametrize(("text", "way"), [("25:00", ("2500",)), ("13pm", ("13", "pm")), ("3 may", ("3may",))])
def test_what_is_no_time_is_not_written_as_one(text: str, way: tuple[str, ...]) -> None:
    assert other_ways(text) == [way]


@given(st.text(alphabet="0123456789 .:,-apmh/", max_size=600))
def test_the_ways_are_few_and_of_one_word_each(text: str) -> None:
    ways = other_ways(text)
    assert len(ways) <= MOST
    assert all(way and all(word.isalnum() and word.isascii() for word in way) for way in ways)
