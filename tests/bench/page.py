"""What the local page costs over a large history: time to first byte, size of a page, and whether
a chat is answered later while somebody browses.

The server and the browser run in one process, so both share its event loop. The times are those of
whole requests of a real HTTP client until the first byte of the answer.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import ClientSession, CookieJar

from tests.fixtures.page_browser import OpenPage, open_page
from tests.fixtures.page_year import fill_year, list_records

MESSAGES = 200_000
MESSAGES_PER_SESSION = 20
ROUNDS = 20
ANSWERS = 60
# What issue 38 asks for.
TARGET_MS = 60.0
TARGET_KB = 150.0
WORDS = ("ferry", "boiler", "landlord Porto", "homework", "timetable invoice")


async def measure(folder: Path, messages: int = MESSAGES) -> str:
    """A table in Markdown."""
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
        await fill_year(page.harness, 20)
        lines = [
            f"{messages:,} messages; target: p95 {TARGET_MS:.0f} ms, {TARGET_KB:.0f} KB",
            "",
            "| page | first byte p50 / p95 ms | KB |",
            "|---|---|---|",
        ]
        for name, paths in (await _list_paths(page)).items():
            lines.append(f"| {name} | {await _time_paths(page, paths)} |")
        alone = await _time_answers(page)
        browsing = asyncio.create_task(_browse(page))
        busy = await _time_answers(page)
        browsing.cancel()
        await asyncio.gather(browsing, return_exceptions=True)
        lines += [
            "",
            "| answers of a chat without a model | p50 / p95 ms |",
            "|---|---|",
            f"| nobody browses | {_quantiles(alone)} |",
            f"| somebody browses without a pause | {_quantiles(busy)} |",
        ]
        return "\n".join(lines)


async def _list_paths(page: OpenPage) -> dict[str, Sequence[str]]:
    """Return the addresses to measure, by the name of their page."""
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
        "conversations": ["/conversations"] * ROUNDS,
        "conversations, second page": [older[1]] * ROUNDS,
        "conversation at a message": [f"/conversations/at/{place}" for place in places],
        "memory": ["/memory"] * ROUNDS,
        "history": ["/memory/history"] * ROUNDS,
        "today": ["/today"] * ROUNDS,
        "use": ["/use"] * ROUNDS,
    }


async def _time_paths(page: OpenPage, paths: Sequence[str]) -> str:
    times_ms = []
    largest = 0
    for path in [paths[0], *paths]:
        begun = time.perf_counter()
        async with page.browser.session.get(page.server.address + path) as answer:
            assert answer.status == 200, path
            times_ms.append((time.perf_counter() - begun) * 1000)
            largest = max(largest, len(await answer.read()))
    return f"{_quantiles(times_ms[1:])} | {largest / 1024:.0f}"


async def _time_answers(page: OpenPage) -> list[float]:
    """Return how long a command and a message take, in milliseconds."""
    times_ms = []
    for number in range(ANSWERS):
        begun = time.perf_counter()
        await page.harness.say(f"Note {number}: the ferry is late")
        times_ms.append((time.perf_counter() - begun) * 1000)
        await asyncio.sleep(0.02)
    return times_ms


async def _browse(page: OpenPage) -> None:
    """Open one page after the other, as somebody in a hurry does."""
    paths = [path for paths in (await _list_paths(page)).values() for path in paths[:1]]
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
        await session.get(page.server.create_owner_link())
        while True:
            for path in paths:
                async with session.get(page.server.address + path) as answer:
                    await answer.read()
                await asyncio.sleep(0.2)


def _quantiles(times_ms: Sequence[float]) -> str:
    ordered = sorted(times_ms)
    p95 = ordered[min(len(ordered) - 1, math.ceil(0.95 * len(ordered)) - 1)]
    return f"{ordered[len(ordered) // 2]:.1f} / {p95:.1f}"
