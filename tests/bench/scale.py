"""Compares one, two and four gateways over one PostgreSQL server.

The people, the Bot API, the model and the server are on the same machine as the gateways. So the
table shows what a message costs, and whether more gateways answer more messages on so many cores.
The server has the settings of its installation, so each transaction is written to the disk.
`measure_takeover` kills gateways while people write. This needs Linux and PostgreSQL.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from config.operating_system import find_family
from gateway.local.control import ask_gateway
from tests.bench.gateway import TimedApi, cpu_s, format_percentiles, memory_mb
from tests.fixtures.bot_api import BotApi
from tests.fixtures.gateways import Gateways, Storm, open_gateways
from tests.fixtures.kill_storm import answer_all, choose_seed
from tests.fixtures.live_system import KEY
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.postgres import MISSING, PostgresServer, find_programs

GATEWAYS = (1, 2, 4)
CHATS = (200, 2_000)
MESSAGES = 2_000
"""How many messages are measured, in all chats together."""
WRITERS = 50
"""How many people wait for an answer at the same time."""
ANSWER_S, START_S, STOP_S = 300.0, 180.0, 60.0
TAKEOVER_CHATS = 60
TAKEOVERS = 6
PERSON = 5000
# Any number of answers per minute and per day.
LIMITS = """
turns_per_minute = 100000
day = { answers = 0, input_tokens = 0, output_tokens = 0, money = 0 }
owner_day = { money = 0, tokens = 0 }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleCost:
    """The costs of the messages of a run, with the milliseconds from a message to its first call."""

    per_s: float
    first_ms: Sequence[float]
    gateway_cpu_ms: float
    server_cpu_ms: float
    rows: float
    memory_mb: float


async def measure(folder: Path, messages: int = MESSAGES) -> Iterator[str]:
    """Return the lines of the Markdown tables."""
    programs = find_programs()
    if programs is None or sys.platform != "linux":
        return iter([f"left out: {MISSING}"])
    lines = [
        f"{os.cpu_count()} cores for everything",
        "",
        "| chats | gateways | messages/s | first call p50 / p95 ms | CPU ms a message: gateways "
        "| server | rows written a message | MB of all gateways |",
        "|---|---|---|---|---|---|---|---|",
    ]
    with run_server(programs) as server:
        for chats in CHATS:
            for count in GATEWAYS:
                home = folder / f"{chats}-{count}"
                home.mkdir()
                cost = await _measure_cost(server, home, chats, count, messages)
                lines.append(
                    f"| {chats:,} | {count} | {cost.per_s:.0f} | {format_percentiles(cost.first_ms)} "
                    f"| {cost.gateway_cpu_ms:.1f} | {cost.server_cpu_ms:.1f} | {cost.rows:.1f} "
                    f"| {cost.memory_mb:.0f} |"
                )
                sys.stderr.write(lines[-1] + "\n")
        lines += ["", *await measure_takeover(server, folder)]
    return iter(lines)


@contextmanager
def run_server(programs: Path) -> Iterator[PostgresServer]:
    """Run a server that writes each transaction to the disk."""
    settings = {"listen_addresses": "", "max_connections": "100"}
    server = PostgresServer(programs, folder=Path(tempfile.gettempdir()), settings=settings)
    try:
        server.start()
        yield server
    finally:
        server.close()


async def _measure_cost(
    server: PostgresServer, home: Path, chats: int, count: int, messages: int
) -> ScaleCost:
    """Measure messages of people who each wait for an answer before they write again."""
    people = range(PERSON, PERSON + chats)
    url = server.url_of(server.create_database())
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(TimedApi())
        model = await stack.enter_async_context(MessagesApi(key=KEY))
        _write_settings(home, url, people)
        process = await stack.enter_async_context(_run_gateways(home, api, model, count))
        await _talk(api, people, range(chats))
        rows, used = _count_rows(url), _measure_cpu(server, process.pid)
        began = time.perf_counter()
        first_ms = await _talk(api, people, range(chats, chats + messages))
        took_s = time.perf_counter() - began
        # The work that follows the answers counts, too.
        await asyncio.sleep(1.0)
        gateway_s, server_s = (
            after - before
            for before, after in zip(used, _measure_cpu(server, process.pid), strict=True)
        )
        return ScaleCost(
            per_s=messages / took_s,
            first_ms=first_ms,
            gateway_cpu_ms=1000 * gateway_s / messages,
            server_cpu_ms=1000 * server_s / messages,
            rows=(_count_rows(url) - rows) / messages,
            memory_mb=sum(memory_mb(pid) for pid in find_family([process.pid])),
        )


def _write_settings(home: Path, url: str, people: Sequence[int]) -> None:
    accounts = ", ".join(f'"telegram:{person}"' for person in people)
    (home / "mneme.toml").write_text(
        f'[turn]\ngather_s = 0\n[access]\npeople = [{accounts}]\n[store]\nurl = "{url}"\n'
        f"[limits]{LIMITS}"
    )


@asynccontextmanager
async def _run_gateways(
    home: Path, api: BotApi, model: MessagesApi, count: int
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run gateways, and wait until all of them share the chats."""
    environment = Gateways(home, "", api, model).environment
    with (home / "process.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway.cli.main", "run", "--workers", str(count)),
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        async with asyncio.timeout(START_S):
            while not await asyncio.to_thread(_are_together, home, count):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(STOP_S):
            await process.wait()


def _are_together(home: Path, count: int) -> bool:
    state = ask_gateway(home, "state")
    return (
        state is not None
        and state["gateways"] == count
        and state["platforms"].get("telegram") == "connected"
    )


async def _talk(api: TimedApi, people: Sequence[int], numbers: range) -> list[float]:
    """Let people write a message per number. Return the milliseconds to the first call for each."""
    first_ms: list[float] = []
    # The number of people is a multiple of this, so only one writer waits for each person.
    writers = min(WRITERS, len(people))

    async def write(own_numbers: range) -> None:
        for number in own_numbers:
            person = people[number % len(people)]
            calls = api.timed.setdefault(person, [])
            before, began = len(calls), time.perf_counter()
            await _say_and_wait(api, person, f"The ferry number {number} leaves at nine.")
            first_ms.append(1000 * (calls[before][0] - began))

    await asyncio.gather(*(write(numbers[start::writers]) for start in range(writers)))
    return first_ms


async def _say_and_wait(api: TimedApi, person: int, text: str) -> None:
    """Let a person write a message, and wait for the answer, which repeats it."""
    api.user_says(person, text)
    await api.wait_for(lambda: text in "".join(api.texts(person)[-1:]), ANSWER_S)


def _count_rows(url: str) -> int:
    """Return how many rows the database has inserted, changed and deleted so far."""
    statement = "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint FROM pg_stat_user_tables"
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(statement).fetchone()
    assert row is not None
    return int(row[0])


def _measure_cpu(server: PostgresServer, gateway: int) -> tuple[float, float]:
    """Return the processor time of the gateways and of the server, in seconds."""
    postmaster = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
    gateway_s, server_s = (
        sum(cpu_s(pid) for pid in find_family([parent])) for parent in (gateway, postmaster)
    )
    return gateway_s, server_s


async def measure_takeover(server: PostgresServer, folder: Path) -> list[str]:
    """Return a Markdown table of answers by three gateways, before and after one is killed."""
    home = folder / "takeover"
    home.mkdir()
    people = range(PERSON, PERSON + TAKEOVER_CHATS)
    model = MessagesApi(answer_all, key=KEY)
    url = server.url_of(server.create_database())
    times_s: dict[str, list[float]] = {"before": [], "another gateway": [], "the front": []}
    async with open_gateways(home, url, model, len(people)) as gateways:
        for _ in range(3):
            await gateways.start()
        storm = Storm(gateways, people, choose_seed())
        for number in range(TAKEOVERS):
            times_s["before"] += await _time_answers(storm, people)
            # The oldest process is the front.
            kind, position = ("the front", 0) if number % 2 else ("another gateway", -1)
            victim = gateways.living[position]
            owners = gateways.list_owners()
            number_of_victim = 1 + gateways.processes.index(victim)
            chats = [each for each in people if owners[f"telegram:{each}"] == number_of_victim]
            victim.send_signal(signal.SIGKILL)
            times_s[kind] += await _time_answers(storm, chats)
            await gateways.start()
        await storm.settle()
        damage = storm.list_damage()
    rows = [
        f"| {name} | {len(values)} | {1000 * statistics.median(values):.0f} "
        f"| {1000 * max(values):.0f} |"
        for name, values in times_s.items()
        if values
    ]
    return [
        f"{TAKEOVERS} kills with SIGKILL among three gateways, {TAKEOVER_CHATS} chats: "
        f"{len(damage)} messages lost, doubled without a mark or out of order",
        "",
        "| killed | messages to its chats | answered after ms: median | slowest |",
        "|---|---|---|---|",
        *rows,
    ]


async def _time_answers(storm: Storm, people: Sequence[int]) -> list[float]:
    """Let people write at the same time. Return the seconds until each of them has an answer."""
    began = time.perf_counter()
    waiting = set(people)
    times_s = []
    for person in people:
        storm.say(person)
    while waiting:
        for person in list(waiting):
            if storm.said[person][-1] in storm.list_answered(person):
                waiting.remove(person)
                times_s.append(time.perf_counter() - began)
        if time.perf_counter() - began > ANSWER_S:
            raise TimeoutError(f"{len(waiting)} people have no answer")
        await asyncio.sleep(0.02)
    return times_s
