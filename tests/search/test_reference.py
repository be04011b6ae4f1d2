"""Every route of recall gives what a slow reference finds that scans all that was said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from core.store.search import text_search
from core.store.sqlite import text_index
from tests.fixtures.history import Stage, staged
from tests.fixtures.history_strategies import (
    Tale,
    Wish,
    questions,
    tales,
    typed_wishes,
    wordless,
    words_of_any_kind,
)
from tests.fixtures.recall_checks import (
    judge_damaged,
    judge_often,
    judge_question,
    judge_typed,
    judge_wordless,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# To explain a failure hypothesis traces every line, which takes longer than to find it.
PHASES = (Phase.generate, Phase.shrink)
QUICK = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    phases=PHASES,
    suppress_health_check=list(HealthCheck),
)
INDEXES = ("messages_fts", "chunks_fts")
BREAKING = (
    "UPDATE {index}_data SET block = x'ffffffffffffffffffff' WHERE id > 10",
    "UPDATE {index}_data SET block = x'ffffffffffffffffffff'",
    "DELETE FROM {index}_data WHERE id > 10",
    "UPDATE {index}_config SET v = 99 WHERE k = 'version'",
    "DROP TABLE {index}_idx",
)
STALE = "INSERT INTO state_meta VALUES ('index_stale', '1')"
DAMAGES = (
    STALE,
    "UPDATE state_meta SET value = '0' WHERE key = 'index_version'",
    *(statement.format(index=index) for index in INDEXES for statement in BREAKING),
)

TYPED = tales(typed_wishes)
QUESTIONS = tales(questions)
WORDLESS = tales(wordless)
MIXED = tales(words_of_any_kind, ("halved", "tended"), most=3)


async def compare(tale: Tale, judge: Callable[[Stage, Wish], Awaitable[object]]) -> None:
    """Tells the history, asks for each of the wishes, and looks whether all indexes still agree
    with the messages."""
    async with staged(tale.history) as stage:
        for wish in tale.wishes:
            await judge(stage, wish)
        assert await stage.recall.verify() == []


async def compare_damaged(tale: Tale, damage: str) -> None:
    """Asks in a store whose index is broken."""
    async with staged(tale.history, damage) as stage:
        for wish in tale.wishes:
            await judge_damaged(stage, wish)


@QUICK
@given(TYPED)
async def test_typed_query_finds_what_the_slow_reference_finds(tale: Tale) -> None:
    await compare(tale, judge_typed)


@QUICK
@given(TYPED)
async def test_query_with_many_matches_finds_what_the_slow_reference_finds(
    monkeypatch: pytest.MonkeyPatch, tale: Tale
) -> None:
    monkeypatch.setattr(text_index, "NEWEST_RANKED", 2)
    monkeypatch.setattr(text_index, "NEWEST_UNSPACED_RANKED", 2)
    await compare(tale, judge_often)


@QUICK
@given(QUESTIONS)
async def test_recall_of_a_question_agrees_with_the_slow_reference_search(tale: Tale) -> None:
    await compare(tale, judge_question)


@QUICK
@given(QUESTIONS)
async def test_a_question_asked_before_the_chunks_are_made_finds_all(
    monkeypatch: pytest.MonkeyPatch, tale: Tale
) -> None:
    monkeypatch.setattr(text_search, "TAIL_MESSAGES", 6)
    await compare(tale, judge_question)


@QUICK
@given(WORDLESS)
async def test_recall_without_words_lists_messages_like_the_slow_reference(tale: Tale) -> None:
    await compare(tale, judge_wordless)


@pytest.mark.sqlite
@QUICK
@given(MIXED, st.sampled_from(DAMAGES))
async def test_recall_over_a_damaged_index_answers_like_the_reference(
    tale: Tale, damage: str
) -> None:
    await compare_damaged(tale, damage)
