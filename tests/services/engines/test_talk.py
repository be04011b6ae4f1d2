"""A conversation with each real engine, which is killed between two turns while all its items wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from core.errors import DeliveryError
from core.memory.service import RemoteService, SyncItem
from core.types import LOCAL_SCOPE
from tests.end_to_end.test_provider_restart import chatting, say
from tests.fixtures.command_line import good
from tests.fixtures.provider_harness import ProviderHarness, harness
from tests.services.engines.conftest import EngineSubject
from tests.services.test_turn import is_stored

MAX_RECALLS = 6
SAID = ["The boat is called Molly.", "The dog is called Rex.", "The cat is called Tom."]


async def test_a_talk_of_three_turns_with_a_kill_after_each_is_known_to_it_once(
    subject: EngineSubject, home: Path
) -> None:
    name, options, variables = (
        subject.service.name,
        subject.options,
        {**subject.variables, "PYTHONFAULTHANDLER": "1"},
    )
    # Each line is answered separately, also the one that a killed process left unanswered.
    (home / "mneme.toml").write_text("[turn]\ngather_s = 0.0\n")
    written = {key: json.dumps(value).strip('"') for key, value in options.items()}
    given = [part for key, value in written.items() for part in ("--set", f"{key}={value}")]
    said = await asyncio.to_thread(good, home, "memory", "setup", name, *given, **variables)
    assert f"Found {name}" in said
    for line in SAID[:2]:
        async with chatting(home, **variables) as process:
            assert await say(process, line)
            await is_stored(home, line)
            process.kill()
            await process.wait()
    async with chatting(home, **variables) as process:
        assert await say(process, SAID[2])
        await _left(process)
    async with chatting(home, **variables) as process, asyncio.timeout(300):
        while (row := await _load_row(home, name, variables))["waiting"]:
            assert not row["undelivered"]
        assert (row["state"], row["mode"]) == ("on", "hybrid")
        await _left(process)
    async with harness(home, [subject.made(home)], 20) as one:
        for line in SAID:
            assert sum(line in known for known in await _recall(one, line)) == 1
            assert await one.recalled(line) == []


async def _recall(one: ProviderHarness, line: str) -> Sequence[str]:
    """Recall a line. An engine that gives no answer, or only a part of one, in time on a busy
    machine is asked again."""
    known: Sequence[str] = ()
    for _ in range(MAX_RECALLS):
        known = await one.recalled(line, LOCAL_SCOPE)
        if any(line in each for each in known):
            break
    return known


async def test_turn_that_waits_at_a_crash_is_sent_to_the_engine_once(
    subject: EngineSubject, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = subject.made(home)
    assert isinstance(provider, RemoteService)
    keep = provider.keep

    async def lost(space: str, told: SyncItem) -> Sequence[str]:
        await keep(space, told)
        raise DeliveryError("the process ends before it knows")

    monkeypatch.setattr(provider, "keep", lost)
    async with harness(home, [provider], 20) as one:
        for line in SAID:
            await one.turn(line)
        async with one.working():
            await one.carried(1)
        assert one.ends == ["postponed"]
    async with harness(home, [subject.made(home)], 20) as one, one.working():
        await one.memory.start()
        await one.later(seconds=3)
        await one.carried(3)
        assert one.ends == ["done"] * 3
        for line in SAID:
            assert sum(line in known for known in await one.recalled(line)) == 1


async def _left(process: asyncio.subprocess.Process) -> None:
    _, said = await process.communicate(b"")
    assert process.returncode == 0, said.decode()


async def _load_row(home: Path, name: str, variables: dict[str, str]) -> dict[str, object]:
    """Return the line about a service in the owner's list."""
    listed = await asyncio.to_thread(good, home, "memory", "providers", "--json", **variables)
    rows: list[dict[str, object]] = json.loads(listed)["providers"]
    return next(row for row in rows if row["name"] == name)
