"""What was understood of a line that says when and what: the schedule, the text, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

from core.records import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """`text` is the line without the words of time; may be empty. `is_certain` False: the words allow another reading
    (or another language was guessed), so the exact moment must be confirmed with the person."""

    schedule: Schedule
    text: str
    is_certain: bool
