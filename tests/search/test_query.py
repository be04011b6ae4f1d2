"""What people type: every text gives expressions that FTS5 accepts, and operators mean what they say."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.search.query import any_of, is_question, parse, route
from core.store.query import Clause, Phrase, SearchPlan
from core.store.sqlite.text_index import single_expression
from core.text.terms import LIMIT_TERMS, clean

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
TABLES = {"words": "words", "trigram": "runs", "pairs": "pairs"}


@pytest.fixture(scope="module")
def indexes() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, tools, tokenize = 'unicode61')")
    connection.execute("CREATE VIRTUAL TABLE runs USING fts5(text, tools, tokenize = 'trigram')")
    connection.execute("CREATE VIRTUAL TABLE pairs USING fts5(text, tools, tokenize = 'unicode61')")
    yield connection
    connection.close()


def _ask(connection: sqlite3.Connection, plan: SearchPlan) -> None:
    for clause in (clause for clauses in plan.alternatives for clause in clauses):
        for part in clause.parts:
            found = single_expression(SearchPlan(((Clause((part,)),),)))
            assert found is not None
            path, expression = found
            table = TABLES[path]
            connection.execute(
                f"SELECT rowid FROM {table} WHERE {table} MATCH ?", (f"{{text tools}} : ({expression})",)
            ).fetchall()


@settings(max_examples=200, deadline=None)
@given(TYPED)
def test_any_text_is_accepted_by_fts5(indexes: sqlite3.Connection, text: str) -> None:
    _ask(indexes, parse(text))
    _ask(indexes, any_of(text))


@pytest.mark.parametrize(
    "text", ['"' * 1_000_000, "a" * 1_000_000, "(" * 1_000_000, "a OR " * 250_000, "-" * 1_000_000]
)
def test_a_megabyte_is_planned_in_an_instant(indexes: sqlite3.Connection, text: str) -> None:
    started = time.perf_counter()
    _ask(indexes, parse(text))
    _ask(indexes, any_of(text))
    assert time.perf_counter() - started < 1


def test_words_are_all_required() -> None:
    assert single_expression(parse("ferry to Porto")) == ("words", '("ferry" AND "to" AND "Porto")')


def test_operators() -> None:
    assert single_expression(parse("ferry OR boat -car")) == ("words", '("ferry") OR (("boat") NOT (("car")))')
    assert single_expression(parse("ferry NOT car")) == single_expression(parse("ferry -car"))
    assert single_expression(parse('"ferry boat" pre*')) == ("words", '("ferry boat" AND "pre"*)')
    assert single_expression(parse('-"night train" ferry')) == ("words", '(("ferry") NOT (("night train")))')


def test_operators_without_operands_are_harmless() -> None:
    assert (
        single_expression(parse("OR ferry OR")) == single_expression(parse("AND ferry NOT")) == ("words", '("ferry")')
    )
    for text in ("OR", "NOT", "AND OR", '"', "*", "-", "%", "+++", "", " ", "-ferry", "NOT ferry"):
        assert not parse(text).alternatives


def test_an_operator_in_lower_case_is_a_word() -> None:
    assert single_expression(parse("this or that")) == ("words", '("this" AND "or" AND "that")')


def test_punctuation_stays_inside_the_quotes() -> None:
    assert single_expression(parse("don't a-b c++")) == ("words", '("don\'t" AND "a-b" AND ("c++" OR "cu2bu2b"))')
    assert single_expression(parse("--verbose")) == ("words", '("--verbose")')


def test_three_routes() -> None:
    assert [route("words", "ferry"), route("run", "数据库"), route("run", "数据"), route("symbol", "👍")] == [
        "words",
        "trigram",
        "pairs",
        "pairs",
    ]
    assert single_expression(parse("数据库")) == ("trigram", '("数据库")')
    assert single_expression(parse("缓存")) == ("pairs", '("缓存")')
    assert single_expression(parse("缓")) == ("pairs", '("缓")')


def test_mixed_scripts_are_taken_apart() -> None:
    plan = parse("修改youer服务端")
    assert single_expression(plan) is None
    assert plan.alternatives == (
        (
            Clause(
                (("pairs", Phrase(("修改",))), ("words", Phrase(("youer",))), ("trigram", Phrase(("服务端",)))),
                marks=("修改", "youer", "服务端"),
            ),
        ),
    )
    assert plan.terms == ("修改", "youer", "服务端")


def test_full_width_is_folded() -> None:
    full_width = "".join(chr(ord(letter) + 0xFEE0) for letter in "Redis")
    assert single_expression(parse(full_width)) == ("words", '("Redis")')


def test_any_of_drops_stopwords_unless_nothing_is_left() -> None:
    assert single_expression(any_of("What did we decide about the ferry?")) == ("words", '("decide") OR ("ferry")')
    assert single_expression(any_of("who are you")) == ("words", '("who") OR ("are") OR ("you")')
    assert single_expression(any_of("who are 你们")) == ("pairs", '("你们")')
    assert single_expression(any_of("服务端的缓存")) == ("pairs", '("服务") OR ("务端") OR ("缓存")')


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
