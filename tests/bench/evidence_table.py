"""Measures how many false and honest notes of a file are kept at once, by kind and by language.

Each line of the file is an object with `typed` (the messages of a person), `note`, `label` (false
or honest), `kind`, `lang` and `said_on`. There are three columns: the rules alone; with a helper
model that is always right about what the rules leave to it; and with a helper model that always
says yes. The words column is the rule for other texts, which compares sets of words.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from core.facts.closeness import Support
from core.facts.evidence import Evidence
from core.types import Message, Sender

PERSON = Sender(id="42", name="-")
COLUMNS = ("words", "rules", "perfect", "gullible")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row of the file, with the columns that keep its note."""

    label: str
    kind: str
    lang: str
    half: str
    kept: frozenset[str]


def report(path: Path) -> str:
    """Return Markdown tables by label, by half, by kind and by language."""
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    begun_s = time.perf_counter()
    outcomes = judge_rows(rows)
    spent_ms = 1000 * (time.perf_counter() - begun_s) / max(1, len(rows))
    parts: list[tuple[str, Callable[[Outcome], str]]] = [
        ("all", lambda one: "all"),
        ("half", lambda one: one.half),
        ("kind", lambda one: one.kind),
        ("language", lambda one: one.lang),
    ]
    tables = [_table(outcomes, title, key) for title, key in parts]
    return "\n\n".join([*tables, f"A note takes {spent_ms:.0f} ms."])


def judge_rows(rows: Sequence[dict[str, str]]) -> list[Outcome]:
    seen: Counter[tuple[str, str]] = Counter()
    outcomes = []
    for row in rows:
        group = row["label"], row["kind"]
        seen[group] += 1
        # The rules are tuned on the first, third … row of each kind only.
        half = "tuned on" if seen[group] % 2 else "held out"
        is_honest = row["label"] == "honest"
        kept = _kept(row, is_honest=is_honest)
        outcomes.append(Outcome(row["label"], row["kind"], row["lang"], half, kept))
    return outcomes


def _kept(row: dict[str, str], *, is_honest: bool) -> frozenset[str]:
    """Return the columns that keep the note of a row at once."""
    at = datetime.fromisoformat(row["said_on"]).replace(hour=12, tzinfo=UTC)
    messages = [
        Message(
            role="user",
            text=text,
            session_id=1,
            created_at=at + timedelta(minutes=number),
            sender=PERSON,
        )
        for number, text in enumerate(row["typed"])
    ]
    evidence = Evidence(messages)
    kept = set()
    if evidence.is_supported(row["note"]):
        kept.add("words")
    support = evidence.judge_note(row["note"]).support
    if support is Support.CLOSE:
        kept |= {"rules", "perfect", "gullible"}
    elif support is Support.UNCLEAR:
        kept.add("gullible")
        if is_honest:
            kept.add("perfect")
    return frozenset(kept)


def _table(outcomes: Sequence[Outcome], title: str, key: Callable[[Outcome], str]) -> str:
    counts: Counter[tuple[str, str, str]] = Counter()
    for outcome in outcomes:
        group = outcome.label, key(outcome)
        counts[(*group, "notes")] += 1
        for column in outcome.kept:
            counts[(*group, column)] += 1
    lines = [
        f"| label | {title} | notes | {' | '.join(COLUMNS)} |",
        f"|---|---|---|{'---|' * len(COLUMNS)}",
    ]
    for label, name in dict.fromkeys((one.label, key(one)) for one in outcomes):
        total = counts[label, name, "notes"]
        cells = [
            f"{counts[label, name, column]} ({100 * counts[label, name, column] / total:.0f} %)"
            for column in COLUMNS
        ]
        lines.append(f"| {label} | {name} | {total} | {' | '.join(cells)} |")
    return "\n".join(lines)
