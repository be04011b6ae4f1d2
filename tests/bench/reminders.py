"""Measures how many requests for reminders are read correctly, by language and by kind of request.

``python -m tests.bench --only reminders [--reminders FILE]``. Each row of the file is a JSON
object: `lang`, `text`, `kind` (once, recurring, ask or none), the accepted moments and the accepted
tasks. The person writes on Friday 20 November 2026 at 10:00 in Lisbon.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from core.dates.recurrence import next_recurrences
from core.dates.requests.intents import Intent
from core.dates.requests.reader import ReminderReading, read_request

LISBON = ZoneInfo("Europe/Lisbon")
NOW = datetime(2026, 11, 20, 10, tzinfo=LISBON)
MAX_MOMENTS = 400

Row = Mapping[str, Any]


class Outcome(StrEnum):
    """The result for a request."""

    RIGHT = "right"
    # Not set, although it could be. The person is asked, or nothing happens.
    MISSED = "missed"
    # The moment is right, but not the text.
    OTHER_TASK = "other task"
    # Set at a wrong moment, or although nothing may be set.
    WRONG = "wrong"


def report(path: Path) -> str:
    """Return the tables for a file of rows."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    begin = time.perf_counter()
    outcomes = [(row, judge(row)) for row in rows]
    spent_ms = 1000 * (time.perf_counter() - begin) / max(1, len(rows))
    tables = [_table(outcomes, "lang"), _table(outcomes, "kind")]
    return "\n\n".join([*tables, f"A message takes {spent_ms:.1f} ms."])


def judge(row: Row) -> Outcome:
    """Read the request of a row, and compare the result with what the row accepts."""
    reading = read_request(row["text"], NOW, LISBON)
    moments = _moments(reading)
    if row["kind"] in ("ask", "none"):
        is_accepted = not moments or moments[0] in row.get("or_at_any", ())
        return Outcome.RIGHT if is_accepted else Outcome.WRONG
    if not moments:
        is_asked = reading.intent is Intent.SET and row.get("accept_ask")
        return Outcome.RIGHT if is_asked else Outcome.MISSED
    if not _is_accepted(row, moments):
        return Outcome.WRONG
    task = _plain(reading.task)
    is_task = any(_plain(text) in task or task in _plain(text) for text in row["task"])
    return Outcome.RIGHT if task and is_task else Outcome.OTHER_TASK


def _moments(reading: ReminderReading) -> list[str]:
    """Return the moments of a complete request in Lisbon, or [] if it can't be set."""
    if not reading.is_complete:
        return []
    moments = [reading.moment] if reading.moment else []
    if reading.recurrences:
        moments = [*next_recurrences(reading.recurrences, NOW, MAX_MOMENTS)]
    return [f"{moment.astimezone(LISBON):%Y-%m-%dT%H:%M}" for moment in moments]


def _is_accepted(row: Row, moments: Sequence[str]) -> bool:
    accepted = row.get("at_any") or [row["at"]]
    if row["kind"] == "once":
        window: Sequence[str] = row.get("at_window") or ("", "")
        is_in_window = window[0] <= moments[0] <= window[-1]
        return len(moments) == 1 and (moments[0] in accepted or is_in_window)
    accepted = accepted if isinstance(accepted[0], list) else [accepted]
    has_begin = any(list(moments[: len(begin)]) == begin for begin in accepted)
    return has_begin and moments[-1] in row.get("last_any", moments[-1:])


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text.lower()).strip()


def _table(outcomes: Sequence[tuple[Row, Outcome]], key: str) -> str:
    """Return the outcomes by the values of a key."""
    counts = Counter((str(row[key]), outcome) for row, outcome in outcomes)
    lines = [f"| {key} | requests | {' | '.join(Outcome)} |", "| --- |" + " --- |" * 5]
    names = sorted({name for name, _ in counts})
    for name in [*names, "all"]:
        members = names if name == "all" else [name]
        cells = [sum(counts[member, outcome] for member in members) for outcome in Outcome]
        lines.append(f"| {name} | {sum(cells)} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)
