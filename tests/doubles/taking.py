"""Reads a source as an import would: what is taken, and what is left out by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from core.histories.choices import Choices
from core.histories.source import Source
from core.records import Skipped
from core.store.chronicle import Chronicle


def sorted_out(records: Iterable[Chronicle | Skipped | None]) -> tuple[list[Chronicle], Counter[str]]:
    """The messages in order, and how many of what was skipped."""
    taken: list[Chronicle] = []
    skipped: Counter[str] = Counter()
    for record in records:
        if isinstance(record, Chronicle):
            taken.append(record)
        elif record is not None:
            skipped[record.reason] += 1
    return taken, skipped


def taken_from(path: Path, choices: Choices | None = None) -> tuple[list[Chronicle], Counter[str]]:
    """Everything in a source."""
    with Source.open(path, choices or Choices()) as source:
        return sorted_out(source.records())
