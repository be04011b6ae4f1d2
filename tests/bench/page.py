"""Measures what the local page costs over a large history: the time to the first byte, the time and
size of each page, and whether answers in a chat are delayed while somebody browses.

The home has 200,000 messages and a model call for each answer. A real HTTP client in the process of
the server measures the times, so its own work counts, too. Answers are timed while no page is
opened, while a browser in another process opens pages, and while it opens the same pages of another
gateway. The last case shows the load of the machine rather than that of the page.
"""

from __future__ import annotations

import asyncio
import math
import re
import shutil
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import ClientSession, CookieJar

from core.store.engine import Connection
from core.store.usage_limits import ModelCall, log_call
from core.types import BillingScope, Usage
from tests.fixtures.page_browser import OpenPage, open_page
from tests.fixtures.page_year import OWNER, fill_year, list_records

MESSAGES = 200_000
MESSAGES_PER_SESSION = 20
ROUNDS = 20
# Answers are timed in so many rounds, so many without and so many with a browser in each.
ROUNDS_OF_ANSWERS = 16
ANSWERS = 10
# How long the browser takes to stop or to go on.
SETTLE_S = 1.0
# How long a person in a hurry looks at a page.
READING_S = 0.3
# What issue 38 asks for.
TARGET_MS = 60.0
TARGET_KB = 150.0
# What runs while answers are timed.
ALONE = "nobody browses"
HERE = "somebody browses"
ELSEWHERE = "the same in another process"
WORDS = ("ferry", "boiler", "landlord Porto", "homework", "timetable invoice")


async def measure(folder: Path, messages: int = MESSAGES) -> str:
    """Return a Markdown table."""
    home = folder / "page"
    home.mkdir()
    async with open_page(home) as page:
        services = page.harness.services
        records = list_records(
            messages // MESSAGES_PER_SESSION, MESSAGES_PER_SESSION, datetime.now(UTC)
        )
        await services.archive.import_records(records, lambda _: None)
        while await services.recall.tend():
            pass
        await _log_calls(page)
        await fill_year(page.harness, 20)
    copy = folder / "copy"
    shutil.copytree(home, copy)
    async with open_page(home) as page:
        return await describe(page, copy, messages)


async def _log_calls(page: OpenPage) -> None:
    """Log a model call at the time of each answer."""
    usage = Usage(input=900, output=300, cache_read=9_000, cache_write=700)
    billing = BillingScope(scope=OWNER, user_id="42")

    def log(connection: Connection) -> None:
        answers = connection.execute("SELECT created_at FROM messages WHERE role = 'assistant'")
        for row in answers.fetchall():
            at = datetime.fromtimestamp(row["created_at"], UTC)
            call = ModelCall(
                kind="chat", model="claude-sonnet-5-5", usage=usage, at=at, billing=billing, turns=1
            )
            log_call(connection, call)

    await page.harness.services.database.write(log)


async def describe(page: OpenPage, copy: Path, messages: int) -> str:
    """Measure a filled home. `copy` is a copy of it."""
    lines = [
        f"{messages:,} messages; target: p95 {TARGET_MS:.0f} ms, {TARGET_KB:.0f} KB",
        "",
        "| page | first byte p50 / p95 ms | whole page p50 / p95 ms | processor ms | KB |",
        "|---|---|---|---|---|",
    ]
    paths = await _list_paths(page)
    for name, addresses in paths.items():
        lines.append(f"| {name} | {await _time_paths(page, addresses)} |")
    rounds = await _time_answers(page, copy, [each[0] for each in paths.values()])
    lines += [
        "",
        f"| {ROUNDS_OF_ANSWERS * ANSWERS} answers of a chat each | p50 / p95 ms "
        "| times as long as alone, half of the rounds (quartiles) |",
        "|---|---|---|",
    ]
    for name, times in rounds.items():
        every_ms = [time_ms for times_ms in times for time_ms in times_ms]
        ratios = _describe_ratios(times, rounds[ALONE])
        lines.append(f"| {name} | {_describe_quantiles(every_ms)} | {ratios} |")
    return "\n".join(lines)


def _describe_ratios(rounds: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> str:
    """Compare neighbouring rounds by the median time of their answers."""
    ratios = [
        _find_quantile(times_ms, 0.5) / _find_quantile(others_ms, 0.5)
        for times_ms, others_ms in zip(rounds, others, strict=True)
    ]
    low, half, high = (_find_quantile(ratios, share) for share in (0.25, 0.5, 0.75))
    return f"{half:.2f} ({low:.2f} to {high:.2f})"


async def _list_paths(page: OpenPage) -> dict[str, Sequence[str]]:
    """Return the addresses to measure, by the names of their pages."""
    services = page.harness.services
    row = await services.database.fetch_one("SELECT MAX(id) AS id FROM messages", {})
    assert row is not None
    last = int(row["id"])
    places = [max(1, last * step // (ROUNDS + 1)) for step in range(1, ROUNDS + 1)]
    listed = await page.browser.open("/conversations")
    older = re.search(r'rel="next" href="([^"]+)"', listed.body)
    assert older is not None
    return {
        "recall, no words": ["/recall"] * ROUNDS,
        "recall, words": [f"/recall?q={WORDS[n % len(WORDS)]}" for n in range(ROUNDS)],
        "recall, a day": [f"/recall?q=ferry before:2026-{1 + n % 9:02}-15" for n in range(ROUNDS)],
        "recall, two days": [
            f"/recall?q=ferry since:2026-{1 + n % 9:02}-14 before:2026-{1 + n % 9:02}-16"
            for n in range(ROUNDS)
        ],
        "recall, a conversation": [f"/recall?q=ferry in:{100 * (n + 1)}" for n in range(ROUNDS)],
        "recall, a kind of file": ["/recall?q=ferry has:photo"] * ROUNDS,
        "conversations": ["/conversations"] * ROUNDS,
        "conversations, second page": [older[1]] * ROUNDS,
        "conversation at a message": [f"/conversations/at/{place}" for place in places],
        "memory": ["/memory"] * ROUNDS,
        "all facts": ["/memory/facts"] * ROUNDS,
        "history": ["/memory/history"] * ROUNDS,
        "today": ["/today"] * ROUNDS,
        "use": ["/use"] * ROUNDS,
    }


async def _time_paths(page: OpenPage, paths: Sequence[str]) -> str:
    """Open pages, and describe their times and the largest size."""
    firsts_ms, wholes_ms, processor_ms = [], [], []
    largest = 0
    for path in [paths[0], *paths]:
        begun, worked = time.perf_counter(), time.process_time()
        async with page.browser.session.get(page.server.address + path) as answer:
            assert answer.status == 200, path
            top = await answer.content.readany()
            firsts_ms.append((time.perf_counter() - begun) * 1000)
            size = len(top) + len(await answer.read())
        wholes_ms.append((time.perf_counter() - begun) * 1000)
        processor_ms.append((time.process_time() - worked) * 1000)
        largest = max(largest, size)
    columns = [
        _describe_quantiles(firsts_ms[1:]),
        _describe_quantiles(wholes_ms[1:]),
        f"{_find_quantile(processor_ms[1:], 0.5):.1f}",
        f"{largest / 1024:.0f}",
    ]
    return " | ".join(columns)


async def _time_answers(
    page: OpenPage, copy: Path, paths: Sequence[str]
) -> Mapping[str, Sequence[Sequence[float]]]:
    """Return the times of answers in rounds, by what runs at the same time."""
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.page", "serve", str(copy), stdout=PIPE
    )
    browsers: dict[str, Process | None] = {ALONE: None}
    rounds: dict[str, list[Sequence[float]]] = {ALONE: [], HERE: [], ELSEWHERE: []}
    try:
        browsers[HERE] = await _start_browser(page.server.create_owner_link(), paths)
        browsers[ELSEWHERE] = await _start_browser(await _read_link(other), paths)
        for number in range(ROUNDS_OF_ANSWERS):
            # What is first in one round is last in the next one.
            for name in list(rounds)[:: -1 if number % 2 else 1]:
                rounds[name].append(await _time_round(page, browsers[name]))
    finally:
        for process in (other, *browsers.values()):
            if process is not None:
                process.kill()
                await process.wait()
    return rounds


async def _start_browser(link: str, paths: Sequence[str]) -> Process:
    """Start a browser that waits for its round."""
    browser = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.page", "browse", link, *paths
    )
    await asyncio.sleep(SETTLE_S)
    browser.send_signal(signal.SIGSTOP)
    return browser


async def _read_link(server: Process) -> str:
    """Return the link that a server prints after its log."""
    assert server.stdout is not None
    while line := (await server.stdout.readline()).decode():
        if line.startswith("http"):
            return line.strip()
    raise RuntimeError("the server has ended")


async def _time_round(page: OpenPage, browser: Process | None) -> Sequence[float]:
    if browser is not None:
        browser.send_signal(signal.SIGCONT)
    await asyncio.sleep(SETTLE_S)
    times_ms = await _time_some_answers(page)
    if browser is not None:
        browser.send_signal(signal.SIGSTOP)
    return times_ms


async def _time_some_answers(page: OpenPage) -> list[float]:
    """Return the milliseconds until messages are answered."""
    times_ms = []
    for number in range(ANSWERS):
        begun = time.perf_counter()
        await page.harness.say(f"Note {number}: the ferry is late")
        times_ms.append((time.perf_counter() - begun) * 1000)
        await asyncio.sleep(0.02)
    return times_ms


async def serve(home: Path) -> None:
    """Run a gateway with its page, and print the link that opens it."""
    async with open_page(home) as page:
        sys.stdout.write(f"{page.server.create_owner_link()}\n")
        sys.stdout.flush()
        await asyncio.Future()


async def browse(link: str, paths: Sequence[str]) -> None:
    """Open page after page, like a person in a hurry."""
    address, _, key = link.partition("/login?key=")
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
        await session.post(f"{address}/login", data={"key": key}, headers={"Origin": address})
        while True:
            for path in paths:
                async with session.get(address + path) as answer:
                    await answer.read()
                await asyncio.sleep(READING_S)


def _describe_quantiles(times_ms: Sequence[float]) -> str:
    return f"{_find_quantile(times_ms, 0.5):.1f} / {_find_quantile(times_ms, 0.95):.1f}"


def _find_quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve(Path(sys.argv[2])))
    else:
        asyncio.run(browse(sys.argv[2], sys.argv[3:]))
