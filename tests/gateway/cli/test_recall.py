"""`mneme recall` with filters: in the text, from a pipe, and in the terminal's own chat."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.command_line import good, mneme
from tests.fixtures.messages_api import MessagesApi
from tests.gateway.cli.test_main import imported

pytestmark = pytest.mark.slow

LINES = [
    {"session": "trip", "role": "user", "sender": "Ana", "text": "The ferry leaves at noon.", "at": "2026-05-03"},
    {"session": "trip", "role": "assistant", "text": "Noted, the ferry.", "at": "2026-05-03T00:01"},
    {"session": "food", "title": "Dinner plans", "platform": "telegram", "chat": "4", "role": "user",
     "sender": "Börje", "text": "On the ferry we eat soup.", "at": "2026-07-04"},
]  # fmt: skip
FERRY = ("ferry", "--limit", "9")


def _texts(found: dict[str, object]) -> set[str]:
    sessions = found["sessions"]
    assert isinstance(sessions, list)
    return {
        match["snippet"].replace(">>>", "").replace("<<<", "")
        for one in sessions
        for match in one["matches"]
    }


def test_recall_filters_are_read_from_the_query_text(home: Path) -> None:
    imported(home, LINES)
    noon, noted, soup = (str(line["text"]) for line in LINES)
    several = ("after:may", "2026", "before:2026-07-01", "from:ana", "platform:terminal,discord")
    assert _texts(json.loads(good(home, "recall", *FERRY, *several, "--json"))) == {noon}
    typed = {
        "ferry from:you": {noted},
        "ferry from:borje": {soup},
        "ferry on:telegram": {soup},
        "ferry before:2026-06": {noon, noted},
        'ferry title:"dinner plans"': {soup},
        "role:assistant": {noted},
        "ferry before:banana": {noon, noted, soup},
        "ferry on:2025-01-01": set(),
    }
    stream = good(home, "recall", "-", "--limit", "9", stdin="\n".join(typed))
    answers = [json.loads(line) for line in stream.splitlines()]
    assert {answer["query"]: _texts(answer) for answer in answers} == typed
    notes = {answer["query"]: answer.get("note") for answer in answers}
    assert "“banana” isn't a date" in notes["ferry before:banana"]
    assert "Without the filters, there are results." in notes["ferry on:2025-01-01"]
    assert [query for query, note in notes.items() if note] == [
        "ferry before:banana",
        "ferry on:2025-01-01",
    ]


def test_recall_without_results_lists_the_words_it_looked_for(home: Path) -> None:
    imported(home, LINES)
    assert good(home, "recall", "zeppelin", "title:dinner") == (
        "Nothing found. I looked for “zeppelin”, within your filters.\n"
    )
    done = mneme(
        home, "chat", stdin="/recall ferry from:borje\n/recall fery role:banana\n/help recall\n"
    )
    assert "eat soup" in done.stdout
    assert "isn't a role" in done.stdout
    assert "before: said before" in done.stdout


def test_sessions_list_finds_a_session_by_its_messages_and_recall_of_a_missing_one_fails(
    home: Path,
) -> None:
    imported(home, LINES)
    assert [
        one["title"] for one in json.loads(good(home, "sessions", "list", "soup", "--json"))
    ] == ["Dinner plans"]
    assert [
        one["title"] for one in json.loads(good(home, "sessions", "list", "dinner", "--json"))
    ] == ["Dinner plans"]
    for options in (("in:99",), ("around:99", "--json")):
        done = mneme(home, "recall", *options)
        assert (done.returncode, done.stdout) == (1, "")
        assert "There is no such" in done.stderr


def test_invalid_date_in_a_recall_filter_is_reported_and_searched_as_a_word(home: Path) -> None:
    imported(home, LINES)
    assert "“banana” isn't a date that I understand (2026-05-01" in good(
        home, "recall", "ferry", "before:banana"
    )


def test_recall_summary_without_a_model_shows_the_unsummarised_results(home: Path) -> None:
    imported(home, LINES)
    out = good(home, "recall", "ferry", "--summary", "--expand")
    assert "eat soup" in out
    assert "I couldn't summarize the results: This needs a model. Set ANTHROPIC_API_KEY" in out
    assert (
        "The model couldn't help with the search. This needs a model. Set ANTHROPIC_API_KEY" in out
    )
    stream = good(home, "recall", "-", "--summary", stdin="ferry\nzeppelin\n")
    ferry, zeppelin = (json.loads(line) for line in stream.splitlines())
    assert ferry["sessions"]
    assert ferry["note"].startswith("I couldn't summarize the results")
    assert zeppelin["note"] == "I looked for “zeppelin”.", "there is nothing to summarise"


def test_page_filter_shows_the_next_sessions_and_refuses_page_0(home: Path) -> None:
    imported(home, LINES)
    pages = [
        json.loads(good(home, "recall", "ferry", f"page:{page}", "--limit", "1", "--json"))
        for page in "12"
    ]
    assert len({one["session_id"] for page in pages for one in page["sessions"]}) == 2
    assert [page.get("has_more") for page in pages] == [True, None]
    assert "“0” isn't the number of a page" in good(home, "recall", "ferry", "page:0")
    assert "There are no more results on page 11." in good(home, "recall", "ferry", "page:11")


async def test_recall_with_a_model_prints_each_summary_below_its_row(home: Path) -> None:
    def brain(body: dict[str, Any]) -> str:
        if "Answer with JSON" in body["system"][0]["text"]:
            return '{"order": [], "searches": ["soup on board"]}'
        return (
            "They settled on noon."
            if "at noon" in body["messages"][0]["content"][0]["text"]
            else "They ate soup."
        )

    imported(home, LINES)
    async with MessagesApi(brain) as api:
        options = {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "k"}
        asked = ("recall", "When does the ferry leave?", "--summary", "--expand")
        done = await asyncio.to_thread(mneme, home, *asked, **options)
        assert (done.returncode, done.stderr) == (0, "")
        assert "I also searched for “soup on board”." in done.stdout
        rows = done.stdout.splitlines()
        noon, settled = (
            next(n for n, row in enumerate(rows) if word in row)
            for word in ("at noon", "They settled")
        )
        assert settled > noon
        session = await asyncio.to_thread(mneme, home, "recall", "in:1", "--summary", **options)
        assert "They settled on noon." in session.stdout.splitlines()[:3]
        stream = await asyncio.to_thread(
            mneme, home, "recall", "-", "--summary", stdin="soup\nferry title:dinner\n", **options
        )
        answers = [json.loads(line) for line in stream.stdout.splitlines()]
        assert [[one["summary"] for one in answer["sessions"]] for answer in answers] == [
            ["They ate soup."]
        ] * 2
        assert not api.refusals


def test_the_table_has_the_time_of_the_match(home: Path) -> None:
    imported(
        home,
        [LINES[0], {"session": "trip", "role": "user", "text": "Good night.", "at": "2026-05-09"}],
    )
    shown = good(home, "recall", "ferry")
    assert "3 May 2026" in shown
    assert "9 May 2026" not in shown


def test_excluded_word_with_a_minus_is_read_as_a_search_term_and_not_as_an_option(
    home: Path,
) -> None:
    imported(home, LINES)
    noon, _, soup = (str(line["text"]) for line in LINES)
    assert _texts(json.loads(good(home, "recall", "ferry", "-noon", "--json"))) >= {soup}
    assert noon not in _texts(json.loads(good(home, "recall", "ferry", "-noon", "--json")))
