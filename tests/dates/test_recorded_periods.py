"""What recall reads of about thirty languages, recorded before requests and recall shared a lexicon.

Each line of `data/recorded_periods.tsv` is a phrase in a frame and its periods, read on Monday 23
November 2026. Of a period that recurs, the line has the occurrence in 2026.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

from core.dates.periods_in_text import MAX_PERIODS, find_periods

TODAY = date(2026, 11, 23)
RECORD = Path(__file__).parent / "data" / "recorded_periods.tsv"


def test_each_recorded_phrase_names_the_same_periods_as_before() -> None:
    lines = RECORD.read_text("utf-8").splitlines()

    changes = [line for line in lines if _read(line.partition("\t")[0]) != line]

    assert len(lines) > 1_600
    assert changes == []


def _read(text: str) -> str:
    """Return the line for a text as it is read today."""
    spans = [tuple(map(date.fromordinal, span)) for span in find_periods(text, TODAY)]
    if len(spans) > MAX_PERIODS:
        spans = [span for span in spans if span[0].year == TODAY.year]
    return f"{text}\t{' '.join(f'{first}/{last}' for first, last in spans)}"
