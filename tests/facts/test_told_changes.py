"""A change in words that no rule knows: a helper model closes what it replaces."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bench.changes import judge

pytestmark = pytest.mark.slow

ROWS: list[dict[str, Any]] = [
    {
        "lang": "en",
        "kind": "habit",
        "said": [
            [0, "the book circle meets in the Heron room"],
            [30, "our book circle sits in the Osprey room since Monday"],
        ],
        "question": "in which room is the book circle?",
        "now": "Osprey",
        "old": "Heron",
    },
    {
        "lang": "en",
        "kind": "ended",
        "said": [
            [0, "we keep three hens behind the shed"],
            [40, "the fox had all our hens, the shed is silent"],
        ],
        "question": "do we keep hens?",
        "now": "fox",
        "old": "three hens",
    },
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["kind"]))
async def test_answer_begins_with_the_fact_that_the_helper_model_did_not_close(
    row: dict[str, Any],
) -> None:
    verdict = await judge(row, has_helper=True)
    assert verdict.is_right
    assert "no longer so" in verdict.answer


async def test_end_of_a_fact_in_words_unknown_to_the_rules_is_marked_only_with_a_helper_model() -> (
    None
):
    verdict = await judge(ROWS[1], has_helper=False)
    assert "no longer so" not in verdict.answer


async def test_answer_shows_a_still_valid_fact_together_with_a_newer_one() -> None:
    row = {
        "lang": "en",
        "kind": "both_hold",
        "said": [[0, "we keep three hens"], [10, "we also keep a goat called Blanche"]],
        "question": "which animals do we keep?",
        "now": "hens|goat",
        "all": ["hens", "goat"],
    }
    verdict = await judge(row, has_helper=True)
    assert verdict.is_right
    assert "no longer so" not in verdict.answer
