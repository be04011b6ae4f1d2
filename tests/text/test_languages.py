"""Stems and stop words of languages besides English."""

# ruff: noqa: RUF001
from __future__ import annotations

import pytest

from core.search.query import any_of
from core.text.languages import script_form, script_stem, script_stop_words
from core.text.normalize import fold, indexed_words, language_data
from core.text.terms import query_terms, terms_of


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("وصلت الكتب إلى المكتبة وبالسيارة", "كتب مكتبة سيارة"),
        ("والاستحواذات", "استحواذ"),
        ("إلى الإسكندرية", "اسكندريه"),  # hamza, teh marbuta
        ("مُحَمَّدٌ كتـــاب", "محمد كتاب"),  # vowel signs, tatweel
        ("мы ездили с Машей в Лиссабон за книгами", "маша лиссабона книги ездила"),
        ("Πήγαμε με τα πλοία στη Θεσσαλονίκη", "πλοιο Θεσσαλονικης πηγαμε"),
        ("लड़कियों ने किताबें खरीदी", "लड़की किताब खरीदी"),
        ("वहाँ चाँद", "चांद"),
    ],
)
def test_forms_of_a_word_are_one_in_scripts_of_their_own(said: str, asked: str) -> None:
    assert set(query_terms(asked)) <= set(terms_of(said))


def test_words_that_only_ask_or_join_are_left_out() -> None:
    assert query_terms("كم عدد الكتب التي في المكتبة؟") == query_terms("عدد كتب مكتبة")
    assert query_terms("Когда мы были в Лиссабоне?") == query_terms("Лиссабон")
    assert query_terms("Πότε ήταν το ταξίδι;") == query_terms("ταξίδι")
    assert query_terms("यह किताब कब खरीदी?") == query_terms("किताब खरीदी")
    assert query_terms("מתי היה הטיול שלנו?") == query_terms("הטיול")
    assert list(any_of("где была книга").terms) == ["книга"]
    assert list(any_of("где я").terms) == ["где", "я"]


@pytest.mark.parametrize("digits", ["٢٠٢٣", "۲۰۲۳", "२०२३", "২০২৩", "๒๐๒๓"])
def test_digits_of_other_scripts_are_digits(digits: str) -> None:
    assert fold(digits) == indexed_words(digits) == "2023"
    assert query_terms(digits) == ["2023"]


def test_each_stop_word_is_one_as_it_is_typed() -> None:
    for script in language_data("languages")["scripts"].values():
        for word in script["words"].split():
            assert script_stem(word) == "", word
            assert script_form(word) in script_stop_words()


def test_other_letters_keep_their_word() -> None:
    assert script_stem("ლისაბონი") == "ლისაბონი"
    assert terms_of("ספרים") == ["ספרים"]
