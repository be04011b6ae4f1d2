"""What people type: every text gives expressions that FTS5 accepts, and operators mean what they say."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.search.query import any_of, is_question, parse
from core.store.query import SearchPlan
from core.store.sqlite.text_index import expression_of
from core.text.normalize import LIMIT_TERMS, clean

TYPED = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            [
                "ferry",
                "OR",
                "AND",
                "NOT",
                "-",
                '"',
                "*",
                "(",
                ")",
                "a-b",
                "c++",
                "don't",
                "foo:bar",
                "^x",
                "{y}",
                "缓存",
                "修改youer服务端",
                "👍",
                "ก",
                "NEAR(a b, 3)",
                "100%",
                "�",
                "\x00",
                "-x",
                '"two words"',
                "pre*",
                "ﷺ",
                "😀*",
            ]
        ),
        max_size=12,
    ).map(" ".join),
)


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, tools, tokenize = 'unicode61')")
    yield connection
    connection.close()


def _ask(connection: sqlite3.Connection, plan: SearchPlan) -> None:
    for clause in (clause for clauses in plan.alternatives for clause in clauses):
        found = expression_of(SearchPlan(((clause._replace(is_excluded=False),),)))
        expression = f"{{text tools}} : ({found})"
        connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression,)).fetchall()


@settings(max_examples=200, deadline=None)
@given(TYPED)
def test_any_text_is_accepted_by_fts5(index: sqlite3.Connection, text: str) -> None:
    _ask(index, parse(text))
    _ask(index, any_of(text))


@pytest.mark.parametrize(
    "text", ['"' * 1_000_000, "a" * 1_000_000, "(" * 1_000_000, "a OR " * 250_000, "-" * 1_000_000]
)
def test_a_megabyte_is_planned_in_an_instant(index: sqlite3.Connection, text: str) -> None:
    started = time.perf_counter()
    _ask(index, parse(text))
    _ask(index, any_of(text))
    assert time.perf_counter() - started < 1


def test_words_are_all_required() -> None:
    assert expression_of(parse("ferry to Porto")) == '("ferry" AND "to" AND "Porto")'


def test_operators() -> None:
    assert expression_of(parse("ferry OR boat -car")) == '("ferry") OR (("boat") NOT (("car")))'
    assert expression_of(parse("ferry NOT car")) == expression_of(parse("ferry -car"))
    assert expression_of(parse('"ferry boat" pre*')) == '("ferry boat" AND "pre"*)'
    assert expression_of(parse('-"night train" ferry')) == '(("ferry") NOT (("night train")))'


def test_operators_without_operands_are_harmless() -> None:
    assert expression_of(parse("OR ferry OR")) == expression_of(parse("AND ferry NOT")) == '("ferry")'
    for text in ("OR", "NOT", "AND OR", '"', "*", "-", "%", "+++", "", " ", "-ferry", "NOT ferry"):
        assert not parse(text).alternatives


def test_an_operator_in_lower_case_is_a_word() -> None:
    assert expression_of(parse("this or that")) == '("this" AND "or" AND "that")'


def test_punctuation_stays_inside_the_quotes() -> None:
    assert expression_of(parse("don't a-b c++")) == '("don\'t" AND "a-b" AND ("c++" OR "cu2bu2b"))'
    assert expression_of(parse("--verbose")) == '("--verbose")'


def test_scripts_without_spaces_are_asked_for_by_their_pairs() -> None:
    assert expression_of(parse("数据库")) == '("数据 据库")'
    assert expression_of(parse("缓存")) == '("缓存")'
    assert expression_of(parse("缓")) == '("缓")'
    assert expression_of(parse("👍")) == '("u1f44d")'


def test_mixed_scripts_are_taken_apart() -> None:
    plan = parse("修改youer服务端")
    assert expression_of(plan) == '("修改" AND "youer" AND "服务 务端")'
    assert expression_of(parse("ferry -修改redis")) == '(("ferry") NOT (("修改" AND "redis")))'
    assert plan.terms == ("修改", "youer", "服务端")


def test_full_width_is_folded() -> None:
    full_width = "".join(chr(ord(letter) + 0xFEE0) for letter in "Redis")
    assert expression_of(parse(full_width)) == '("Redis")'


def test_any_of_drops_stopwords_unless_nothing_is_left() -> None:
    assert expression_of(any_of("What did we decide about the ferry?")) == '("decide") OR ("ferry")'
    assert expression_of(any_of("who are you")) == '("who") OR ("are") OR ("you")'
    assert expression_of(any_of("who are 你们")) == '("你们")'
    assert expression_of(any_of("服务端的缓存")) == '("服务") OR ("务端") OR ("缓存")'


def test_many_terms_are_bounded() -> None:
    assert len(parse(" ".join(f"w{n}" for n in range(1000))).alternatives[0]) == LIMIT_TERMS


def test_clean_takes_out_what_sqlite_cannot_take() -> None:
    assert clean("a\0b\ud800c") == "a b?c"


def test_three_plain_words_or_a_question_mark_make_a_question() -> None:
    for text in (
        "whens the ferry", "Where is it", "what's Ana's address", "caroline support group", "the blue ferry?",
        "Dinner, at 7 (or later)", "what of core/search/recall.py?", "图书馆在哪?", "where is 图书馆?",
    ):  # fmt: skip
        assert is_question(text), text
    for text in (
        "ferry lisbon", "a OR b c", "a -b c", '"a b c"', "ferr* to porto", "see core/search/recall.py now",
        "912 345 678", "where is 图书馆", "图书馆在哪", "猫?", "",
    ):  # fmt: skip
        assert not is_question(text), text
