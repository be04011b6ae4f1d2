"""Which forms of a word are meant by it, and that no other word is."""

from __future__ import annotations

import pytest

from core.search.query import inflected, parse
from core.text.variants import forms_of


@pytest.mark.parametrize(
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
def test_number_and_case_are_forms(word: str, form: str) -> None:
    assert form in forms_of(word)


@pytest.mark.parametrize(
    ("word", "other"),
    [("reading", "read"), ("news", "new"), ("porto", "portal"), ("mars", "mar"), ("анна", "антон"), ("ana", "an")],
)
def test_another_word_is_none(word: str, other: str) -> None:
    assert other not in forms_of(word)
    assert forms_of(word)[0] == word


def test_what_is_typed_with_operators_or_signs_is_meant_as_it_stands() -> None:
    for text in ('"ferry"', "ferry OR boat", "ferry -boat", "ferr*", "波尔图", "core/store.py", "🦜", ""):
        assert inflected(text) == parse(text)
    assert inflected("Ferry Köln").terms == ("ferry|ferrys|ferryes|ferries", "koln|kolns|kolnes")
