"""Compares Mneme with other memories: the same conversations and questions, and the same changes.

Each memory gets three tests. Does it find the evidence for LoCoMo's questions, asked as typed? Does
its answer begin with the current state after changes (`tests/bench/changes.py`)? Are forgotten
messages missing from the results and from the files? Hermes runs with its own interpreter (``--peer
PYTHON`` or MNEME_PEER_PYTHON). Without one, it is skipped with a message. It finds only messages
that contain all words of a query, because a model usually writes its queries. So it is also asked
for any of the content words (``OR``), as the description of its tool advises.

Memory services call a model for each turn, so LoCoMo would take hours. They get the history of
`tests/bench/services.py` with fewer sessions instead.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.text.normalize import words_of
from core.text.terms import stop_words
from core.types import Scope
from tests.bench import changes, recall, services
from tests.bench.recall import RecallSet
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.scripted_model import ScriptedModel
from tests.fixtures.search_queries import search_query

WORKER = Path(__file__).resolve().with_name("hermes_worker.py")
FORGOTTEN_ROWS = 10
FOUND_LIMIT = 300
SECRET = "quokka7719"
SERVICE_SESSIONS = 40
"""Services ask a model about each turn, so they are told a fifth of the history of `services`."""
NO_PEER = "left out: Hermes, because no interpreter is named (`--peer` or MNEME_PEER_PYTHON)"


class Hermes:
    """Hermes' store and its search, in another process."""

    def __init__(self, python: str, *, is_any_word: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self._is_any_word = is_any_word
        self._process = subprocess.Popen(
            [python, "-P", str(WORKER), self.folder.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.folder.name,
            text=True,
        )

    def index(self, sessions: Sequence[Mapping[str, Any]]) -> None:
        for session in sessions:
            messages = [
                [said["id"], said.get("role", "user"), said["text"], said.get("ts", 0)]
                for said in session["messages"]
            ]
            self._ask({"add": [[session["id"], messages]]})

    def search(self, text: str, count: int) -> list[tuple[str, str]]:
        query = any_word(text) if self._is_any_word else text
        matches = self._ask({"search": query, "limit": count})
        return [(session, message) for session, message in matches]

    def delete(self, session: str) -> None:
        self._ask({"delete": session})

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _ask(self, request: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("The worker of Hermes has ended.")
        return json.loads(answer)


def any_word(text: str) -> str:
    """Return the content words of a question, joined with OR."""
    typed = [word.casefold() for word in words_of(text)]
    return " OR ".join([word for word in typed if word not in stop_words()] or typed)


def report(shared: Path, python: str | None) -> Iterator[str]:
    """Yield the lines of the table, and the names of the memories that can't run."""
    searchers: dict[str, Callable[[RecallSet], Any]] = dict(recall.SEARCHERS)
    if python:
        searchers["Hermes 0.19.0, as typed"] = lambda _: Hermes(python, is_any_word=False)
        searchers["Hermes 0.19.0, any word"] = lambda _: Hermes(python, is_any_word=True)
    yield "| memory | hit@1 / hit@5 / message recall@10 | p50 / p95 ms | current first | stale first |"
    yield "|---|---|---|---|---|"
    path = shared / "data" / "memory" / "changes-dev.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    for name, make in searchers.items():
        found = recall.scores(shared, "locomo", make)
        scores = recall.shown([100 * found[column] for column in recall.COLUMNS])
        times = f"{found['p50_ms']:.1f} / {found['p95_ms']:.1f}"
        current, stale = judge_mneme(rows) if name == "mneme" else judge_searcher(rows, make)
        yield f"| {name} | {scores} | {times} | {current} of {len(rows)} | {stale} |"
    yield ""
    yield "| forgotten means gone | in results | in its files |"
    yield "|---|---|---|"
    results, files = asyncio.run(forget_in_mneme())
    yield f"| mneme, `/forget` | {results} | {files} |"
    if python:
        results, files = forget_in_hermes(python)
        yield f"| Hermes 0.19.0, the session deleted | {results} | {files} |"
    yield ""
    yield "bm25s and FTS5 here have no files and no command that forgets."
    if not python:
        yield NO_PEER
    yield ""
    yield from services.report(SERVICE_SESSIONS)


def judge_mneme(rows: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """Return how many answers of the gateway without a model begin with the current state, and how
    many with the former one.
    """
    verdicts = [asyncio.run(changes.judge(row, has_helper=False)) for row in rows]
    return sum(one.is_right for one in verdicts), sum(one.is_stale for one in verdicts)


def judge_searcher(
    rows: Sequence[dict[str, Any]], make: Callable[[RecallSet], Any]
) -> tuple[int, int]:
    """Return for how many rows the best message has the current state, and for how many the former
    one.
    """
    current = stale = 0
    for row in rows:
        sessions = [
            {
                "id": f"s{number}",
                "messages": [
                    {"id": f"m{number}", "speaker": "Ana", "text": text, "ts": day * 86_400}
                ],
            }
            for number, (day, text) in enumerate(row["said"])
        ]
        texts = {f"s{number}": text for number, (_, text) in enumerate(row["said"])}
        searcher = make(RecallSet("changes", sessions, (), language=row["lang"]))
        try:
            searcher.index(sessions)
            matches = searcher.search(row["question"], len(sessions))
        finally:
            if hasattr(searcher, "close"):
                searcher.close()
        first = texts[matches[0][0]] if matches else ""
        is_right, is_stale = changes.judge_text(row, first)
        current += is_right
        stale += is_stale
    return current, stale


async def forget_in_mneme() -> tuple[str, str]:
    """Forget messages with /forget, and look for them in the results and in the files."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        async with open_gateway(home, ScriptedModel()) as harness:
            for number in range(FORGOTTEN_ROWS):
                await harness.say(f"locker {number} has the word {SECRET}")
            await harness.say(f"/forget {SECRET}")
            await harness.say("yes")
            scopes = frozenset((Scope.account("telegram", "42"),))
            query = search_query(scopes=scopes, text=SECRET, messages=FOUND_LIMIT)
            results = await harness.services.recall.recall(query)
            found = sum(SECRET in hit.snippet for hit in results.messages)
        return f"{found} of {FORGOTTEN_ROWS}", _count_in_files(home)


def forget_in_hermes(python: str) -> tuple[str, str]:
    """Delete a session, and look for its messages in the results and in the files."""
    hermes = Hermes(python, is_any_word=True)
    said = [
        {"id": f"m{number}", "text": f"locker {number} has the word {SECRET}"}
        for number in range(FORGOTTEN_ROWS)
    ]
    hermes.index([{"id": "s", "messages": said}])
    hermes.delete("s")
    found = len(hermes.search(SECRET, FOUND_LIMIT))
    hermes.close()
    return f"{found} of {FORGOTTEN_ROWS}", _count_in_files(Path(hermes.folder.name))


def _count_in_files(folder: Path) -> str:
    """Return how many files of a folder contain the forgotten word."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    count = sum(SECRET.encode() in path.read_bytes() for path in files)
    return f"{count} of {len(files)} files"
