"""`mneme recall` with filters: as options, in the text, from a pipe, and in the terminal's own chat."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.test_cli import good, imported, mneme

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
    return {match["snippet"].replace(">>>", "").replace("<<<", "") for one in sessions for match in one["matches"]}


def test_options_filter_and_typed_filters_do_the_same(home: Path) -> None:
    imported(home, LINES)
    noon, noted, soup = (str(line["text"]) for line in LINES)
    options = ("--after", "may 2026", "--before", "2026-07-01", "--from", "ana", "--platform", "terminal,discord")
    assert _texts(json.loads(good(home, "recall", *FERRY, "--json", *options))) == {noon}
    assert _texts(json.loads(good(home, "recall", *FERRY, "--json", "--title", "dinner plans"))) == {soup}
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
    assert "“banana” is no date" in notes["ferry before:banana"]
    assert "Without these limits there is something." in notes["ferry on:2025-01-01"]
    assert [query for query, note in notes.items() if note] == ["ferry before:banana", "ferry on:2025-01-01"]


def test_a_person_reads_what_was_tried(home: Path) -> None:
    imported(home, LINES)
    assert good(home, "recall", "zeppelin", "--title", "dinner") == (
        "Nothing was found. I looked for “zeppelin”, in conversations with “dinner” in their title.\n"
    )
    done = mneme(home, "chat", stdin="/recall ferry from:borje\n/recall fery role:banana\n/help recall\n")
    assert "eat soup" in done.stdout
    assert "is no role" in done.stdout
    assert "before:May" in done.stdout


def test_a_time_that_is_none_is_wrong_usage(home: Path) -> None:
    done = mneme(home, "recall", "x", "--before", "banana")
    assert (done.returncode, done.stdout) == (2, "")
    assert "last week" in done.stderr
