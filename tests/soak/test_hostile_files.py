"""Over 200 hostile files through the whole gateway: no crash, no stall of the event loop, and no
more memory than the limits allow."""

from __future__ import annotations

import asyncio
import resource
import sys
from pathlib import Path

import pytest

from core.search.recall import load_word_lists
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.hostile_files import list_hostile_files
from tests.fixtures.loop_watch import watched
from tests.fixtures.scripted_model import ScriptedModel, says

WORKER_MB = 1024
# The gateway itself may grow by so much, most of which are the texts of the conversation.
GROWTH_MB = 150
NOTES = {"", "scan", "locked", "broken", "bomb", "unknown", "unheard", "inaudible"}


def gateway_mb() -> float:
    """How much memory this process uses now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


@pytest.mark.timeout(3_600)
async def test_hostile_files_are_answered_and_stored_within_the_memory_limits(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = list(list_hostile_files())
    assert len(files) >= 200
    model = ScriptedModel(*(says("Kept.") for _ in files))
    options = "[memory]\nfacts = false\n[media]\nwait_s = 300.0\n"
    notes: dict[str, int] = {}
    # `run_gateway` does this before anyone is served.
    await asyncio.to_thread(load_word_lists)
    # The opening of the gateway isn't watched, because nobody is served before it.
    async with open_gateway(home, model, options) as harness:
        with watched(monkeypatch, home / "loop.txt"):
            before_mb = 0.0
            for number, (what, name, content) in enumerate(files):
                reply = await harness.send(content, name, "document", f"What is this? {number}")
                assert reply.text.startswith("Kept."), (what, reply.text)
                rows = await harness.services.database.fetch_all(
                    "SELECT problem, note, type FROM message_files LEFT JOIN files USING (hash) "
                    "ORDER BY id DESC LIMIT 1"
                )
                (row,) = rows
                assert row["problem"] == "", what
                assert row["note"] in NOTES, what
                notes[row["note"]] = notes.get(row["note"], 0) + 1
                await harness.say("/new")
                if number == 20:
                    before_mb = gateway_mb()
            grown_mb = gateway_mb() - before_mb
    worker_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    sys.stderr.write(
        f"{len(files)} files: {notes}; worker {worker_mb:.0f} MB, gateway +{grown_mb:.0f} MB\n"
    )
    assert worker_mb < WORKER_MB
    assert grown_mb < GROWTH_MB
