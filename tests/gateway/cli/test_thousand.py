"""`mneme recall -` over an imported history: a thousand questions from a pipe, each answered by one
object in order."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.command_line import good

pytestmark = pytest.mark.slow

SUBJECTS = {
    "ferry": (
        "The ferry to {place} leaves at {number} past nine.",
        "When does the ferry to {place} leave?",
    ),
    "hotel": (
        "I booked the hotel in {place} for {number} euros.",
        "what did the hotel in {place} cost",
    ),
    "doctor": ("My doctor in {place} has room {number}.", "Which room has my doctor in {place}?"),
    "cousin": (
        "My cousin moved to {place}, house {number}.",
        "Where in {place} does my cousin live?",
    ),
    "parking": (
        "Parking in {place} is behind gate {number}.",
        "where can I park in {place}? parking gate",
    ),
    "concert": (
        "We have seats in row {number} for the concert in {place}.",
        "Which row is our concert in {place}?",
    ),
    "recipe": (
        "The soup from {place} needs {number} leaves of basil.",
        "how much basil for the soup from {place}",
    ),
    "password": (
        "The door code of the flat in {place} is {number}.",
        "What's the door code for the {place} flat?",
    ),
    "train": (
        "The night train to {place} is on platform {number}.",
        "night train {place} platform",
    ),
    "budget": (
        "We decided to spend {number} on the bridge in {place}.",
        "What did we decide about the {place} bridge?",
    ),
}
PLACES = """
Porto Lisbon Bergen Tromsø Kraków Gdańsk Zagreb Split Athens Izmir Ankara Cairo Lagos Accra Nairobi Lima Quito Bogotá
Havana Boston Denver Austin Toronto Québec Perth Hobart Osaka Kyoto Seoul Busan Hanoi Manila Delhi Mumbai Lahore Tehran
Tbilisi Yerevan Minsk Riga Tallinn Vilnius Prague Brno Vienna Graz Zürich Basel Lyon 大阪
"""
SMALL_TALK = (
    ("user", "Good morning, how are you?"),
    ("assistant", "Fine, thank you. What is on your mind today?"),
    ("user", "It rains again, so I stay at home and read."),
    ("assistant", "That sounds like a good day. Shall I remind you about anything?"),
    ("user", "No, that is all for now."),
)
ODD: dict[bytes, str] = {
    b"": "browse",
    b"   ": "browse",
    b"\0": "discovery",
    b"ferry\0Porto": "discovery",
    b"\xed\xa0\xbd ferry": "discovery",
    b"\xff\xfe\xfd": "discovery",
    b'"' * 1_000_000: "discovery",
    b"ferry Porto " * 90_000: "discovery",
    ("大阪" * 170_000).encode(): "discovery",
    b"(a+)+$ [": "discovery",
    b"from: before: in: OR AND NOT -": "discovery",
    b"around:99999999999999999999": "discovery",
    b"in:999999": "read",
    b"around:999999": "scroll",
}
QUESTIONS = 1_000
LEAST_SHARE = 0.99


def _history() -> list[dict[str, Any]]:
    """A session for each subject in each place: what was said of it, within small talk that all of
    them share."""
    lines = []
    at = datetime(2026, 1, 1, tzinfo=UTC)
    for number, ((name, (statement, _)), place) in enumerate(
        product(SUBJECTS.items(), PLACES.split())
    ):
        said = [
            *SMALL_TALK[:2],
            ("user", statement.format(place=place, number=number)),
            *SMALL_TALK[2:],
        ]
        for role, text in said:
            at += timedelta(minutes=7)
            lines.append(
                {"session": f"{name} {place}", "role": role, "text": text, "at": at.isoformat()}
            )
    return lines


def _asked() -> list[tuple[bytes, str]]:
    """A thousand lines, each with the session that it is about, or with the shape of an answer to
    what is no question. Each is asked in lower case too."""
    plain = [
        (question.format(place=place), f"{name} {place}")
        for (name, (_, question)), place in product(SUBJECTS.items(), PLACES.split())
    ]
    both = [(text.encode(), wanted) for text, wanted in plain] + [
        (text.lower().encode(), to) for text, to in plain
    ]
    step = QUESTIONS // len(ODD)
    for number, (text, shape) in enumerate(ODD.items()):
        both[number * step] = (text, shape)
    return both


@pytest.mark.sweep
def test_recall_answers_a_thousand_piped_questions_with_the_right_session_first(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "history.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in _history()))
    assert "Imported 3,000 messages. The file has 500 sessions." in good(home, "import", str(file))
    asked = _asked()
    assert len(asked) == QUESTIONS
    out = good(home, "recall", "-", stdin=b"\n".join(line for line, _ in asked))
    answers = [json.loads(line) for line in out.rstrip("\n").split("\n")]
    assert [answer["query"] for answer in answers] == [
        line.decode("utf-8", "replace") for line, _ in asked
    ]
    right = 0
    for (line, wanted), answer in zip(asked, answers, strict=True):
        assert "error" not in answer
        if line in ODD:
            assert answer["shape"] == wanted
            continue
        assert answer["shape"] == "discovery"
        right += bool(answer["sessions"]) and answer["sessions"][0]["external_session"] == wanted
    assert right >= LEAST_SHARE * (QUESTIONS - len(ODD)), right
