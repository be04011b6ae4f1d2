"""What was understood of a line that says when and what: the schedule, the text, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a job is due. Exactly one of: `cron` (five fields, wall time in `zone`), `every_s` seconds counted from
    `start_at`, or one moment `at`. `zone` is an IANA name."""

    zone: str
    cron: str | None = None
    every_s: int | None = None
    start_at: datetime | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """`text` is the line without the words of time; may be empty. `is_certain` False: the words allow another reading
    (or another language was guessed), so the exact moment must be confirmed with the person."""

    schedule: Schedule
    text: str
    is_certain: bool
