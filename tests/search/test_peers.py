"""The comparison with peers: how each memory is judged."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bench import recall
from tests.bench.peers import any_word, forget_in_mneme, judge_mneme, judge_searcher

pytestmark = pytest.mark.slow

ROW: dict[str, Any] = {
    "lang": "en",
    "kind": "moved",
    "said": [[0, "I live in Porto near the river"], [30, "I moved, I live in Faro now"]],
    "question": "where do I live near the river?",
    "now": "Faro",
    "old": "Porto",
}


def test_plain_text_search_baseline_ranks_an_outdated_statement_with_closer_words_first() -> None:
    make = recall.SEARCHERS["FTS5, any word"]
    assert judge_searcher([ROW], make) == (0, 1)
    assert judge_searcher([{**ROW, "question": "where did I move?", "now": "moved"}], make) == (
        1,
        0,
    )


def test_gateway_is_judged_by_the_first_line_of_its_answer() -> None:
    assert judge_mneme([{**ROW, "question": "where do I live?"}]) == (1, 0)


def test_question_becomes_a_query_for_any_of_its_content_words() -> None:
    assert any_word("Where does Ana live?") == "ana OR live"


async def test_forgotten_messages_are_in_no_result_and_no_file() -> None:
    results, files = await forget_in_mneme()
    assert results.startswith("0 of ")
    assert files.startswith("0 of ")
