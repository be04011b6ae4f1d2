"""Typed text as a plan, and as filters and words, seen from Friday 20 November 2026."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.dates import period_name
from core.search.query import (
    FilteredQuery,
    extract_filters,
    is_question,
    plan_any_word,
    plan_typed,
    remove_filters,
    text_for_next_page,
)
from core.store.query import SearchPlan, SearchQuery, TextKind
from core.store.sqlite.text_index import fts_expression
from core.text.normalize import MAX_QUERY_TERMS, clean_query
from core.types import Scope
from tests.fixtures.growth import assert_linear
from tests.fixtures.search_queries import with_fields
from tests.fixtures.tables import each_row

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
        found = fts_expression(SearchPlan(((clause._replace(is_excluded=False),),)))
        expression = f"{{text tools}} : ({found})"
        connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression,)).fetchall()


@given(TYPED)
def test_any_text_is_accepted_by_fts5(index: sqlite3.Connection, text: str) -> None:
    _ask(index, plan_typed(text))
    _ask(index, plan_any_word(text))


@pytest.mark.parametrize(
    "text", ['"' * 1_000_000, "a" * 1_000_000, "(" * 1_000_000, "a OR " * 250_000, "-" * 1_000_000]
)
def test_a_megabyte_is_planned_in_linear_time(index: sqlite3.Connection, text: str) -> None:
    def ask(query: str) -> None:
        _ask(index, plan_typed(query))
        _ask(index, plan_any_word(query))

    assert_linear(ask, text)


@each_row(
    ("typed", "expression"),
    [
        ("ferry to Porto", '("ferry" AND "to" AND "Porto")'),
        ("ferry OR boat -car", '("ferry") OR (("boat") NOT (("car")))'),
        ("ferry NOT car", '(("ferry") NOT (("car")))'),
        ("ferry -car", '(("ferry") NOT (("car")))'),
        ('"ferry boat" pre*', '("ferry boat" AND "pre"*)'),
        ('-"night train" ferry', '(("ferry") NOT (("night train")))'),
        # An operator in lower case is a word.
        ("this or that", '("this" AND "or" AND "that")'),
        # Punctuation stays inside the quotes.
        ("don't a-b c++", '("don\'t" AND "a-b" AND ("c++" OR "cu2bu2b"))'),
        ("--verbose", '("--verbose")'),
        # Scripts without spaces are asked for by their pairs.
        ("数据库", '("数据 据库")'),
        ("缓存", '("缓存")'),
        ("缓", '("缓")'),
        ("👍", '("u1f44d")'),
    ],
)
def test_typed_words_and_operators_become_an_expression_of_fts(typed: str, expression: str) -> None:
    assert fts_expression(plan_typed(typed)) == expression


def test_operators_without_operands_are_harmless() -> None:
    assert (
        fts_expression(plan_typed("OR ferry OR"))
        == fts_expression(plan_typed("AND ferry NOT"))
        == '("ferry")'
    )
    for text in ("OR", "NOT", "AND OR", '"', "*", "-", "%", "+++", "", " ", "-ferry", "NOT ferry"):
        assert not plan_typed(text).alternatives


def test_query_of_mixed_scripts_is_split_into_words_and_unspaced_runs() -> None:
    plan = plan_typed("修改youer服务端")
    assert fts_expression(plan) == '("修改" AND "youer" AND "服务 务端")'
    assert (
        fts_expression(plan_typed("ferry -修改redis")) == '(("ferry") NOT (("修改" AND "redis")))'
    )
    assert plan.highlights == ("修改", "youer", "服务端")


def test_full_width_letters_of_a_query_are_folded() -> None:
    full_width = "".join(chr(ord(letter) + 0xFEE0) for letter in "Redis")
    assert fts_expression(plan_typed(full_width)) == '("Redis")'


def test_any_word_query_drops_stop_words_unless_nothing_else_is_left() -> None:
    assert (
        fts_expression(plan_any_word("What did we decide about the ferry?"))
        == '("decide") OR ("ferry")'
    )
    assert fts_expression(plan_any_word("who are you")) == '("who") OR ("are") OR ("you")'
    assert fts_expression(plan_any_word("who are 你们")) == '("你们")'
    assert fts_expression(plan_any_word("服务端的缓存")) == '("服务") OR ("务端") OR ("缓存")'


def test_number_of_terms_of_a_query_is_bounded() -> None:
    assert (
        len(plan_typed(" ".join(f"w{n}" for n in range(1000))).alternatives[0]) == MAX_QUERY_TERMS
    )


def test_a_word_asked_for_again_and_again_is_looked_up_once() -> None:
    assert plan_typed("a1 OR " * 800 + "b2") == plan_typed("a1 OR b2")


def test_cleaned_query_has_no_null_characters_or_lone_surrogates() -> None:
    assert clean_query("a\0b\ud800c") == "a b?c"


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


NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ZONE = ZoneInfo("UTC")
PLAIN = SearchQuery(scopes=frozenset({Scope.account("telegram", "1")}))


def _day(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


def _read(text: str, **changes: Any) -> FilteredQuery:
    return extract_filters(with_fields(PLAIN, text=text, **changes), NOW, ZONE)


@each_row(
    ("text", "words", "fields"),
    [
        ("ferry role:assistant", "ferry", {"roles": ("assistant",)}),
        ("ROLE:Assistant ferry", "ferry", {"roles": ("assistant",)}),
        ("role:user,tool ferry", "ferry", {"roles": ("user", "tool")}),
        ("role:user role:tool title:a title:b", "", {"roles": ("tool",), "title": "b"}),
        ("role:user,assistant,tool x", "x", {"roles": ("user", "assistant", "tool")}),
        ("platform:telegram ferry", "ferry", {"platforms": ("telegram",)}),
        ("platform:Matrix ferry", "ferry", {"platforms": ("matrix",)}),
        ("ferry on:telegram on:discord", "ferry", {"platforms": ("telegram", "discord")}),
        ("on:telegram,discord", "", {"platforms": ("telegram", "discord")}),
        ("title:ferry when", "when", {"title": "ferry"}),
        ('title:"two words" when', "when", {"title": "two words"}),
        ("title:\u201ctwo words\u201d when", "when", {"title": "two words"}),
        ("role\uff1aassistant 缓存", "缓存", {"roles": ("assistant",)}),
        ("from:Ana ferry", "ferry", {"sender": "Ana"}),
        ('from:"Ana Maria" ferry', "ferry", {"sender": "Ana Maria"}),
        ("from:@ana", "", {"sender": "ana"}),
        ("from:me ferry", "ferry", {"roles": ("user",), "is_askers_own": True}),
        ("from:You ferry", "ferry", {"roles": ("assistant",)}),
        ("in:12 ferry", "ferry", {"session_id": 12}),
        ("in:#12", "", {"session_id": 12}),
        ("in:may ferry", "ferry", {"after": _day(2026, 5, 1), "before": _day(2026, 6, 1)}),
        ("before:2026-05-01 ferry", "ferry", {"before": _day(2026, 5, 1)}),
        ("before:last week ferry", "ferry", {"before": _day(2026, 11, 9)}),
        ('ferry before:"last week"', "ferry", {"before": _day(2026, 11, 9)}),
        ("until:may ferry", "ferry", {"before": _day(2026, 6, 1)}),
        ("after:may 2025 budget", "budget", {"after": _day(2025, 5, 1)}),
        ("since:yesterday", "", {"after": _day(2026, 11, 19)}),
        ("after:two weeks ago role:user", "", {"after": _day(2026, 11, 2), "roles": ("user",)}),
        ("on:yesterday ferry", "ferry", {"after": _day(2026, 11, 19), "before": _day(2026, 11, 20)}),
        ("during:last month ferry", "ferry", {"after": _day(2026, 10, 1), "before": _day(2026, 11, 1)}),
        ("after:may before:july x", "x", {"after": _day(2026, 5, 1), "before": _day(2026, 7, 1)}),
        ("after:may after:july before:2027 before:october x", "x", {"after": _day(2026, 7, 1),
                                                                  "before": _day(2026, 10, 1)}),
        ("page:2 ferry", "ferry", {"page": 2}),
        ("ferry Page:#3 before:may", "ferry", {"page": 3, "before": _day(2026, 5, 1)}),
        ("around:1234", "", {"around": 1234}),
        ("in:7 around:12", "", {"session_id": 7, "around": 12}),
        ('ferry "role:assistant"', 'ferry "role:assistant"', {}),
        ("https://x.org/in:12?title:a", "https://x.org/in:12?title:a", {}),
        ("foo:bar C:\\temp 12:30", "foo:bar C:\\temp 12:30", {}),
        ("what did we decide in May?", "what did we decide in May?", {}),
        ("ferry", "ferry", {}),
    ],
)  # fmt: skip
def test_query_is_divided_into_filters_and_words(
    text: str, words: str, fields: dict[str, Any]
) -> None:
    found = _read(text)
    assert found.notes == ()
    assert " ".join(found.query.text.split()) == words
    assert replace(found.query, text="") == with_fields(PLAIN, **fields)


@each_row(
    ("text", "told"),
    [
        ("role:banana ferry", "isn't a role"),
        ("before:banana ferry", "isn't a date"),
        ("after:31 february", "isn't a date"),
        ("in:here ferry", "is neither the number of a session nor a time"),
        ("in:\u0663 ferry", "is neither the number"),
        ("on:pluto ferry", "neither a platform nor a date"),
        ("platform:a/b ferry", "isn't a platform"),
        ("title: ferry", "has no value"),
        ('from:"" ferry', "has no value"),
        ("page:0 ferry", "isn't the number of a page"),
        ("page:two ferry", "isn't the number of a page"),
        ("around:here ferry", "isn't the number of a message"),
        ("-role:user ferry", "can't negate a filter"),
    ],
)
def test_unknown_filter_stays_a_word_and_is_reported(text: str, told: str) -> None:
    found = _read(text)
    assert told in str(found.notes[0])
    assert len(found.notes) == 1
    assert found.query.text.split()[-1] in text
    assert (
        found.query.text.split()[0].lstrip("-").split(":")[0] in text.split(":")[0]
        or "title" in text
    )


def test_search_options_and_typed_filters_are_combined() -> None:
    found = _read(
        "ferry before:may from:ana", before=_day(2026, 3, 1), after=_day(2026, 1, 1), sender="Ben"
    )
    assert found.query == with_fields(
        PLAIN, text=found.query.text, before=_day(2026, 3, 1), after=_day(2026, 1, 1), sender="ana"
    )


def test_plain_prose_of_a_query_has_no_filters() -> None:
    query = replace(PLAIN, text="see role:assistant before:may", kind=TextKind.PLAIN)
    assert extract_filters(query, NOW, ZONE) == FilteredQuery(query)


@each_row(
    ("text", "turned"),
    [
        ("", "page:2"),
        ("ferry lisbon", "page:2 ferry lisbon"),
        ("page:2", "page:3"),
        ("ferry page:2 lisbon", "page:3 ferry  lisbon"),
        ('PAGE:"9" from:"Ana Maria" x', 'page:10 from:"Ana Maria" x'),
        ('ferry "page:2" -page:3 page:x page:0', 'page:2 ferry "page:2" -page:3 page:x page:0'),
        ("page:2 x page:7", "page:8 x"),
        ('"night ferry before:last', 'page:2 "night ferry before:last'),
    ],
)
def test_next_page_query_differs_only_in_its_page_number(text: str, turned: str) -> None:
    assert text_for_next_page(text) == turned
    before, after = _read(text).query, _read(turned).query
    assert after.limits.page == before.limits.page + 1
    assert with_fields(after, text="", page=1) == with_fields(before, text="", page=1)
    assert after.text.split() == before.text.split()


def test_query_without_its_filters_keeps_only_the_search_words() -> None:
    query = _read(
        'x on:telegram title:ferry in:7 from:Ana role:tool after:may before:"3 july" page:3'
    ).query
    assert remove_filters(query) == replace(PLAIN, text=query.text)


_PARTS = [
    "role:", "role:tool", "-on:", "on:discord", "title:", '"', 'title:"a b"', "from:me", "from:\0", "in:", "in:99",
    "in:9999999999999999999", "before:", "last", "week", "after:0001-01-01", "before:9999-12-31", "ferry", "\ud800",
    "since:99999 years ago", "：", "during:may", "OR", "-x", "page:2", "page:5", "page:", "around:9", "around:x",
]  # fmt: skip
NARROWED = st.one_of(
    st.text(max_size=40), st.lists(st.sampled_from(_PARTS), max_size=9).map(" ".join)
)


@given(NARROWED)
def test_typed_query_is_read_with_short_notes_and_never_raises(text: str) -> None:
    found = _read(text)
    assert len(found.notes) <= 3
    assert all(
        "\n" not in note and note.encode() and len(note) < 250 for note in map(str, found.notes)
    )
    assert _read(text_for_next_page(text)).query.limits.page == found.query.limits.page + 1
    assert set(found.query.text) <= {*text, " "}


@each_row(
    "text",
    [
        '"' * 1_000_000,
        "in:" * 300_000,
        "before:a " * 120_000,
        'title:"' * 150_000,
        "page:1 " * 140_000,
    ],
)
def test_a_megabyte_is_read_in_linear_time(text: str) -> None:
    assert_linear(lambda part: (_read(part), text_for_next_page(part)), text)


def test_word_of_signs_ends_the_value_of_a_time_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    values: list[str] = []

    def read_period(value: str, now: datetime, zone: ZoneInfo) -> None:
        values.append(value)

    monkeypatch.setattr(period_name, "read_period", read_period)
    _read("since:colder days | a | b | c")
    assert values == ["colder days", "colder"]
