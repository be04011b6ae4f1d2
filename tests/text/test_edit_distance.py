"""The number of slips between two words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.spelling import are_kin, slips


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("lisbon", "lisbon", 0),
        ("lisbno", "lisbon", 1),
        ("lisbn", "lisbon", 1),
        ("lisbonn", "lisbon", 1),
        ("lizbon", "lisbon", 1),
        ("resturant", "restaurant", 1),
        ("resaturantt", "restaurant", 2),
        ("porto", "lisbon", 3),
        ("", "ab", 2),
        ("", "", 0),
        ("привет", "превет", 1),
    ],
)
def test_slips(one: str, other: str, expected: int) -> None:
    assert slips(one, other, 2) == expected
    assert slips(other, one, 2) == expected


@given(st.text("abc", max_size=8), st.text("abc", max_size=8), st.integers(0, 3))
def test_the_limit_only_cuts(one: str, other: str, most: int) -> None:
    assert slips(one, other, most) == min(slips(one, other, 9), most + 1)


@pytest.mark.parametrize(
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
def test_kin(one: str, other: str, expected: bool) -> None:
    assert are_kin(one, other) is are_kin(other, one) is expected
