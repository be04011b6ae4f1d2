"""What was meant by a word with a slip, and which words are of one family."""

from __future__ import annotations

from random import Random

import pytest

from core.text.variants import are_kin, meant
from tests.bench.hurry import slip


@pytest.mark.parametrize(
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
def test_the_likelihood_of_a_slip(typed: str, word: str, likelihood: float) -> None:
    assert meant(typed)[word] == likelihood


def test_the_first_letter_is_seldom_wrong() -> None:
    assert meant("kisbon")["lisbon"] < meant("lisvon")["lisbon"]
    assert meant("isbon")["lisbon"] < meant("lisbn")["lisbon"]


def test_a_slip_in_cyrillic_is_undone_too() -> None:
    for typed in ("превет", "приввет", "рпивет", "привт", "приветы"):
        assert "привет" in meant(typed), typed


def test_every_slip_that_the_benchmark_makes_is_undone() -> None:
    chance = Random(3)
    for word in ("ferry", "harbour", "grandmother", "committee"):
        for typed in {slip(word, chance) for _ in range(100)} - {word}:
            assert word in meant(typed)


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
