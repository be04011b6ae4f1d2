"""The terms that ranking counts."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from core.marker import Marker
from core.terms import asks_when, date_terms, marks_of, moment_terms, query_terms, terms_of


def test_stopwords_go_and_forms_meet() -> None:
    assert terms_of("We DECIDED to take the ferries, didn't we?") == terms_of("decide taking ferry")
    assert query_terms("What did we decide about the ferry, the ferry?") == ["decid", "ferri"]
    assert query_terms("who are you") == []


def test_accents_and_width_do_not_count() -> None:
    assert terms_of("Café Résumé") == terms_of("cafe resume")
    assert terms_of("\uff32edis") == terms_of("redis")


def test_unspaced_scripts_count_by_pairs_and_emoji_by_themselves() -> None:
    assert terms_of("修改youer 👍") == [*terms_of("youer"), "修改", "u1f44d"]
    assert terms_of("数据库 缓") == ["数据", "据库", "缓"]


def test_a_day_in_words() -> None:
    assert date_terms(date(2023, 5, 8)) == tuple(terms_of("monday 8 may 2023"))


def test_when_is_asked() -> None:
    assert asks_when("When did she go?")
    assert asks_when("On what date was it, and how long?")
    assert not asks_when("What did she do whenever?")
    assert {"yesterdai", "mondai"} <= moment_terms()


def test_every_form_is_marked() -> None:
    marker = Marker(marks_of(query_terms("decide going ferry")))
    text = "She went, they decided: ferries and a ferry"
    assert [text[start:end] for start, end in marker.spans(text)] == ["went", "decided", "ferries", "ferry"]


@given(st.text())
def test_any_text_has_terms(text: str) -> None:
    assert all(term and not any(letter.isspace() for letter in term) for term in terms_of(text))
    assert len(query_terms(text * 50)) <= 64
