"""Measures how well facts are found, how much each part of the ranking contributes, and what
finding and learning cost with many facts.

Everything runs over a real state.db through the interfaces of the core, without a model. The facts
are those that the rules find, or the whole sentence if there are none.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from core.facts.claims import Claim, extract_claims, fact_from_claim
from core.facts.provider import FactRanking, Question
from core.store.facts.facts import Facts
from core.store.facts.rows import Fact, insert_fact
from core.store.sqlite.database import Database
from core.store.sqlite.text_index import StoreConnection
from core.text.terms import entity_key, entity_keys_in, names_in, query_terms
from core.types import Message, Scope, Sender
from tests.bench.fact_set import NOISE, TOLD, Asked, questions
from tests.fixtures.clock import SteadyClock

SCOPE = Scope.account("telegram", "42")
SCOPES = frozenset((SCOPE,))
ZONE = ZoneInfo("Europe/Lisbon")
START = datetime(2026, 1, 1, 12, tzinfo=UTC)


BLENDS = {
    "text": FactRanking(text=1.0, jaccard=0.0, names=0.0, subject=0.0),
    "text + names": FactRanking(text=0.7, jaccard=0.0, names=0.3, subject=0.0),
    "text + names + HRR": FactRanking(text=0.7, jaccard=0.0, names=0.3, subject=0.0, hrr=0.2),
    "text + names + Jaccard": FactRanking(text=0.6, jaccard=0.2, names=0.2, subject=0.0),
    "text + names + Jaccard + whom it is about (the default)": FactRanking(),
    "the default + 0.1 HRR": FactRanking(hrr=0.1),
    "the default, HRR in place of Jaccard": FactRanking(jaccard=0.0, hrr=0.15),
    "HRR alone, over the same candidates": FactRanking(
        text=0.0, jaccard=0.0, names=0.0, subject=0.0, hrr=1.0
    ),
}
SIZES = (1_000, 100_000)


def _read_facts(text: str, number: int) -> list[Fact]:
    """Return the facts that the rules find in a message, or the whole sentence if there are none."""
    at = START + timedelta(hours=number)
    source = Message(
        role="user",
        text=text,
        session_id=1,
        created_at=at,
        sender=Sender(id="42", name="Joana"),
        id=number,
    )
    told = extract_claims(text, at, ZONE) or [
        Claim(content=text, kind="identity", entities=names_in(text))
    ]
    return [fact_from_claim(claim, "rule", SCOPE, "telegram", source) for claim in told]


async def quality(folder: Path) -> str:
    """Return a Markdown table of hit@1 and recall@10 by ranking, for all questions and by kind."""
    count, scores = await scored(folder, BLENDS)
    kinds = list(dict.fromkeys(kind for found in scores.values() for kind, *_ in found))
    lines = [
        f"{count} facts, {len(questions())} questions.",
        "",
        f"| hit@1 / recall@10 | all | {' | '.join(kinds)} |",
        f"|---|---|{'---|' * len(kinds)}",
    ]
    for name, found in scores.items():
        cells = [
            _cell(found),
            *(_cell([score for score in found if score[0] == kind]) for kind in kinds),
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


async def scored(
    folder: Path, blends: Mapping[str, FactRanking]
) -> tuple[int, dict[str, list[tuple[str, float, float]]]]:
    """Return the number of learned facts and, by ranking, the kind, hit@1 and recall@10 of each
    question.
    """
    async with Database.open(folder / "quality.db") as database:
        facts = Facts(database, SteadyClock())
        count = await learn_set(facts)
        return count, {
            name: [
                (question.kind, *await _score(facts, blend, question)) for question in questions()
            ]
            for name, blend in blends.items()
        }


async def learn_set(facts: Facts) -> int:
    """Learn all facts of the set and the distractors. Return the number of facts."""
    count = 0
    order = [*NOISE[: len(NOISE) // 2], *TOLD, *NOISE[len(NOISE) // 2 :]]
    for number, text in enumerate(order, 1):
        for fact in _read_facts(text, number):
            await facts.learn(fact)
            count += 1
    return count


def _cell(scores: Sequence[tuple[str, float, float]]) -> str:
    return f"{100 * statistics.mean(s[1] for s in scores):.0f} / {100 * statistics.mean(s[2] for s in scores):.0f}"


async def _score(facts: Facts, blend: FactRanking, question: Asked) -> tuple[float, float]:
    shown = await find_fact_contents(facts, blend, question, 10)
    hits = sum(any(content.startswith(answer) for content in shown) for answer in question.answers)
    is_first = bool(shown) and shown[0].startswith(question.answers)
    return float(is_first), hits / len(question.answers)


async def find_fact_contents(
    facts: Facts, blend: FactRanking, question: Asked, count: int
) -> list[str]:
    """Return the contents of the best facts for a question."""
    query = Question(question.question, SCOPES, START + timedelta(days=60))
    ranked = blend.rank_by_aliases(
        await facts.find_candidates(query.terms, query.keys, SCOPES, query.text), query
    )
    return [fact.content for fact, _ in ranked[:count]]


async def scale(folder: Path) -> str:
    """Return a Markdown table of what probe, reason, search and learn cost with 1,000 and with
    100,000 facts, and how complete the results of probe and reason are.
    """
    lines = [
        "| facts | probe ms | recall@10 | reason ms | recall@10 | search ms | learn ms |",
        "|---|---|---|---|---|---|---|",
    ]
    learned: list[float] = []
    for size in SIZES:
        async with Database.open(folder / f"scale{size}.db") as database:
            row, cost = await _measure(Facts(database, SteadyClock()), database, size)
            lines.append(f"| {size:,} {row}")
            learned.append(cost)
    lines += [
        "",
        f"Learning a fact costs {learned[-1] / learned[0]:.2f}x at {SIZES[-1]:,} of what it costs at 1,000.",
    ]
    return "\n".join(lines)


async def _measure(facts: Facts, database: Database, size: int) -> tuple[str, float]:
    rng = random.Random(5)
    people = [f"{first} {last}" for first in _FIRST for last in _LAST]
    owner: dict[str, set[int]] = {}
    made: list[Fact] = []
    for number in range(size):
        one, other = rng.sample(people, 2)
        a, b, c = (f"word{int(rng.paretovariate(0.45)) % 5000}" for _ in range(3))
        text = rng.choice(_SAYS).format(e=one, f=other, a=a, b=b, c=c) + f" ({number})"
        names = tuple(name for name in (one, other) if name in text)
        made.append(
            Fact(
                scope=SCOPE,
                content=text,
                kind="project",
                origin="rule",
                created_at=START,
                entities=names,
            )
        )
    for start in range(0, size, 10_000):
        await database.write(
            lambda connection, some=made[start : start + 10_000]: _fill(connection, some)  # type: ignore[misc]
        )
    for number, fact in enumerate(made, 1):
        for name in fact.entities:
            owner.setdefault(name, set()).add(number)
    probed = rng.sample(sorted(owner), min(40, len(owner)))
    pairs = [
        (one, other)
        for one in probed[:20]
        for other in owner
        if other != one and owner[one] & owner[other]
    ][:40]
    probe = await _time_pairs([(name,) for name in probed], facts, owner)
    reason = await _time_pairs(pairs, facts, owner)
    asked = []
    for name in probed:
        began = time.perf_counter()
        question = f"What does {name} think of the deadline?"
        await facts.find_candidates(query_terms(question), entity_keys_in(question), SCOPES)
        asked.append(time.perf_counter() - began)
    added = []
    for number in range(200):
        fact = Fact(
            scope=SCOPE, content=f"Zed Tester noted item {number}", kind="project", origin="rule", created_at=START,
            entities=("Zed Tester",), attribute=f"zed tester|item {number % 5}", value=str(number),
        )  # fmt: skip
        began = time.perf_counter()
        await facts.learn(fact)
        added.append(time.perf_counter() - began)
    cost = statistics.median(added)
    cells = [*probe, *reason, f"{1000 * statistics.median(asked):.2f}", f"{1000 * cost:.2f}"]
    return f"| {' | '.join(cells)} |", cost


def _fill(connection: StoreConnection, made: Sequence[Fact]) -> None:
    """Insert many facts in one transaction, each as `learn` would write it."""
    for fact in made:
        insert_fact(connection, fact)


async def _time_pairs(
    asked: Sequence[tuple[str, ...]], facts: Facts, owner: dict[str, set[int]]
) -> tuple[str, str]:
    """Return the median milliseconds and recall@10 of searches for pairs of names."""
    times, recalls = [], []
    for names in asked:
        keys = [entity_key(name) for name in names]
        began = time.perf_counter()
        found = await facts.find_by_entities(keys, SCOPES, 10)
        times.append(time.perf_counter() - began)
        wanted = set.intersection(*(owner[name] for name in names))
        recalls.append(len({fact.id for fact in found} & wanted) / min(10, len(wanted)))
    return f"{1000 * statistics.median(times):.2f}", f"{statistics.mean(recalls):.2f}"


_FIRST_NAMES = """
Alice Bruno Chen Diana Emil Farah Goran Hana Igor Jana Kofi Lena Marco Nadia Oskar Petra Quinn Rosa
"""
_FIRST = _FIRST_NAMES.split()
_LAST_NAMES = """
Abbott Berger Castro Dubois Eriksen Fischer Garcia Horvat Ivanov Jensen Kovacs Larsen Moreau Novak
"""
_LAST = _LAST_NAMES.split()
_SAYS = (
    "{e} prefers {a} over {b} when working on {c}",
    "{e} moved the {a} deadline because of the {b} {c}",
    "{e} asked to keep {a} and {b} out of the {c} report",
    "{e} is allergic to {a} and dislikes {b} {c}",
    "{e} and {f} share the {a} budget for {b} {c}",
)
