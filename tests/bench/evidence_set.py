"""Writes notes as a model would write them, from statements in LoCoMo's conversations.

Each note is a sentence that somebody says about themselves, in the third person and with fewer
words, together with its message. For any other conversation, it is a note about something that was
never said. The notes are written during the run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from core.types import Message, Sender

NOTES = 200
"""So many are taken of each conversation, evenly."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_FILLER = re.compile(
    r"\b(?:really|just|actually|so|yeah|wow|well|oh|hey|thanks|definitely|super|totally|pretty|very|quite|also|too|"
    r"always|even|still|now|kinda|honestly)\b,?\s*",
    re.IGNORECASE,
)
_TOLD = (
    (r"\bI['’]m\b", "User is"),
    (r"\bI['’]ve\b", "User has"),
    (r"\bI['’]ll\b", "User will"),
    (r"\bI['’]d\b", "User would"),
    (r"\bI am\b", "User is"),
    (r"\bI\b", "User"),
    (r"\b[Mm]y\b", "their"),
    (r"\b(?:me|myself)\b", "them"),
    (r"\b[Ww]e\b", "they"),
    (r"\b[Oo]ur\b", "their"),
)
_LEAST_WORDS = 5


@dataclass(frozen=True, slots=True)
class ModelNote:
    """A note. Its message is `rows[place]` of its conversation."""

    conversation: int
    place: int
    text: str


def load(shared: Path) -> tuple[list[list[Message]], list[ModelNote]]:
    """Return the conversations as rows, and the notes made from them.

    One speaker is the person, and the other one is the assistant.
    """
    told = json.loads((shared / "data" / "locomo-dev.json").read_text("utf-8"))
    conversations: list[list[Message]] = []
    notes: list[ModelNote] = []
    for one in told:
        for person in (one["conversation"]["speaker_a"], one["conversation"]["speaker_b"]):
            rows = list(_rows(one["conversation"], person))
            made = [
                ModelNote(len(conversations), place, text)
                for place, row in enumerate(rows)
                if row.role == "user"
                for text in _notes(row.text)
            ]
            conversations.append(rows)
            notes += made[:: max(1, len(made) // NOTES)][:NOTES]
    return conversations, notes


def _rows(talk: dict[str, Any], person: str) -> Iterator[Message]:
    at = datetime(2023, 5, 8, 12, tzinfo=UTC)
    sender = Sender(id=person.lower(), name=person)
    for number in range(1, 100):
        for turn in talk.get(f"session_{number}", ()):
            at += timedelta(minutes=1)
            is_person = turn["speaker"] == person
            yield Message(
                role="user" if is_person else "assistant",
                text=turn["text"],
                session_id=1,
                created_at=at,
                sender=sender if is_person else None,
            )
        at += timedelta(days=1)


def _notes(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(text):
        is_own = re.search(r"\b(?:I|my|we)\b", sentence) is not None
        if not is_own or sentence.endswith("?") or len(sentence.split()) < _LEAST_WORDS:
            continue
        note = _FILLER.sub("", sentence)
        for pattern, words in _TOLD:
            note = re.sub(pattern, words, note)
        # A model leaves out what is said by the way: what stands behind the second comma.
        note = ",".join(note.split(",")[:2]).rstrip(" .!")
        if len(note.split()) >= _LEAST_WORDS:
            yield f"{note[:1].upper()}{note[1:]}."
