"""Compares a store on PostgreSQL with state.db: import, disk space, and questions at three sizes.

``python -m tests.bench --only engines --messages 1000000`` fills a file and a real server with the
same messages of one person. At a sixteenth, a quarter and all of the messages, it asks both engines
the same questions, one engine right after the other. The server has the settings of its
installation, so each transaction is written to the disk.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from core.search.recall import Recall
from core.search.rendering import to_json
from core.store.archive import Archive
from core.store.engine import Connection, Database
from core.store.postgres.database import Database as PostgresDatabase
from core.store.sqlite.database import Database as SqliteDatabase
from core.transfer.formats import read_lines
from core.types import Scope
from tests.bench.questions import LONG_WORDS, Script, content_words, json_lines, make_question
from tests.fixtures.clock import SteadyClock
from tests.fixtures.postgres import MISSING, PostgresServer, find_programs
from tests.fixtures.search_queries import search_query

SCOPE = Scope.account("terminal", "local")
ENGINES = ("state.db", "PostgreSQL")
SHARES = (16, 4, 1)
"""The questions are asked at these fractions of the messages: 1/16, 1/4 and all."""
MESSAGES = 1_000_000
QUESTIONS = 40
"""How many questions of each kind are asked at each size."""
SAMPLED_SESSIONS = 400
"""Words and phrases of the questions come from this many of the first sessions."""
_TEXT_BYTES = "SELECT SUM(length(CAST(text AS blob))) FROM messages"

Session = tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]


@dataclass
class Engine:
    """A store and its measured figures."""

    name: str
    database: Database
    recall: Recall
    # The seconds spent on storing messages, and on the index over conversations.
    import_s: float = 0.0
    index_s: float = 0.0
    # The milliseconds of each question, by kind and number of messages.
    times_ms: dict[tuple[str, int], list[float]] = field(default_factory=dict)


async def measure(folder: Path, shared: Path, message_count: int) -> Iterator[str]:
    """Return the lines of the Markdown tables."""
    programs = find_programs()
    if programs is None:
        return iter([f"left out: {MISSING}"])
    corpus = _load_corpus(shared)
    questions = _make_questions(corpus)
    async with _open_engines(folder, programs) as (engines, measure_server):
        sessions = corpus.sessions(message_count)
        sizes: list[int] = []
        for share in SHARES:
            wanted = message_count // share - sum(sizes[-1:])
            added = await _fill(engines, _take(sessions, wanted))
            sizes.append(added + sum(sizes[-1:]))
            _report_progress(engines, sizes[-1])
            await _ask(engines, questions, sizes[-1])
            _report_times(engines, sizes[-1])
        text_bytes = await engines[0].database.read(_count_text_bytes)
        disk_bytes = (_measure_files(folder), await measure_server())
    return _write_tables(engines, sizes, text_bytes, disk_bytes)


def _report_progress(engines: Sequence[Engine], size: int) -> None:
    costs = ", ".join(
        f"{engine.name} {engine.import_s:.0f} + {engine.index_s:.0f} s" for engine in engines
    )
    sys.stderr.write(f"{size:,} messages are stored and indexed: {costs}\n")


def _report_times(engines: Sequence[Engine], size: int) -> None:
    for engine in engines:
        times = [
            f"{kind} {_percentiles(times_ms)}"
            for (kind, asked_size), times_ms in engine.times_ms.items()
            if asked_size == size
        ]
        sys.stderr.write(f"p50 / p95 ms, {engine.name}: {', '.join(times)}\n")


@asynccontextmanager
async def _open_engines(folder: Path, programs: Path) -> AsyncIterator[Any]:
    """Open both stores. Yield them, and a function that returns the server's bytes."""
    async with contextlib.AsyncExitStack() as stack:
        # A server that root starts runs as another user, who can't enter `folder`.
        parent = Path(tempfile.gettempdir())
        server = PostgresServer(programs, folder=parent, settings={"listen_addresses": ""})
        stack.callback(server.close)
        server.start()
        openings: list[AbstractAsyncContextManager[Any]] = [
            SqliteDatabase.open(folder / "state.db"),
            PostgresDatabase.open(server.url_of(server.create_database())),
        ]
        databases = [await stack.enter_async_context(opening) for opening in openings]
        engines = [
            Engine(name, database, Recall(database, SteadyClock()))
            for name, database in zip(ENGINES, databases, strict=True)
        ]

        async def measure_server() -> int:
            statement = "SELECT pg_database_size(current_database())"
            row = await databases[1].fetch_one(statement, {})
            return int(row[0])

        yield engines, measure_server


def _load_corpus(shared: Path) -> ModuleType:
    folder = str(shared / "bench" / "speed")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module("corpus")


def _take(sessions: Iterator[Session], message_count: int) -> list[Session]:
    """Return sessions with at least this many messages."""
    taken: list[Session] = []
    count = 0
    while count < message_count:
        session = next(sessions)
        taken.append(session)
        count += len(session[1])
    return taken


async def _fill(engines: Sequence[Engine], sessions: Sequence[Session]) -> int:
    """Import the sessions into each store. Return how many messages they have."""
    count = 0
    for engine in engines:
        started_s = time.perf_counter()
        lines = (line for session, said in sessions for line in json_lines(session["id"], said))
        report = await Archive(engine.database).import_records(read_lines(lines), lambda _: None)
        engine.import_s += time.perf_counter() - started_s
        count = report.imported_count

        started_s = time.perf_counter()
        while await engine.recall.tend():
            pass
        engine.index_s += time.perf_counter() - started_s
    return count


def _make_questions(corpus: ModuleType) -> dict[str, list[str]]:
    """Return questions of four kinds about the first sessions, which are in the store at any size."""
    choice = random.Random(5)
    english: list[str] = []
    chinese: list[str] = []
    for _, said in islice(corpus.sessions(SAMPLED_SESSIONS), SAMPLED_SESSIONS):
        for message in said:
            (english if message["text"].isascii() else chinese).append(message["text"])
    script = Script("English", corpus.FUNCTION)
    words = [list(content_words(text, corpus.FUNCTION)) for text in english]
    long_texts = [text.split() for text in english if len(text.split()) >= LONG_WORDS]
    return {
        "three words": [
            make_question(choice, script, some)
            for some in choice.sample([some for some in words if len(some) > 2], QUESTIONS)
        ],
        "sixty words": [
            " ".join(text[:LONG_WORDS]).rstrip(".") + "?"
            for text in choice.sample(long_texts, QUESTIONS)
        ],
        "a phrase of three words": [
            f'"{" ".join(text[2:5])}"'.replace(".", "")
            for text in choice.sample(long_texts, QUESTIONS)
        ],
        "two Chinese characters": [
            text[:2]
            for text in choice.sample([text for text in chinese if len(text) > 4], QUESTIONS)
        ],
    }


async def _ask(engines: Sequence[Engine], questions: Mapping[str, list[str]], size: int) -> None:
    """Time each question on both engines. The engine that begins alternates."""
    for kind, texts in questions.items():
        for number, text in enumerate(texts):
            for engine in engines if number % 2 else reversed(engines):
                query = search_query(scopes=frozenset((SCOPE,)), text=text, sessions=3)
                started_s = time.perf_counter()
                json.dumps(to_json(await engine.recall.recall(query)), ensure_ascii=False)
                taken_ms = (time.perf_counter() - started_s) * 1e3
                engine.times_ms.setdefault((kind, size), []).append(taken_ms)


def _count_text_bytes(connection: Connection) -> int:
    return int(connection.execute(_TEXT_BYTES, {}).fetchone()[0])


def _measure_files(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("state.db*"))


def _write_tables(
    engines: Sequence[Engine], sizes: Sequence[int], text_bytes: int, disk_bytes: Sequence[int]
) -> Iterator[str]:
    """Yield a table of the costs and one of the questions."""
    yield f"| {sizes[-1]:,} messages, {text_bytes / 1e6:,.0f} MB of text | {' | '.join(ENGINES)} | ratio |"
    yield "|---" * (len(ENGINES) + 2) + "|"
    rates = [sizes[-1] / (engine.import_s + engine.index_s) for engine in engines]
    yield _write_row(
        "messages imported and indexed per second",
        [f"{rate:,.0f}" for rate in rates],
        rates[1] / rates[0],
    )
    for name, seconds in (
        ("seconds to store them", [engine.import_s for engine in engines]),
        ("seconds to index the conversations", [engine.index_s for engine in engines]),
    ):
        yield _write_row(name, [f"{value:,.0f}" for value in seconds], seconds[1] / seconds[0])
    shares = [size / text_bytes for size in disk_bytes]
    yield _write_row(
        "disk space compared with the text",
        [f"{share:.1f}x" for share in shares],
        shares[1] / shares[0],
    )
    yield ""

    columns = [f"{name}: {size:,}" for size in sizes for name in ENGINES]
    yield f"| question, p50 / p95 ms | {' | '.join(columns)} | exponents of p50 |"
    yield "|---" * (len(columns) + 2) + "|"
    for kind in dict.fromkeys(kind for kind, _ in engines[0].times_ms):
        cells = [_percentiles(engine.times_ms[kind, size]) for size in sizes for engine in engines]
        exponents = [_exponent(engine, kind, sizes[0], sizes[-1]) for engine in engines]
        shown = " / ".join(f"{exponent:.2f}" for exponent in exponents)
        yield f"| {kind} | {' | '.join(cells)} | {shown} |"


def _write_row(name: str, values: Sequence[str], ratio: float) -> str:
    return f"| {name} | {' | '.join(values)} | {ratio:.2f} |"


def _percentiles(times_ms: Sequence[float]) -> str:
    return f"{statistics.median(times_ms):.1f} / {statistics.quantiles(times_ms, n=20)[-1]:.1f}"


def _exponent(engine: Engine, kind: str, small: int, large: int) -> float:
    """Return the exponent by which the time grows with the messages: 0 is constant, 1 is linear."""
    growth = statistics.median(engine.times_ms[kind, large]) / statistics.median(
        engine.times_ms[kind, small]
    )
    return math.log(growth) / math.log(large / small)
