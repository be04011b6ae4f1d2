"""Measures what a message costs in the gateway, compared with an echo bot over the same Bot API on
loopback.

Both bots run in their own processes, and the servers run in this one, so only the work of the bots
is measured. In each chat, a different person writes their next message when the last one is
answered. The first person is the owner. In the rows "one person", all chats are accounts of the
owner, so each message searches all histories. `measure_growth` follows one conversation. Both
measure without `turn.gather_s`, the wait for more messages. `measure_first_words`, which times a
model that writes slowly, measures with it. Another checkout can be measured in the same run. CPU
and memory are read from /proc, so this needs Linux.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from tests.fixtures.bot_api import BotApi
from tests.fixtures.messages_api import MessagesApi

ROOT = Path(__file__).resolve().parents[2]
CHATS = (1, 10, 50, 200)
ONE_PERSON_CHATS = 50
MESSAGES = 500
ROUNDS = 5
"""Each bot answers its messages in so many rounds, in turn with the others."""
SETTLE_S = 1.0
MILESTONES = (100, 300, 500, 700, 1_000, 2_000, 5_000)
SPAN = 50
"""The cost at a milestone is the mean of so many messages before it."""
FIRST_WORDS_MESSAGES = 20
WORD_S = 0.02
"""How long the slow model takes for each word or two."""
THOUGHT_S = 2.0
WARM_UP = 3
"""Messages of each chat before those that count."""
PERSON = 1000
"""The first chat; the others follow."""
KEY = "sk-ant-bench"
START_S, ANSWER_S, STOP_S = 60.0, 120.0, 40.0
ECHO_BOT, ECHO_BOT_WITH_MODEL = "echo bot", "echo bot with a model"
WITH_MODEL = frozenset({"model", ECHO_BOT_WITH_MODEL})
ANSWERING = frozenset({"sendMessage", "editMessageText"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayCost:
    """The costs of the messages of one round.

    `first_ms` and `last_ms` are the milliseconds from a message to the first call for it, and to
    the call that completes its answer.
    """

    cpu_ms: float
    per_s: float
    first_ms: Sequence[float]
    last_ms: Sequence[float]
    calls: float


class TimedApi(BotApi):
    """A Bot API that records when each chat was called."""

    def __init__(self) -> None:
        super().__init__()
        self.timed: dict[int, list[tuple[float, str]]] = {}

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        response = await super()._serve(request)
        chat_id = (await request.post()).get("chat_id")
        if chat_id is not None:
            self.timed.setdefault(int(str(chat_id)), []).append(
                (time.perf_counter(), request.match_info["method"])
            )
            self.changed()
        return response


class SlowModel(MessagesApi):
    """A model that thinks for a while and then writes its answer word by word."""

    thought_s = 0.0

    async def _write(
        self, response: web.StreamResponse, data: bytes, wire_bytes: int | None
    ) -> None:
        if b"message_start" in data:
            await asyncio.sleep(self.thought_s)
        elif b"content_block_delta" in data:
            await asyncio.sleep(WORD_S)
        await super()._write(response, data, wire_bytes)


@dataclass(slots=True, kw_only=True)
class MeasuredBot:
    """A running bot, and the costs of its rounds."""

    kind: str
    owner: str
    """", one person" if all chats belong to the owner, and otherwise empty."""
    root: Path
    people: Sequence[int]
    api: TimedApi
    process: asyncio.subprocess.Process
    costs: list[GatewayCost] = field(default_factory=list)

    async def run_round(self, count: int) -> None:
        """Measure `count` messages of each chat."""
        calls, before, began = len(self.api.calls), cpu_s(self.process.pid), time.perf_counter()
        first = WARM_UP + count * len(self.costs)
        talks = (_talk(self.api, person, count, self.kind, first) for person in self.people)
        latencies = [pair for talk in await asyncio.gather(*talks) for pair in talk]
        took_s = time.perf_counter() - began
        # The work after the answer is part of the cost of a message.
        await asyncio.sleep(SETTLE_S)
        used_s = cpu_s(self.process.pid) - before
        messages = count * len(self.people)
        made = [name for name, _ in self.api.calls[calls:] if name != "getUpdates"]
        self.costs.append(
            GatewayCost(
                cpu_ms=1000 * used_s / messages,
                per_s=messages / took_s,
                first_ms=[1000 * first for first, _ in latencies],
                last_ms=[1000 * last for _, last in latencies],
                calls=len(made) / messages,
            )
        )

    def compare(self, other: MeasuredBot | None) -> str:
        """Return the median and the quartiles of the ratio to another bot, round by round."""
        if other is None or other is self:
            return ""
        pairs = zip(self.costs, other.costs, strict=True)
        ratios = [mine.cpu_ms / theirs.cpu_ms for mine, theirs in pairs]
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return f"{statistics.median(ratios):.2f} ({low:.2f} to {high:.2f})"


async def measure(
    folder: Path,
    messages: int = MESSAGES,
    before: Path | None = None,
    all_chats: Sequence[int] = CHATS,
) -> str:
    """Return a Markdown table. Ratios are to the echo bot with as many chats, and to `before`.

    All bots with the same number of chats run at the same time, and answer rounds of messages in
    turn. So other programs on the machine affect all of them. `before` is the folder of another
    checkout.
    """
    if sys.platform != "linux":
        return "left out: there is no /proc"
    lines = [
        "| bot | chats | CPU ms a message | ratio to the echo bot | ratio to before | messages/s "
        "| first call p50 / p95 ms | last call p50 / p95 ms | calls | MB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for chats in all_chats:
        async with AsyncExitStack() as stack:
            bots = await _start_bots(stack, folder, chats, before)
            count = max(1, messages // (ROUNDS * chats))
            for _ in range(ROUNDS):
                for bot in bots:
                    await bot.run_round(count)
            lines += [_line(bot, bots, before) for bot in bots]
    return "\n".join(lines)


async def _start_bots(
    stack: AsyncExitStack, folder: Path, chats: int, before: Path | None
) -> list[MeasuredBot]:
    """Start all bots with a number of chats. Each chat has received a few answers."""
    bots = [(ECHO_BOT, "", ROOT), (ECHO_BOT_WITH_MODEL, "", ROOT)] + [
        (kind, owner, root)
        for owner in (["", ", one person"] if chats == ONE_PERSON_CHATS else [""])
        for kind in ("no model", "model")
        for root in _trees(before)
    ]
    return [
        await _start_bot(stack, folder, kind, owner, root, range(PERSON, PERSON + chats))
        for kind, owner, root in bots
    ]


async def _start_bot(
    stack: AsyncExitStack, folder: Path, kind: str, owner: str, root: Path, people: range
) -> MeasuredBot:
    home = folder / f"{kind}{owner} {len(people)} {len(os.listdir(folder))}"
    home.mkdir()
    api = await stack.enter_async_context(TimedApi())
    model = await stack.enter_async_context(MessagesApi(key=KEY)) if kind in WITH_MODEL else None
    settings = _answer_at_once(root) + _lift_daily_limits(root)
    _write_settings(home, people, len(people) if owner else 1, settings)
    process = await stack.enter_async_context(_running(kind, home, api, model, root))
    await asyncio.gather(*(_talk(api, person, WARM_UP, kind) for person in people))
    return MeasuredBot(kind=kind, owner=owner, root=root, people=people, api=api, process=process)


def _line(bot: MeasuredBot, bots: Sequence[MeasuredBot], before: Path | None) -> str:
    """Return the row of a bot."""
    kind = f"{bot.kind}{bot.owner}"
    name = f"{kind}{', before' if bot.root == before else ''}"
    earlier = (
        other for other in bots if other.root == before and f"{other.kind}{other.owner}" == kind
    )
    cpu_ms, per_s, calls = (
        statistics.median(getattr(cost, name) for cost in bot.costs)
        for name in ("cpu_ms", "per_s", "calls")
    )
    first = format_percentiles([ms for cost in bot.costs for ms in cost.first_ms])
    last = format_percentiles([ms for cost in bot.costs for ms in cost.last_ms])
    return (
        f"| {name} | {len(bot.people)} | {cpu_ms:.1f} | {bot.compare(bots[0])} "
        f"| {bot.compare(next(earlier, None))} | {per_s:.0f} | {first} | {last} | {calls:.1f} "
        f"| {memory_mb(bot.process.pid):.0f} |"
    )


async def measure_growth(folder: Path, messages: int, before: Path | None = None) -> str:
    """Return a Markdown table of the cost of a message and the memory in a long conversation."""
    if sys.platform != "linux":
        return "left out: there is no /proc"
    milestones = [number for number in MILESTONES if number <= messages]
    heading = " | ".join(f"{number:,}" for number in milestones)
    lines = [
        f"CPU ms a message, mean of the {SPAN} messages before each / MB",
        "",
        f"| bot | {heading} |",
        f"|---|{'---|' * len(milestones)}",
    ]
    for kind in (ECHO_BOT, ECHO_BOT_WITH_MODEL, "no model", "model"):
        for root in _trees(before) if kind in ("no model", "model") else [ROOT]:
            name = f"{kind}{', before' if root == before else ''}"
            home = folder / name
            home.mkdir()
            cells = [cell async for cell in _grow(kind, milestones, home, root)]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


async def _grow(kind: str, milestones: Sequence[int], home: Path, root: Path) -> AsyncIterator[str]:
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(TimedApi())
        model = (
            await stack.enter_async_context(MessagesApi(key=KEY)) if kind in WITH_MODEL else None
        )
        _write_settings(home, [PERSON], 1, _answer_at_once(root) + _lift_daily_limits(root))
        process = await stack.enter_async_context(_running(kind, home, api, model, root))
        count = 0
        for milestone in milestones:
            await _talk(api, person=PERSON, count=milestone - SPAN - count, kind=kind, first=count)
            await asyncio.sleep(1.0)
            before = cpu_s(process.pid)
            await _talk(api, person=PERSON, count=SPAN, kind=kind, first=milestone - SPAN)
            await asyncio.sleep(1.0)
            cost = 1000 * (cpu_s(process.pid) - before) / SPAN
            count = milestone
            del api.calls[:], api.drafts[:], api.paths[:]
            if model is not None:
                del model.requests[:], model.headers[:], model.usages[:]
            yield f"{cost:.1f} / {memory_mb(process.pid):.0f}"


async def measure_first_words(folder: Path, before: Path | None = None) -> str:
    """Return a Markdown table of the time until the first words of an answer."""
    lines = [
        f"| bot | a word or two every {1000 * WORD_S:.0f} ms, from the start: p50 / p95 ms "
        f"| after {THOUGHT_S:.0f} s: p50 / p95 ms |",
        "|---|---|---|",
    ]
    for root in _trees(before):
        name = "before" if root == before else "model"
        home = folder / f"words {name}"
        home.mkdir()
        async with AsyncExitStack() as stack:
            api = await stack.enter_async_context(TimedApi())
            model = await stack.enter_async_context(SlowModel(key=KEY))
            _write_settings(home, [PERSON], 1, _lift_daily_limits(root))
            await stack.enter_async_context(_running("model", home, api, model, root))
            await _talk(api, PERSON, WARM_UP, "model")
            cells = []
            for thought_s in (0.0, THOUGHT_S):
                model.thought_s = thought_s
                waits = [await _wait_for_words(api, n) for n in range(FIRST_WORDS_MESSAGES)]
                cells.append(format_percentiles([1000 * wait for wait in waits]))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


async def _wait_for_words(api: TimedApi, number: int) -> float:
    """Return the seconds until words of the answer are visible, as a draft or a message."""
    text = f"Number {number}: " + "the ferry leaves the old harbour at nine with everybody " * 12
    drafts, posted = len(api.drafts), len(api.texts(PERSON))
    began = time.perf_counter()
    api.user_says(PERSON, text)
    await api.wait_for(
        lambda: (
            any(words.strip("… ") for _, words in api.drafts[drafts:])
            or len(api.texts(PERSON)) > posted
        ),
        ANSWER_S,
    )
    wait_s = time.perf_counter() - began
    await api.wait_for(lambda: text.strip() in api.texts(PERSON)[-1], ANSWER_S)
    return wait_s


def _trees(before: Path | None) -> list[Path]:
    return [ROOT] if before is None else [before, ROOT]


@asynccontextmanager
async def _running(
    kind: str,
    home: Path,
    api: TimedApi,
    model: MessagesApi | None,
    root: Path,
) -> AsyncIterator[asyncio.subprocess.Process]:
    environment = {"PATH": os.environ["PATH"], "MNEME_HOME": str(home)}
    command = [sys.executable, "-m", "tests.bench.echo_bot", api.token, api.url]
    if kind == ECHO_BOT_WITH_MODEL:
        assert model is not None
        command += [model.url, KEY]
    elif kind != ECHO_BOT:
        environment |= {"TELEGRAM_BOT_TOKEN": api.token, "MNEME_TELEGRAM_API_URL": api.url}
        command = [sys.executable, "-m", "gateway.cli.main", "run"]
    if kind == "model":
        assert model is not None
        environment |= {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": model.url}
    with (home / "process.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=root,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        await api.wait_for(lambda: api.called("getUpdates"), START_S)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(STOP_S):
            await process.wait()


def _write_settings(home: Path, people: Sequence[int], owners: int, more: str) -> None:
    """Write mneme.toml. `more` has further sections.

    The given number of people are accounts of the owner.
    """
    others = ", ".join(f'"telegram:{person}"' for person in people[owners:])
    (home / "mneme.toml").write_text(
        f"[owner]\ntelegram = {list(people[:owners])}\n[access]\npeople = [{others}]\n{more}"
    )


def _answer_at_once(root: Path) -> str:
    """Return the settings without the wait for more messages."""
    known = (root / "config" / "default.toml").read_text("utf-8")
    return "[turn]\ngather_s = 0\n" if "\ngather_s = " in known else ""


def _lift_daily_limits(root: Path) -> str:
    """Return the settings without the limits that thousands of messages would reach."""
    known = (root / "config" / "default.toml").read_text("utf-8")
    off = {
        "day": "{ answers = 0, input_tokens = 0, output_tokens = 0, money = 0 }",
        "owner_day": "{ money = 0, tokens = 0 }",
    }
    lines = (f"{name} = {value}\n" for name, value in off.items() if f"\n{name} = " in known)
    return "[limits]\nturns_per_minute = 100000\n" + "".join(lines)


async def _talk(
    api: TimedApi, person: int, count: int, kind: str, first: int = 0
) -> list[tuple[float, float]]:
    """Return, for each message, the seconds to the first call for it and to the call that completes
    its answer.
    """
    latencies = []
    for number in range(first, first + count):
        text = f"The ferry number {number} leaves at nine from the old harbour."
        calls = api.timed.setdefault(person, [])
        before, began = len(calls), time.perf_counter()

        def is_answered(text: str = text, before: int = before) -> bool:
            if not any(method in ANSWERING for _, method in api.timed[person][before:]):
                return False
            said = api.texts(person)[-1]
            return text in said if kind != "no model" else said != "…"

        api.user_says(person, text)
        await api.wait_for(is_answered, ANSWER_S)
        first_at = calls[before][0]
        last_at = next(at for at, method in reversed(calls) if method in ANSWERING)
        latencies.append((first_at - began, last_at - began))
    return latencies


def format_percentiles(values: Sequence[float]) -> str:
    """Return the median and the 95th percentile, such as "12 / 40"."""
    ordered = sorted(values)
    return f"{statistics.median(ordered):.0f} / {ordered[int(0.95 * (len(ordered) - 1))]:.0f}"


def cpu_s(pid: int) -> float:
    """Return the processor time of a process and its threads in seconds, user and system."""
    # The id of another process's clock is computed as clock_getcpuclockid(3) does on Linux.
    return time.clock_gettime(~pid << 3 | 2)


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024
