"""Measures how long a question takes in English and in other scripts, with three and with sixty
words, and how fast a long history of short lines is imported.

``python tests/bench/questions.py CORPUS.py STORES.py SESSIONS``: 10,000 sessions of the shared
corpus are 200,000 messages. Each question is asked once in this process, and its answer is written
as JSON. For other scripts, the corpus is spelled in their letters with their own common words. Each
script has a part of one store, so its questions search as much history as those in English. Imports
are compared with bare SQLite, which gets the same lines.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from core.search.recall import Recall
from core.search.rendering import to_json
from core.store.archive import Archive
from core.store.sqlite.database import Database
from core.text.normalize import language_data
from core.transfer.formats import ImportOptions, read_lines
from core.transfer.source import Source
from core.types import Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.search_queries import search_query

SCOPE = Scope.account("terminal", "local")
ASKED = 40
LONG_WORDS = 60
LIMIT_MS = (12.0, 25.0)
LONG_LIMIT, SCRIPT_LIMIT, IMPORT_LIMIT = 3.0, 2.0, 0.6
MEETING_LINES, SPEAKERS, LINES_A_MEETING, ROUNDS = 120_000, 5, 400, 3
Message = Mapping[str, Any]
Talk = tuple[Mapping[str, Any], Sequence[Message]]

_LATIN = "abcdefghijklmnoprstuvz"
_ALPHABETS = {
    "Arabic": "ابتدهفغحيجكلمنوبقرسطوفز",
    "Russian": "абцдефгхийклмнопрстувз",
    "Greek": "αβκδεφγχιζκλμνοπρστυβξ",
    "Hindi": "ाबचदेफगहिजकलमनोपरसटुवझ",
}
_SYLLABLE = re.compile("([^aeiou]*)([aeiou]+)")
_ONSETS, _VOWELS, _HANGUL, _THAI = 19, 21, 28, "าะิีึืุู"
_HAN_A_WORD = 2


class Script(NamedTuple):
    """A way to write the words of the corpus. The words in `common` replace its function words."""

    name: str
    common: Sequence[str]
    is_spaced: bool = True

    def word(self, latin: str) -> str:
        if self.name == "English":
            return latin
        if self.name in _ALPHABETS:
            return latin.translate(str.maketrans(_LATIN, _ALPHABETS[self.name][: len(_LATIN)]))
        blocks = "".join(self._block(*found.groups()) for found in _SYLLABLE.finditer(latin))
        return blocks[:_HAN_A_WORD] if self.name == "Chinese" else blocks

    def _block(self, onset: str, vowel: str) -> str:
        sound = sum(map(ord, onset)) % _ONSETS, sum(map(ord, vowel)) % _VOWELS
        if self.name == "Korean":
            return chr(0xAC00 + (sound[0] * _VOWELS + sound[1]) * _HANGUL)
        if self.name == "Thai":
            return chr(0x0E01 + sum(map(ord, onset)) % 44) + _THAI[sound[1] % len(_THAI)]
        return chr(0x4E00 + sound[0] * _VOWELS + sound[1])

    def text(self, words: Iterable[str]) -> str:
        return ("" if not self.is_spaced else " ").join(words)


def scripts(corpus: ModuleType) -> list[Script]:
    """Return all scripts, English first."""
    known, eastern = language_data("languages")["scripts"], language_data("cjk")
    spaced = [
        Script(name, known[name.casefold()]["words"].split())
        for name in ("Hindi", "Arabic", "Russian", "Greek")
    ]
    return [
        Script("English", corpus.FUNCTION),
        *spaced,
        Script("Korean", eastern["korean"].split()),
        Script("Chinese", eastern["chinese"].split(), is_spaced=False),
        Script("Thai", eastern["thai"].split(), is_spaced=False),
    ]


class Asked(NamedTuple):
    """Questions of one kind, and their times in milliseconds."""

    kind: str
    texts: Sequence[str]
    taken_ms: list[float]

    @property
    def middle(self) -> float:
        return statistics.median(self.taken_ms)

    @property
    def slowest(self) -> float:
        """Return the 95th percentile in milliseconds."""
        return statistics.quantiles(self.taken_ms, n=20)[-1]


async def measure(folder: Path, corpus: ModuleType, stores: ModuleType, sessions: int) -> str:
    """Return the tables in Markdown."""
    parts = [
        await _measure_lengths(folder / "lengths.db", corpus, sessions),
        await _measure_scripts(folder / "scripts.db", corpus, sessions),
    ]
    return "\n\n".join([*parts, await _measure_imports(folder, stores)])


async def _measure_lengths(path: Path, corpus: ModuleType, sessions: int) -> str:
    """Measure questions of three words, and pasted ones."""
    choice = random.Random(5)
    said = [
        one["text"]
        for _, messages in corpus.sessions(sessions)
        for one in messages
        if one["text"].isascii()
    ]
    english = Script("English", corpus.FUNCTION)
    words = [list(content_words(text, corpus.FUNCTION)) for text in choice.sample(said, 3 * ASKED)]
    short = [make_question(choice, english, some) for some in words if len(some) > 2][:ASKED]
    pasted = choice.sample([text for text in said if len(text.split()) >= LONG_WORDS], ASKED)
    long = [" ".join(text.split()[:LONG_WORDS]).rstrip(".") + "?" for text in pasted]
    asked = [Asked("three words", short, []), Asked("sixty words", long, [])]
    held = await _ask(path, ((one, messages) for one, messages in corpus.sessions(sessions)), asked)
    few, many = asked
    is_quick = few.middle <= LIMIT_MS[0] and few.slowest <= LIMIT_MS[1]
    rows = [
        _row(few, "1.0", f"{LIMIT_MS[0]:.0f} / {LIMIT_MS[1]:.0f} ms", is_quick),
        _row(
            many,
            f"{many.middle / few.middle:.1f}",
            f"{LONG_LIMIT}x",
            many.middle <= LONG_LIMIT * few.middle,
        ),
    ]
    return _table(f"{held:,} messages of the corpus", rows)


async def _measure_scripts(path: Path, corpus: ModuleType, sessions: int) -> str:
    """Measure the same questions about the same history in other scripts."""
    written = scripts(corpus)
    choice = random.Random(6)
    said = [
        one["text"]
        for _, messages in corpus.sessions(200)
        for one in messages
        if one["text"].isascii()
    ]
    words = [
        some
        for text in choice.sample(said, 3 * ASKED)
        if len(some := list(content_words(text, corpus.FUNCTION))) > 2
    ]
    asked = [
        Asked(one.name, [make_question(choice, one, some) for some in words[:ASKED]], [])
        for one in written
    ]

    def spelt() -> Iterator[Talk]:
        for number, (session, messages) in enumerate(corpus.sessions(sessions)):
            script = written[number % len(written)]
            yield (
                session,
                [{**one, "text": _spelt(script, one["text"], corpus.FUNCTION)} for one in messages],
            )

    held = await _ask(path, spelt(), asked)
    english = asked[0].middle
    rows = [
        _row(
            one,
            f"{one.middle / english:.1f}",
            f"{SCRIPT_LIMIT}x",
            one.middle <= SCRIPT_LIMIT * english,
        )
        for one in asked
    ]
    return _table(f"{held:,} messages, an eighth in each of the scripts", rows)


async def _ask(path: Path, talks: Iterable[Talk], kinds: Sequence[Asked]) -> int:
    """Time the kinds of questions alternately over a store of the talks.

    Return its number of messages.
    """
    async with Database.open(path) as database:
        recall, archive = Recall(database, SteadyClock()), Archive(database)
        lines = (
            line for number, talk in enumerate(talks) for line in json_lines(f"s{number}", talk[1])
        )
        report = await archive.import_records(read_lines(lines), lambda _: None)
        while await recall.tend():
            pass
        for number in range(ASKED):
            for kind in kinds:
                query = search_query(
                    scopes=frozenset((SCOPE,)), text=kind.texts[number], sessions=3
                )
                started = time.perf_counter()
                json.dumps(to_json(await recall.recall(query)), ensure_ascii=False)
                kind.taken_ms.append((time.perf_counter() - started) * 1e3)
    return report.imported_count


async def _measure_imports(folder: Path, stores: ModuleType) -> str:
    """Measure imports of short lines of several speakers, from a file and from records in memory.

    The best of several rounds counts.
    """
    meetings = list(_make_meetings())
    file = _write_meetings(folder, meetings)
    bare_s, taken = float("inf"), dict.fromkeys(("a file", "records"), float("inf"))
    for number in range(ROUNDS):
        bare_s = min(bare_s, _time_bare_sqlite(folder / f"bare{number}", stores, meetings))
        for name in taken:
            taken[name] = min(
                taken[name],
                await _time_import(folder / f"{name}{number}.db", file, is_read=name == "records"),
            )
    head = f"{MEETING_LINES:,} lines of meetings; bare SQLite takes in {MEETING_LINES / bare_s:,.0f} a second.\n\n"
    head += "| import of | lines/s | ratio | limit | |\n|---|---|---|---|---|\n"
    return head + "\n".join(
        f"| {name} | {MEETING_LINES / took_s:,.0f} | {bare_s / took_s:.2f} | {IMPORT_LIMIT} "
        f"| {'met' if bare_s / took_s >= IMPORT_LIMIT else 'NOT MET'} |"
        for name, took_s in taken.items()
    )


def _write_meetings(folder: Path, meetings: Sequence[Talk]) -> Path:
    file = folder / "meetings.jsonl"
    lines = (
        line for number, (_, said) in enumerate(meetings) for line in json_lines(f"m{number}", said)
    )
    file.write_text("\n".join(lines), "utf-8")
    return file


def _time_bare_sqlite(folder: Path, stores: ModuleType, meetings: Sequence[Talk]) -> float:
    """Return how many seconds bare SQLite needs to insert the lines."""
    folder.mkdir()
    floor = stores.Floor()
    floor.open(folder)
    started = time.perf_counter()
    for session, said in meetings:
        floor.fill(session, said)
    took_s = time.perf_counter() - started
    floor.close()
    return took_s


async def _time_import(path: Path, file: Path, *, is_read: bool) -> float:
    """Return how many seconds Mneme needs. With `is_read`, the file is already read."""
    async with Database.open(path) as database:
        with Source.open(file, ImportOptions()) as source:
            records = list(source.read_records()) if is_read else source.read_records()
            started = time.perf_counter()
            report = await Archive(database).import_records(records, lambda _: None)
            took_s = time.perf_counter() - started
    assert report.imported_count == MEETING_LINES
    return took_s


def _make_meetings() -> Iterator[Talk]:
    """Return sessions of short lines in which the speaker changes with each line."""
    choice = random.Random(9)
    vocabulary = [
        f"{one}{other}" for one in ("pla", "mi", "ros", "ten", "ku", "bar") for other in _ENDINGS
    ]
    for number in range(MEETING_LINES // LINES_A_MEETING):
        started = 1_700_000_000.0 + 86_400 * number
        said = [
            {
                "role": "user",
                "text": " ".join(choice.choices(vocabulary, k=choice.randint(3, 12))),
                "ts": started + 5 * place,
                "sender": f"Speaker {choice.randrange(SPEAKERS)}",
            }
            for place in range(LINES_A_MEETING)
        ]
        yield {"id": f"m{number}", "started_at": started}, said


_ENDINGS = [
    f"{one}{other}{last}"
    for one in "dfgklmn"
    for other in "aeiou"
    for last in ("", "n", "ra", "to", "s")
]


def json_lines(session: str, messages: Sequence[Message]) -> Iterator[str]:
    for number, message in enumerate(messages):
        at = datetime.fromtimestamp(message["ts"], UTC).isoformat()
        line = {
            "session": session,
            "role": message["role"],
            "text": message["text"],
            "at": at,
            "id": str(number),
        }
        yield json.dumps(
            line | ({"sender": message["sender"]} if "sender" in message else {}),
            ensure_ascii=False,
        )


def content_words(text: str, function: Sequence[str]) -> Iterator[str]:
    return (word for word in text.lower().replace(".", "").split() if word not in function)


def _spelt(script: Script, text: str, function: Sequence[str]) -> str:
    if script.name == "English" or not text.isascii():
        return text
    common = dict(zip(function, script.common, strict=False))
    words = text.lower().replace(".", "").split()
    return script.text(
        common.get(word, script.common[0]) if word in function else script.word(word)
        for word in words
    )


def make_question(choice: random.Random, script: Script, words: Sequence[str]) -> str:
    """Return three words of a message among common words."""
    common = choice.sample(list(script.common), 6)
    one, other, last = map(script.word, words[:3])
    return script.text([*common[:4], one, common[4], other, common[5], last]) + "?"


def _row(one: Asked, ratio: str, limit: str, is_met: bool) -> str:
    met = "met" if is_met else "NOT MET"
    return f"| {one.kind} | {one.middle:.1f} / {one.slowest:.1f} | {ratio} | {limit} | {met} |"


def _table(of_what: str, rows: Sequence[str]) -> str:
    head = f"{of_what}; {ASKED} questions of each kind, each asked once.\n\n"
    return (
        head
        + "| question | p50 / p95 ms | ratio | limit | |\n|---|---|---|---|---|\n"
        + "\n".join(rows)
    )


def main() -> None:
    """Print the tables."""
    corpus, stores, sessions = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    sys.path.insert(0, str(corpus.parent))
    with tempfile.TemporaryDirectory() as folder:
        made = importlib.import_module(corpus.stem), importlib.import_module(stores.stem)
        sys.stdout.write(asyncio.run(measure(Path(folder), *made, sessions)) + "\n")


if __name__ == "__main__":
    main()
