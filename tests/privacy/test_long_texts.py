"""Forgetting very long texts."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from core.privacy.quotes import QuoteMatcher
from tests.fixtures.gateway_harness import open_gateway

pytestmark = pytest.mark.slow


async def test_passages_of_a_long_message_are_listed_off_the_event_loop(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The passages of 50,000 characters held the event loop for most of a second."""
    text = "ferry " + "".join(f"word{number} " for number in range(1_000))
    threads: set[str] = set()
    add_text = QuoteMatcher._add_text

    def watched_add_text(matcher: QuoteMatcher, said: str) -> None:
        threads.add(threading.current_thread().name)
        add_text(matcher, said)

    monkeypatch.setattr(QuoteMatcher, "_add_text", watched_add_text)
    async with open_gateway(home) as harness:
        await harness.say(text)
        await harness.say(f"/forget {text}")
        await harness.say("yes")
        rows = await harness.services.database.fetch_all("SELECT text FROM messages")
        assert not any("word999" in str(row["text"]) for row in rows)
    assert threads != set()
    assert threading.main_thread().name not in threads
