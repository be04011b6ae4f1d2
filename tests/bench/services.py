"""Measures how much memory services find in a generated history, compared with the built-in memory.

The same manager calls each of them. Five people have conversations in turn about the same
acquaintances, with different facts. A tenth of the facts end an earlier one. Then each person asks
questions. Only one person states each value, so the value in a result shows whose fact it is. The
engines call a model server that follows rules and makes embeddings from words
(`tests/services/model_server.py`). ``python -m tests.bench.services NAME SESSIONS`` measures one
service and prints the result as JSON.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import structlog

from core.memory.plugins import Plugins
from core.memory.provider import MemoryProvider
from core.search.recall import HistoryProvider, Recall
from core.store.sqlite.database import Database
from core.types import Completion, Request, Scope, Usage
from tests.fixtures.facts_memory import ZONE, facts_memory
from tests.fixtures.provider_harness import ProviderHarness, harness
from tests.fixtures.scheduler_harness import RunningClock
from tests.services.engines.engine import ENGINES, ROOT, Running

SESSIONS = 200
PEOPLE, A_SESSION = 5, 3
"""So many facts, each in a message of its own."""
BUILT_IN, WITH_MODEL, WITH_HRR = (
    "built in",
    "built in, facts by a model",
    "built in, facts by a model, HRR 0.3",
)
TURN_S = 10.0
"""A slow answer is measured here, not left out."""
LIMIT_S = 1800.0
"""For one memory; what it was not told by then is said."""
PACKAGE = Path(__file__).resolve().parents[2] / "core" / "memory" / "services"

_NAMES = """
Alma Bruno Carla Diego Edith Fabio Greta Hugo Irene Jonas Karin Lukas Marta Nuno Olga Paulo Quinn Rita Sven Tilda Ulla
Vera Walter Xenia Yann Zelda Amos Berta Cyril Dora
"""
_CHATTER = ("", "Long day today. ", "It rains again. ", "I had no sleep. ", "Lunch was late. ")


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """The sentences for a fact and for its change, and the questions about it.

    One question has the words of the sentence, and the other one has different words.
    """

    told: str
    changed: str
    asked: str
    otherwise: str


_KINDS = (
    _Kind(
        told="{name} lives in {value}.",
        changed="{name} moved to {value}.",
        asked="Where does {name} live?",
        otherwise="Which town is the home of {name}?",
    ),
    _Kind(
        told="{name} works at {value}.",
        changed="{name} works at {value} now.",
        asked="Where does {name} work?",
        otherwise="Who is the employer of {name}?",
    ),
    _Kind(
        told="{name}'s favourite band is {value}.",
        changed="{name}'s favourite band is {value} now.",
        asked="What is {name}'s favourite band?",
        otherwise="Which music does {name} listen to most?",
    ),
    _Kind(
        told="{name} drives a {value}.",
        changed="{name} drives a {value} now.",
        asked="What does {name} drive?",
        otherwise="Which car does {name} own?",
    ),
)


_FACT = re.compile(
    r"(?P<name>\w+)('s favourite band is| (?P<verb>lives in|moved to|works at|drives a)) (?P<value>\w+)( now)?\."
)
_SINGLE = {"lives in": "home", "moved to": "home", "works at": "work"}


class _FactModel:
    """A model that reads the fact of each message, by the same rules as the model server of the
    engines.
    """

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        """See `core.ports.Model`."""
        told = []
        for line in "\n".join(
            block["text"] for turn in request.messages for block in turn["content"]
        ).splitlines():
            shown = json.loads(line)
            if "message" not in shown:
                # A fact that is held already.
                continue
            for found in _FACT.finditer(shown["text"]):
                attribute = _SINGLE.get(found["verb"] or "")
                fact = {
                    "about": found["name"],
                    "attribute": attribute,
                    "value": found["value"] if attribute else None,
                }
                names = [found["name"], found["value"]]
                told.append(
                    {
                        "message": shown["message"],
                        "content": found[0].rstrip("."),
                        "names": names,
                        **fact,
                    }
                )
        text = json.dumps(told)
        block = {"type": "text", "text": text}
        return Completion(
            blocks=(block,), text=text, stop_reason="end_turn", usage=Usage(), model=request.model
        )


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about a value.

    `before` is the former value that `value` ended. `group` is "as told", "in other words" or
    "changed".
    """

    person: int
    text: str
    value: str
    before: str
    group: str


@dataclass(kw_only=True)
class History:
    """The generated history.

    `sessions` are the speakers and their messages. `values` has the owner of each value.
    """

    sessions: list[tuple[int, list[str]]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    values: dict[str, int] = field(default_factory=dict)


def _make_names(rng: random.Random) -> Iterator[str]:
    """Yield made-up names, each once."""
    known = set[str]()
    while True:
        syllables = (
            "".join(rng.choice(part) for part in ("bdfgklmnprstvz", "aeiou", "lmnrs"))
            for _ in range(3)
        )
        if (name := "".join(syllables).capitalize()) not in known:
            known.add(name)
            yield name


def history(sessions: int = SESSIONS) -> History:
    """Return the history with this number of sessions. It is the same in every run.

    Each session has three facts, and a tenth of them end an earlier one.
    """
    rng, made = random.Random(7), History()
    values, each = _make_names(random.Random(11)), sessions // PEOPLE
    own: list[list[list[str]]] = []
    for person in range(PEOPLE):
        count = each * A_SESSION
        changes = count // 10
        about = [(name, kind) for name in _NAMES.split() for kind in _KINDS]
        if count - changes > len(about):
            raise ValueError(
                f"there are names for {len(about)} facts of a person, and not for more sessions"
            )
        rng.shuffle(about)
        about = about[: count - changes]
        first = {key: next(values) for key in about}
        later = {key: next(values) for key in rng.sample(about[: len(about) // 2], changes)}
        # What ends a fact is said in the second half, the fact in the first.
        begin = [(key, first[key], key[1].told) for key in about]
        told = begin[: count // 2] + rng.sample(
            begin[count // 2 :] + [(key, value, key[1].changed) for key, value in later.items()],
            count - count // 2,
        )
        lines = [
            rng.choice(_CHATTER) + how.format(name=key[0], value=value) for key, value, how in told
        ]
        own.append([lines[start : start + A_SESSION] for start in range(0, count, A_SESSION)])
        made.values |= dict.fromkeys([*first.values(), *later.values()], person)
        still = rng.sample(
            [key for key in about if key not in later], sessions * 3 // 2 // PEOPLE - changes
        )
        for number, (name, kind) in enumerate([*later, *still]):
            key = (name, kind)
            group = "changed" if key in later else ("as told", "in other words")[number % 2]
            text = (kind.otherwise if group == "in other words" else kind.asked).format(name=name)
            value, before = later.get(key, first[key]), first[key] if key in later else ""
            made.questions.append(
                Question(person=person, text=text, value=value, before=before, group=group)
            )
    made.sessions = [
        (person, own[person][number]) for number in range(each) for person in range(PEOPLE)
    ]
    return made


@dataclass(kw_only=True)
class Measured:
    """The figures of one memory. Shares are those of the questions of a group.

    `missing` says why it couldn't run, if it couldn't.
    """

    name: str
    missing: str = ""
    found: dict[str, float] = field(default_factory=dict)
    lines: float = 0.0
    current: float = 0.0
    foreign: int = 0
    told_s: float = 0.0
    untold: int = 0
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    disk_mb: float = 0.0
    empty_mb: float = 0.0
    resident_mb: float = 0.0


async def measure(name: str, folder: Path, running: Running, sessions: int) -> Measured:
    """Store the whole history, and then ask all questions."""
    planted, result, home = history(sessions), Measured(name=name), folder / "home"
    home.mkdir()
    services, own = list[MemoryProvider](), list[MemoryProvider]()
    if name in ENGINES:
        service = ENGINES[name].name
        services.append(Plugins(home).create_provider(service, running.options, running.variables))

    def builtins(database: Database, clock: RunningClock) -> Sequence[MemoryProvider]:
        model = None if name == BUILT_IN else _FactModel()
        if name not in ENGINES:
            facts = facts_memory(database, clock, model, 0.3 if name == WITH_HRR else 0.0)
            own[:] = facts, HistoryProvider(Recall(database, clock, ZONE.key), ZONE.key)
        return own

    async with harness(home, services, TURN_S, builtins) as one, one.working():
        await one.memory.prefetch("hello", await one.context(_scope(0)))
        result.empty_mb = _size_mb(folder)
        began = time.perf_counter()
        for number, (person, texts) in enumerate(planted.sessions, 1):
            for text in texts:
                await one.turn(text, scope=_scope(person))
            await one.ended(await one.session(_scope(person)))
            for provider in own:
                await provider.catch_up()
            waiting = await _wait_until_stored(one, began + LIMIT_S - time.perf_counter())
            if waiting:
                result.untold = waiting + A_SESSION * (len(planted.sessions) - number)
                break
            one.clock.advance(days=1)
        result.told_s = time.perf_counter() - began
        times = [
            await _ask_question(one, question, planted.values, result)
            for question in planted.questions
        ]
        result.resident_mb = _resident_mb(str(folder))
    many = len(planted.questions)
    groups = {group: sum(one.group == group for one in planted.questions) for group in result.found}
    result.found = {group: share / groups[group] for group, share in result.found.items()}
    # A short history changes no fact.
    result.current /= groups.get("changed", 1)
    result.lines /= many
    result.p50_ms, result.p95_ms = (
        1000 * statistics.median(times),
        1000 * statistics.quantiles(times, n=20)[-1],
    )
    result.disk_mb = _size_mb(folder)
    return result


def _scope(person: int) -> Scope:
    return Scope.account("telegram", str(person + 1))


async def _wait_until_stored(one: ProviderHarness, patience_s: float) -> int:
    """Wait until all turns are stored, and return the number of those that couldn't be stored."""
    try:
        async with asyncio.timeout(max(0.0, patience_s)):
            while (counts := await one.outbox.count_items()).due + counts.held:
                changed = one.watch.next()
                if (await one.outbox.count_items()).due + counts.held:
                    await asyncio.wait([asyncio.create_task(changed.wait())], timeout=1.0)
            return counts.dead
    except TimeoutError:
        counts = await one.outbox.count_items()
        return counts.due + counts.held + counts.dead


async def _ask_question(
    one: ProviderHarness, question: Question, values: Mapping[str, int], result: Measured
) -> float:
    """Ask a question, and count what its result contains. Return the seconds that it took."""
    began = time.perf_counter()
    lines = await one.recalled(question.text, _scope(question.person))
    took = time.perf_counter() - began
    places = {
        value: place
        for place, line in reversed([*enumerate(lines)])
        for value in values
        if value in line
    }
    found = places.get(question.value)
    result.found[question.group] = result.found.get(question.group, 0) + (found is not None)
    if question.before and found is not None:
        result.current += found < places.get(question.before, len(lines))
    result.foreign += any(values[value] != question.person for value in places)
    result.lines += len(lines)
    return took


def _size_mb(folder: Path) -> float:
    """Return the size of the files on the disk in MB."""
    return sum(file.lstat().st_blocks * 512 for file in folder.rglob("*")) / 1e6


def _resident_mb(folder: str) -> float:
    """Return the resident memory in MB of this process, its children, and daemons that use its
    folder.

    Shared pages count once.
    """
    parents, roots = dict[int, int](), {os.getpid()}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(process.name)] = int(
                (process / "stat").read_text().rpartition(")")[2].split()[1]
            )
            if (
                folder.encode()
                in (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            ):
                roots.add(int(process.name))
        except OSError:
            continue
    total = 0
    for pid in parents:
        line = [pid]
        while (above := parents.get(line[-1])) is not None:
            line.append(above)
        if not roots.isdisjoint(line):
            try:
                rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            except OSError:
                continue
            total += sum(
                int(row.split()[1]) for row in rollup.splitlines() if row.startswith("Pss:")
            )
    return total / 1000


def report(sessions: int = SESSIONS) -> Iterator[str]:
    """Yield the lines of a Markdown table, one row per memory.

    Memories that can't run are named below it.
    """
    planted = history(sessions)
    changes = sum(bool(one.before) for one in planted.questions)
    yield from (
        f"{len(planted.sessions)} sessions of {PEOPLE} people, {A_SESSION * len(planted.sessions)} facts, {changes} of "
        f"which end an earlier one; {len(planted.questions)} questions. Loopback, stub models.",
        "",
        "| memory | found: as told | in other words | changed | the current one first | with another's | lines | "
        "p50 / p95 ms | told in s | MB on disk (empty) | MB resident |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    )
    missing = []
    for name in (BUILT_IN, WITH_MODEL, WITH_HRR, *ENGINES):
        one = _measure_in_process(name, sessions)
        if one.missing:
            missing.append(f"{name} did not run: {one.missing}")
            continue
        found = [
            _percent(one.found.get(group)) for group in ("as told", "in other words", "changed")
        ]
        untold = f", {one.untold} not told" if one.untold else ""
        current = _percent(one.current if "changed" in one.found else None)
        cells = [*found, current, str(one.foreign), f"{one.lines:.1f}"]
        cells += [f"{one.p50_ms:.0f} / {one.p95_ms:.0f}", f"{one.told_s:.0f}{untold}"]
        cells += [f"{one.disk_mb:.0f} ({one.empty_mb:.0f})", f"{one.resident_mb:.0f}"]
        yield f"| {name} | {' | '.join(cells)} |"
    missing += [
        f"{name} did not run: there is no engine of it in tests/services/engines"
        for name in services_without_engine()
    ]
    yield from ("", *(f"* {one}" for one in missing))


def _percent(share: float | None) -> str:
    """Return a share as a percentage, or a dash for a group without questions."""
    return "–" if share is None else f"{100 * share:.0f} %"


def services_without_engine() -> list[str]:
    """Return the services that no engine in tests/services/engines runs."""
    known = {file.stem for file in PACKAGE.glob("[a-z]*.py")}
    return sorted(known - {engine.name for engine in ENGINES.values()})


def _measure_in_process(name: str, sessions: int) -> Measured:
    """Measure a memory in another process. A library runs in its own environment."""
    environment = ENGINES[name].environment if name in ENGINES else ""
    own = ROOT / environment / "bin" / "python"
    python = str(own) if environment and own.exists() else sys.executable
    command = [python, "-m", "tests.bench.services", name, str(sessions)]
    variables = {**os.environ, "PYTHONPATH": str(PACKAGE.parents[2])}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    try:
        return Measured(**json.loads(done.stdout.splitlines()[-1]))
    except (ValueError, IndexError):
        return Measured(
            name=name, missing=(done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        )


def main(name: str, sessions: int) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    engine = ENGINES.get(name)
    if engine is not None and (why := engine.missing()):
        sys.stdout.write(json.dumps({"name": name, "missing": why}) + "\n")
        return
    with tempfile.TemporaryDirectory(prefix="mneme-bench-", ignore_cleanup_errors=True) as made:
        # A PostgreSQL runs as nobody, in a folder of its own below this one.
        folder = Path(made)
        folder.chmod(0o755)
        tempfile.tempdir = made
        place: Any = nullcontext(Running(options={})) if engine is None else engine.running(folder)
        with place as running:
            sys.stdout.write(
                json.dumps(asdict(asyncio.run(measure(name, folder, running, sessions)))) + "\n"
            )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
