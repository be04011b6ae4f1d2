"""What was meant by a word with a slip."""

from __future__ import annotations

from random import Random

import pytest

from core.text.spelling import meant, slips
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


def test_every_word_meant_is_one_slip_away() -> None:
    for word in ("a", "it", "harbour", "bookkeeper"):
        assert word not in meant(word)
        assert all(slips(word, other, 1) == 1 for other in meant(word) if other)


def test_every_slip_that_the_benchmark_makes_is_undone() -> None:
    chance = Random(3)
    for word in ("ferry", "harbour", "grandmother", "committee"):
        for typed in {slip(word, chance) for _ in range(100)} - {word}:
            assert word in meant(typed)
