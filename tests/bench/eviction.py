"""Measures what would be lost if notes that weren't needed for a while left the prompt.

``python -m tests.bench.eviction SHARED``, with the project's shared benchmark folder. Each message
that a question needs counts as a note. The questions of LoCoMo's development half and of the set of
facts are divided at random into an earlier and a later half, `ROUNDS` times. A note leaves the
prompt if no earlier question needed it. Then recall, or the facts, have to find it for a later
question. In the changes of a life, each note leaves the prompt before its only question.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.facts.provider import FactRanking
from core.store.facts.facts import Facts
from core.store.sqlite.database import Database
from tests.bench import changes
from tests.bench.fact_set import TOLD, questions
from tests.bench.knowing import find_fact_contents, learn_set
from tests.bench.locomo import Mneme
from tests.bench.recall import read
from tests.fixtures.clock import SteadyClock

ROUNDS = 100
SHOWN = 10
"""How many messages or facts a turn gets."""


@dataclass(frozen=True, slots=True)
class Need:
    """The notes that a question needs, and those that are found although they left the prompt."""

    notes: frozenset[str]
    found: frozenset[str]


def needs_of_conversations(shared: Path) -> list[Need]:
    """Ask recall the questions of LoCoMo's development half."""
    one = read(shared, "locomo")
    searcher = Mneme()
    try:
        searcher.index(one.sessions)
        needs = []
        for query in one.queries:
            notes = frozenset(query["messages"])
            shown = {message for _, message in searcher.search(query["text"], SHOWN)}
            needs.append(Need(notes, notes & shown))
        return needs
    finally:
        searcher.close()


async def needs_of_facts(folder: Path) -> list[Need]:
    """Ask the facts the questions of their set."""
    async with Database.open(folder / "facts.db") as database:
        facts = Facts(database, SteadyClock())
        await learn_set(facts)
        needs = []
        for question in questions():
            shown = await find_fact_contents(facts, FactRanking(), question, SHOWN)
            answers = frozenset(question.answers)
            found = {answer for answer in answers if any(text.startswith(answer) for text in shown)}
            needs.append(Need(answers, frozenset(found)))
        return needs


def describe_needs(name: str, needs: Sequence[Need]) -> str:
    """Return a row: how many notes are needed once, and what later questions lose by eviction."""
    often = [sum(note in need.notes for need in needs) for note in _all_notes(needs)]
    cells = [name, str(len(needs)), str(len(often)), _percent([count == 1 for count in often])]
    shares = [_divide(needs, random.Random(seed)) for seed in range(ROUNDS)]
    cells += [f"{100 * statistics.mean(share):.0f}" for share in zip(*shares, strict=True)]
    return f"| {' | '.join(cells)} |"


def _divide(needs: Sequence[Need], choice: random.Random) -> tuple[float, float]:
    """Divide the questions into an earlier and a later half.

    Returns the share of later questions that need a note which left the prompt, and the share for
    which that note isn't found either.
    """
    order = choice.sample(list(needs), len(needs))
    earlier, later = order[: len(order) // 2], order[len(order) // 2 :]
    kept = _all_notes(earlier)
    lacking = [not need.notes <= kept for need in later]
    lost = [not need.notes <= kept | need.found for need in later]
    return statistics.mean(lacking), statistics.mean(lost)


def _all_notes(needs: Sequence[Need]) -> set[str]:
    return set().union(*(need.notes for need in needs))


def _percent(values: Sequence[bool]) -> str:
    return f"{100 * statistics.mean(values):.0f}"


async def describe_changes(rows: Sequence[Mapping[str, str]]) -> str:
    """Return how many answers without notes show the current state, and how many begin with it."""
    verdicts = [await changes.judge(dict(row), has_helper=False) for row in rows]
    shown = [
        re.search(row["now"], verdict.answer, re.IGNORECASE) is not None
        for row, verdict in zip(rows, verdicts, strict=True)
    ]
    right = sum(verdict.is_right for verdict in verdicts)
    return f"{sum(shown)} of {len(rows)} answers show it without notes, {right} first."


def report(shared: Path) -> Iterator[str]:
    """Return the Markdown tables."""
    yield (
        "| set | questions | notes | needed once, % | later questions whose note left, % | "
        "lost, % |"
    )
    yield "| --- | --- | --- | --- | --- | --- |"
    yield describe_needs("LoCoMo, recall", needs_of_conversations(shared))
    with tempfile.TemporaryDirectory() as folder:
        yield describe_needs("facts", asyncio.run(needs_of_facts(Path(folder))))
    size = sum(len(line) + 1 for line in TOLD)
    yield f"\nThe {len(TOLD)} messages of the set of facts have {size:,} characters.\n"
    with (shared / "data" / "memory" / "changes-dev.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    yield asyncio.run(describe_changes(rows))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.eviction")
    parser.add_argument("shared", type=Path)
    for line in report(parser.parse_args().shared):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
