"""Names: which words of a statement are one, which words of a question may be, and when two are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.terms import MOST, NAME_CHARS, entity_key, keys_in, names_in


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("My sister Ana lives in Porto", ("Ana", "Porto")),
        ("Ana's birthday is on 3 May", ("Ana",)),
        ("I met Dr Moreira in New York on Monday", ("Moreira", "New York")),
        ("We decided to use PostgreSQL", ("PostgreSQL",)),
        ("Ana, Ben and Ana", ("Ana", "Ben")),
        ("nothing here", ()),
        ("I am", ()),
        ("", ()),
    ],
)
def test_names_are_known_by_their_capitals(text: str, names: tuple[str, ...]) -> None:
    assert names_in(text) == names


@pytest.mark.parametrize(
    ("one", "other"), [("Ana", "ana"), ("Ana's", "ANA"), ("São Paulo", "sao  paulo"), ("O’Brien", "o'brien")]
)
def test_two_spellings_are_one_name(one: str, other: str) -> None:
    assert entity_key(one) == entity_key(other) != ""


def test_a_question_may_mean_any_of_its_words_but_ordinary_ones() -> None:
    keys = keys_in("What does ana silva do?")
    assert "ana silva" in keys
    assert "ana" in keys
    assert "what" not in keys
    assert keys_in("") == ()


@given(st.text(max_size=500))
def test_every_name_in_a_text_is_found_by_asking_with_that_text(text: str) -> None:
    names = names_in(text)
    assert len(names) <= MOST
    assert all(0 < len(name) <= NAME_CHARS for name in names)
    assert len(keys_in(text)) <= 240
