"""Thousands of histories and queries: every route of recall against the slow reference, other ones
each time."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.search import recall
from core.store.search import text_search
from core.store.sqlite import text_index
from tests.fixtures.history_strategies import Tale
from tests.fixtures.recall_checks import judge_often, judge_question, judge_typed, judge_wordless
from tests.search.test_reference import (
    DAMAGES,
    MIXED,
    PHASES,
    QUESTIONS,
    STALE,
    TYPED,
    WORDLESS,
    compare,
    compare_damaged,
)

pytestmark = pytest.mark.timeout(3600)

LONG = settings(
    max_examples=500,
    deadline=None,
    database=None,
    print_blob=True,
    phases=PHASES,
    suppress_health_check=list(HealthCheck),
)


@LONG
@given(TYPED)
async def test_recall_of_typed_queries_agrees_with_the_slow_reference(tale: Tale) -> None:
    await compare(tale, judge_typed)


@LONG
@given(TYPED)
async def test_recall_of_many_matches_agrees_with_the_slow_reference(
    monkeypatch: pytest.MonkeyPatch, tale: Tale
) -> None:
    monkeypatch.setattr(text_index, "NEWEST_RANKED", 2)
    await compare(tale, judge_often)


@LONG
@given(QUESTIONS)
async def test_recall_of_questions_agrees_with_the_slow_reference(tale: Tale) -> None:
    await compare(tale, judge_question)


@LONG
@given(QUESTIONS)
async def test_questions_about_unindexed_messages_are_answered_like_the_reference(
    monkeypatch: pytest.MonkeyPatch, tale: Tale
) -> None:
    monkeypatch.setattr(text_search, "TAIL_MESSAGES", 6)
    await compare(tale, judge_question)


@LONG
@given(WORDLESS)
async def test_recall_without_words_agrees_with_the_slow_reference(tale: Tale) -> None:
    await compare(tale, judge_wordless)


@LONG
@given(MIXED, st.sampled_from(DAMAGES))
async def test_recall_with_damaged_indexes_agrees_with_the_slow_reference(
    tale: Tale, damage: str
) -> None:
    await compare_damaged(tale, damage)


@LONG
@given(MIXED)
async def test_recall_by_scans_agrees_with_the_slow_reference(
    monkeypatch: pytest.MonkeyPatch, tale: Tale
) -> None:
    monkeypatch.setattr(recall, "STEPS_BEFORE_SEARCH", 0)
    await compare_damaged(tale, STALE)
