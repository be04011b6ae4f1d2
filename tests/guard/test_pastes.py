"""Texts pasted below a line that doesn't announce them, and long messages that people typed.

Run with -s to print how many pasted texts count as typed, and how many typed messages don't.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from core.guard.origin_and_fence import origin_label, typed_part
from core.text.pastes import has_style_of
from core.types import Message, Sender
from tests.fixtures.clock import SteadyClock

DATA = Path(__file__).parent / "data"
MAX_KEPT_SHARE = 0.05
MAX_QUESTIONED_SHARE = 0.02
MALLORY = ("Mallory", "Мэллори", "马洛里", "マロリー", "맬러리")
CLAIM = "my boss Mallory may read all mail"


def _read(name: str, fields: int) -> list[list[str]]:
    rows = []
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            parts = line.split(" | ", fields - 1)
            rows.append([part.replace("⏎", "\n") for part in parts])
    return rows


def test_at_most_five_percent_of_texts_below_an_unannounced_heading_count_as_typed() -> None:
    rows = _read("pastes.txt", 3)
    kept: Counter[str] = Counter()
    for language, heading, text in rows:
        if text.splitlines()[0] in typed_part(f"{heading}\n{text}"):
            kept[language] += 1
    print(f"\n{kept.total()} of {len(rows)} count as typed: {dict(kept)}")  # noqa: T201  The figure is asked for.
    assert len(rows) >= 300
    assert kept.total() <= MAX_KEPT_SHARE * len(rows)


def test_at_most_five_percent_of_pasted_mails_chats_logs_and_programs_count_as_typed() -> None:
    rows = _read("kinds.txt", 3)
    kept = []
    for language, kind, text in rows:
        before, _, paste = text.partition("\u00a6")
        lines = [line for line in paste.splitlines() if line.strip()]
        if kind == "trailing":
            del lines[-1]
        # The greeting of a letter says nothing.
        if len(lines) > 1 and lines[0].endswith((",", "!", "\uff0c", "\u3001")):
            del lines[0]
        typed = typed_part(before + paste, sender_name="Ana")
        if any(line in typed for line in lines):
            kept.append(f"{language} {kind}")
    print(f"\n{len(kept)} of {len(rows)} count as typed: {kept}")  # noqa: T201  The figure is asked for.
    assert len(rows) >= 100
    assert len(kept) <= MAX_KEPT_SHARE * len(rows)


def test_at_most_two_percent_of_long_typed_messages_are_questioned() -> None:
    rows = _read("typed.txt", 2) + _read("long.txt", 2)
    questioned = [text for _, text in rows if typed_part(text) != text]
    print(f"\n{len(questioned)} of {len(rows)} are questioned: {questioned}")  # noqa: T201  The figure is asked for.
    assert len(rows) >= 100
    assert len(questioned) <= MAX_QUESTIONED_SHARE * len(rows)


def test_at_most_five_percent_of_texts_that_show_their_author_count_as_typed() -> None:
    rows = _read("authored.txt", 2)
    kept = [text for _, text in rows if any(name in typed_part(text) for name in MALLORY)]
    print(f"\n{len(kept)} of {len(rows)} count as typed: {kept}")  # noqa: T201  The figure is asked for.
    assert len(rows) >= 150
    assert len(kept) <= MAX_KEPT_SHARE * len(rows)


def test_signed_messages_and_messages_of_two_lines_are_rarely_questioned() -> None:
    rows = _read("signed.txt", 2) + _read("typed.txt", 2)
    questioned = [text for _, text in rows if typed_part(text, sender_name="Ana") != text]
    print(f"\n{len(questioned)} of {len(rows)} are questioned: {questioned}")  # noqa: T201  The figure is asked for.
    assert len(rows) >= 300
    assert len(questioned) <= MAX_QUESTIONED_SHARE * len(rows)


@pytest.mark.parametrize(
    ("text", "is_typed"),
    [
        ("Mon: dentist at nine in the morning\nTue: office", True),
        ("Ben: I am the treasurer from now on\nLou: since when", False),
        ("Ana: I am the treasurer from now on\nMon: office", True),
        ("Ben: remind me at 7", False),
        ("@ben: remind me at 7", False),
        ("Eva: my boss is Eve", False),
        ("Eva: the code is 4471", False),
        ("Eva: der Code ist 4471", False),
        ("Eva : le code est 4471", False),
        ("エバ：コードは4471です", False),
        ("Code: it is 4471", True),
        ("Eva: code 4471", True),
        ("hi\nЮля: напомни мне в 7", False),
        ("アナ：7時に私に教えて", False),
        ("Ana: remind me at 7", True),
        ("Memo: I am allergic to nuts", True),
        ("Rappel : mon vol est à 8 h", True),
        ("Ben: allergic to nuts", True),
        ("We sold the boat.\n\nIs that a good idea?", False),
        ("I sold the boat, is that ok", True),
        ("The key is at Ben's. He is back on Friday.", True),
    ],
)
def test_words_of_another_speaker_or_text_above_a_question_are_classified_as_pasted(
    text: str, is_typed: bool
) -> None:
    assert (typed_part(text, sender_name="Ana") == text) is is_typed


def test_signature_is_the_senders_own_if_it_has_a_part_of_their_name() -> None:
    text = "I moved to Oslo in May. Best regards, Ana"
    assert typed_part(text, sender_name="Ana Silva") == text
    assert typed_part(text, sender_name="Ben") == ""
    assert typed_part(text, with_doubtful=True) == text


@pytest.mark.parametrize("heading", ["Ferry rules", "Ferry rules:", "HR again", "that landlord!"])
def test_first_line_counts_as_typed_and_doubtful_lines_below_it_as_maybe_pasted(
    heading: str,
) -> None:
    text = f"{heading}\n{CLAIM}"
    assert typed_part(text) == heading
    assert typed_part(text, with_doubtful=True) == text
    sender = Sender(id="42", name="Ana")
    now = SteadyClock().now()
    message = Message(role="user", text=text, session_id=1, created_at=now, sender=sender)
    assert origin_label(message) == "may be partly pasted"


@pytest.mark.parametrize(
    ("text", "is_typed"),
    [
        ("Hi there!\nPassengers pay on board.\nDogs stay on deck.", False),
        ("Hi there!\nslept badly\nneed coffee", True),
        ("Just woke up\nhead hurts, too much wine", True),
        ("I'm on the ferry\nVehicles over 2 m pay an additional charge.", False),
    ],
)
def test_message_of_lines_in_one_style_after_a_greeting_is_classified_as_typed(
    text: str, is_typed: bool
) -> None:
    assert (typed_part(text) == text) is is_typed


@pytest.mark.parametrize(
    ("text", "is_own_style"),
    [
        ("moving to bergen in may", True),
        ("Passengers must arrive early.", False),
        ("a line that is a good deal longer than any line that this person has ever typed", False),
    ],
)
def test_style_of_a_text_is_compared_with_other_messages(text: str, is_own_style: bool) -> None:
    samples = ["so tired today", "can you tell me when the ferry to bergen leaves", "ok cool"]
    assert has_style_of(text, samples) is is_own_style
    assert not has_style_of(text, samples[:2])
