"""The write-ahead log stays small however busy the machine is."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.store.sqlite.database import LOG_FULL_BYTES, Database
from core.types import Address
from tests.fixtures.gateway_harness import open_gateway

CHATS = 200
ROUNDS = 4
BUSY_THREADS = 3


@contextmanager
def busy_interpreter() -> Iterator[None]:
    """Threads that compute all the time, so that inline reads run out of their time."""
    is_over = threading.Event()

    def compute() -> None:
        while not is_over.is_set():
            sum(range(10_000))

    threads = [threading.Thread(target=compute) for _ in range(BUSY_THREADS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


async def read_without_time(database: Database) -> None:
    """Reads that are interrupted inline, as on a machine that is always busy, until cancelled."""
    numbers = [
        f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {count}) "
        "SELECT COUNT(*) FROM n, (SELECT COUNT(*) FROM state_meta)"
        for count in (50, 300, 2_000)
    ]
    for query in itertools.cycle(numbers):
        await database.read_inline(
            lambda connection, query=query: connection.execute(query).fetchone(),  # type: ignore[misc]
            limit_s=0.0,
        )
        await asyncio.sleep(0)


async def test_log_stays_small_while_200_conversations_go_on_on_a_busy_machine(home: Path) -> None:
    chats = [Address(platform="telegram", chat_id=str(number)) for number in range(CHATS)]
    async with open_gateway(home) as harness:
        database = harness.services.database
        sizes: list[int] = []
        reading = asyncio.create_task(read_without_time(database))
        with busy_interpreter():
            for number in range(ROUNDS):
                words = f"The ferry {number} leaves from the harbour. " * 20
                await asyncio.gather(*(harness.say(words, address=chat) for chat in chats))
                sizes.append(database.log_bytes())
        reading.cancel()
        assert max(sizes) < 2 * LOG_FULL_BYTES, sizes
        assert await database.checkpoint()
        assert database.log_bytes() == 0
