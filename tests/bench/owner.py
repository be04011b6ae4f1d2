"""Measures whether a person who owns 1 % of a store searches as fast as in a store of their own.

``python tests/bench/owner.py CORPUS.py SESSIONS`` fills two stores in temporary files. One has all
sessions of the shared corpus: every hundredth session belongs to one person, and the others to
ninety-nine people. The other store has only the sessions of that person. The same searches run in
both stores alternately. 50,000 sessions are a million messages.
"""

from __future__ import annotations

import asyncio
import importlib
import random
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from core.search.recall import Recall
from core.store.sqlite.database import Database
from core.types import Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.search_queries import search_query

PEOPLE = 100
PER_KIND = 12
ROUNDS = 5
BATCH_SESSIONS = 200
SPARE_MS = 6.0
"""What explicit operators may take besides twice the time in a store of one's own."""
_RUNS = re.compile(r"[\u4e00-\u9fff]{8,}")
_Session = tuple[int, Mapping[str, Any], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A kind of search and its texts.

    It also has the milliseconds that a search may take in addition to twice the time in the small
    store.
    """

    kind: str
    texts: tuple[str, ...]
    spare_ms: float


async def measure(folder: Path, corpus: ModuleType, sessions: int) -> str:
    """Return the table in Markdown."""
    async with (
        Database.open(folder / "all.db") as everybody,
        Database.open(folder / "own.db") as alone,
    ):
        await _fill(everybody, _numbered(corpus, sessions))
        await _fill(alone, (one for one in _numbered(corpus, sessions) if one[0] % PEOPLE == 0))
        lines = await alone.read(lambda connection: _lines(connection, frozenset(corpus.FUNCTION)))
        sizes = [await one.read(_size) for one in (everybody, alone)]
        stores = [Recall(one, SteadyClock()) for one in (everybody, alone)]
        rows = [await _row(stores, line) for line in lines]
    head = f"{sizes[0]} messages, of which the person has {sizes[1]}.\n\n"
    head += "| search | in the store of all, p50 / p95 ms | alone, p50 / p95 ms | ratio | limit, ms | |\n"
    head += "|---|---|---|---|---|---|\n"
    return head + "\n".join(rows)


def _numbered(corpus: ModuleType, count: int) -> Iterable[_Session]:
    """Return the sessions of the corpus with their numbers."""
    return (
        (number, session, messages)
        for number, (session, messages) in enumerate(corpus.sessions(count))
    )


async def _fill(database: Database, sessions: Iterable[_Session]) -> None:
    recall = Recall(database, SteadyClock())
    remaining = iter(sessions)
    while batch := list(islice(remaining, BATCH_SESSIONS)):
        await database.write(_storing(batch))
    while await recall.tend():
        pass


def _storing(batch: Sequence[_Session]) -> Callable[[sqlite3.Connection], None]:
    def store(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT OR IGNORE INTO addresses (id, platform, chat_id) VALUES (1, 'import', '1')"
        )
        for number, _, messages in batch:
            person = number % PEOPLE
            connection.execute(
                "INSERT OR IGNORE INTO scopes (id, key) VALUES (:id, :key)",
                {"id": person + 1, "key": _scope(person).key},
            )
            at = [message["ts"] for message in messages]
            connection.execute(
                """
                INSERT INTO sessions (id, address_id, scope_id, started_at, last_at, ended_at, message_count)
                VALUES (:id, 1, :scope, :started, :last, :last, :messages)
                """,
                {
                    "id": number + 1,
                    "scope": person + 1,
                    "started": at[0],
                    "last": at[-1],
                    "messages": len(at),
                },
            )
            connection.executemany(
                """
                INSERT INTO messages (session_id, address_id, role, text, created_at)
                VALUES (:session, 1, :role, :text, :ts)
                """,
                [{**message, "session": number + 1} for message in messages],
            )

    return store


def _lines(connection: sqlite3.Connection, stopwords: frozenset[str]) -> list[_Line]:
    """Return searches for the person's own messages. They are the same in every run."""
    choice = random.Random(7)
    texts = [row[0] for row in connection.execute("SELECT text FROM messages ORDER BY id")]
    counts: dict[str, int] = {}
    for text in texts:
        for word in set(_words(text, stopwords)):
            counts[word] = counts.get(word, 0) + 1
    by_count = sorted(counts, key=lambda word: (counts[word], word))
    rare = choice.sample(by_count[: len(by_count) // 2], PER_KIND)
    medium = choice.sample(
        [word for word in by_count if 0.002 <= counts[word] / len(texts) <= 0.02], PER_KIND
    )
    common = by_count[-PER_KIND:]
    long = [words for text in texts if len(words := _words(text, stopwords)) > 8]
    long = choice.sample(long, PER_KIND)
    runs = [run for text in texts for run in _RUNS.findall(text)]
    chinese = choice.sample(runs, PER_KIND)
    kinds = {
        "a rare word": rare,
        "a medium word": medium,
        "a common word": common,
        "two words": [f"{words[1]} {words[2]}" for words in long],
        "one or the other": [
            f"{one} OR {other}" for one, other in zip(medium, common, strict=True)
        ],
        "one without the other": [
            f"{one} -{other}" for one, other in zip(common, medium, strict=True)
        ],
        "a phrase": [
            f'"{words[2]} {words[3]}" OR "{words[4]} {words[5]} {words[6]}"' for words in long
        ],
        "a beginning": [f"{word[:5]}*" for word in medium],
        "Chinese, 1": [run[3] for run in chinese],
        "Chinese, 2": [run[2:4] for run in chinese],
        "Chinese, 4": [run[1:5] for run in chinese],
    }
    asked = [f"What did we say about the {words[0]}, {words[3]} and {words[5]}?" for words in long]
    asked += [f"什么时候{run[1:6]}？" for run in chinese[: PER_KIND // 3]]
    lines = [_Line(kind="a question", texts=tuple(asked), spare_ms=0.0)]
    return lines + [
        _Line(kind=kind, texts=tuple(some), spare_ms=SPARE_MS) for kind, some in kinds.items()
    ]


async def _row(stores: Sequence[Recall], line: _Line) -> str:
    taken: tuple[list[float], ...] = tuple([] for _ in stores)
    for _ in range(ROUNDS):
        for text in line.texts:
            query = search_query(scopes=frozenset({_scope(0)}), text=text, sessions=3)
            for store, times in zip(stores, taken, strict=True):
                started = time.perf_counter()
                await store.recall(query)
                times.append((time.perf_counter() - started) * 1e3)
    (together, together_95), (alone, alone_95) = [
        (statistics.median(times), statistics.quantiles(times, n=20)[-1]) for times in taken
    ]
    limit = 2 * alone + line.spare_ms
    return (
        f"| {line.kind} | {together:.2f} / {together_95:.2f} | {alone:.2f} / {alone_95:.2f} | {together / alone:.1f} "
        f"| {limit:.1f} | {'met' if together <= limit else 'NOT MET'} |"
    )


def _words(text: str, stopwords: frozenset[str]) -> list[str]:
    words = (word.strip(".,").lower() for word in text.split())
    return [word for word in words if word.isascii() and word not in stopwords]


def _scope(person: int) -> Scope:
    return Scope.account("telegram", str(person))


def _size(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT COUNT(*) FROM messages").fetchone()[0])


def main() -> None:
    """Print the table."""
    corpus, sessions = Path(sys.argv[1]), int(sys.argv[2])
    sys.path.insert(0, str(corpus.parent))
    with tempfile.TemporaryDirectory() as folder:
        table = asyncio.run(measure(Path(folder), importlib.import_module(corpus.stem), sessions))
    sys.stdout.write(table + "\n")


if __name__ == "__main__":
    main()
