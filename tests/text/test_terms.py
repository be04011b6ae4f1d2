"""The terms that ranking counts."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.search.results import Highlighter
from core.text.normalize import indexed_words
from core.text.terms import asks_when, date_terms, marks_of, moment_terms, query_terms, terms_of


def test_stopwords_go_and_forms_meet() -> None:
    assert terms_of("We DECIDED to take the ferries, didn't we?") == terms_of("decide taking ferry")
    assert query_terms("What did we decide about the ferry, the ferry?") == ["decid", "ferri"]
    assert query_terms("who are you") == []


def test_accents_and_width_do_not_count() -> None:
    assert terms_of("Café Résumé") == terms_of("cafe resume")
    assert terms_of("\uff32edis") == terms_of("redis")


@pytest.mark.parametrize(
    ("written", "term"),
    [
        ("#holiday!", "u23holiday"),
        ("in C++17", "cu2bu2b"),
        ("(C#)", "cu23"),
        ("uses .NET", "u2enet"),
        ("我用C++写", "cu2bu2b"),
    ],
)
def test_a_sign_that_belongs_to_a_word_makes_a_term_of_its_own(written: str, term: str) -> None:
    assert term in terms_of(written)
    assert term in indexed_words(written)
    assert terms_of(written)[0] in ("holidai", "c", "us", "net")


@pytest.mark.parametrize(
    "written", ["# title", "a.b", "...and", "x += 1", "site/#top", "&#39;", "2 + + 3", "end.", "3 .5"]
)
def test_other_signs_belong_to_no_word(written: str) -> None:
    assert not [term for term in terms_of(written) if "u2" in term]


def test_unspaced_scripts_count_by_pairs_and_emoji_by_themselves() -> None:
    assert terms_of("修改youer 👍") == [*terms_of("youer"), "修改", "修", "改", "u1f44d"]
    assert terms_of("数据库 缓") == ["数据", "据库", "数", "据", "库", "缓"]


def test_questions_in_unspaced_scripts_lose_what_only_asks() -> None:
    assert query_terms("Redis缓存什么时候过期？") == [*terms_of("redis"), "缓存", "过期", "缓", "存", "期"]
    assert query_terms("什么时候？") == terms_of("什么时候？")
    assert len(query_terms("北京上海广州深圳" * 20 + "去")) <= 64
    assert all(len(term) == 2 for term in query_terms("甲乙丙丁戊己庚辛" * 20)[:8])


def test_a_day_in_words() -> None:
    assert date_terms(date(2023, 5, 8)) == tuple(terms_of("monday 8 may 2023"))


def test_when_is_asked() -> None:
    assert asks_when("When did she go?")
    assert asks_when("On what date was it, and how long?")
    assert not asks_when("What did she do whenever?")
    assert all(map(asks_when, ("什麼時候？", "フェリーはいつ", "언제였지?", "เมื่อไหร่", "９月何日")))
    assert not asks_when("猫在哪里？")
    assert {"yesterdai", "mondai", "月", "요일"} <= moment_terms()


def test_every_form_is_marked() -> None:
    marker = Highlighter(marks_of(query_terms("decide going ferry")))
    text = "She went, they decided: ferries and a ferry"
    assert [text[start:end] for start, end in marker.spans(text)] == ["went", "decided", "ferries", "ferry"]


def test_a_character_is_marked_where_it_is_no_part_of_a_word() -> None:
    marks = marks_of(query_terms("家长会是几点，给猫的药"))
    assert {"家长", "长会", "猫", "药"} <= set(marks)
    assert not {"家", "长"} & set(marks)


@given(st.text())
def test_any_text_has_terms(text: str) -> None:
    assert all(term and not any(letter.isspace() for letter in term) for term in terms_of(text))
    assert len(query_terms(text * 50)) <= 64
