"""The benchmark of the first screen: when evidence counts as shown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bench.recall import RecallSet
from tests.bench.screen import measure

pytestmark = pytest.mark.slow


def set_of(evidence: str) -> RecallSet:
    """A set with one question, to which the message with the id `evidence` is the answer."""
    sessions: list[dict[str, Any]] = [
        {
            "id": f"s{number}",
            "started_at": number * 86_400.0,
            "messages": [
                {
                    "id": f"m{number}",
                    "role": "user",
                    "speaker": "Ana",
                    "text": text,
                    "ts": number * 86_400.0,
                }
            ],
        }
        for number, text in enumerate(["the ferry leaves at noon", "we had soup for dinner"], 1)
    ]
    query = {"id": "q", "text": "when does the ferry leave?", "messages": {evidence}}
    return RecallSet("ferry", sessions, [query])


def test_evidence_that_the_answer_quotes_is_shown() -> None:
    (screen,) = measure(set_of("m1"))
    assert "“the ferry leaves at noon”" in screen.text
    assert (screen.is_among_first, screen.is_shown) == (True, True)


def test_evidence_that_no_search_finds_is_not_shown() -> None:
    (screen,) = measure(set_of("m2"))
    assert (screen.is_among_first, screen.is_shown) == (False, False)
