"""A whole process with a memory service, killed between what it was told and what the service
took."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fixtures.command_line import good, mneme
from tests.fixtures.memory_service import KEY, MemoryService, memory_service
from tests.fixtures.provider_harness import plugged

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


@asynccontextmanager
async def chatting(home: Path, **variables: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """`mneme chat` with an open input."""
    environ = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environ |= {
        "MNEME_HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "JOTTER_KEY": KEY,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environ |= variables
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gateway.cli.main",
        "chat",
        stdin=-1,
        stdout=-1,
        stderr=-1,
        env=environ,
        cwd=home.parent,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def say(process: asyncio.subprocess.Process, line: str) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line.encode() + b"\n")
    await process.stdin.drain()
    return await process.stdout.readline()


async def taken(service: MemoryService, many: int) -> None:
    async with asyncio.timeout(40):
        while len(service.held) < many:
            service.is_told.clear()
            await service.is_told.wait()


async def dropped(service: MemoryService, left: int) -> None:
    async with asyncio.timeout(40):
        while len(service.held) > left:
            service.is_told.clear()
            await service.is_told.wait()


async def test_turn_that_a_killed_process_owed_a_service_is_sent_once_by_the_next(
    home: Path,
) -> None:
    plugged(home, "jotter")
    async with memory_service() as service:
        (home / "mneme.toml").write_text(
            f"[memory.providers.jotter]\nurl = '{service.url}'\nkey = 'JOTTER_KEY'\nmode = 'tools'\n"
        )
        service.mood = "hanging"
        async with chatting(home) as process:
            assert await say(process, "The boat is called Molly.")
            async with asyncio.timeout(40):
                await service.is_asked.wait()
            assert await say(process, "The dog is called Rex.")
            process.kill()
            await process.wait()
        assert service.held == {}
        service.mood = "well"
        async with chatting(home) as process:
            await taken(service, 2)
            assert await say(process, "The cat is called Tom.")
            await taken(service, 3)
            assert process.stdin is not None
            process.stdin.close()
            assert await process.wait() == 0
        said = [text.split("\n")[0] for _, text in service.held.values()]
        assert said == [
            "user: The boat is called Molly.",
            "user: The dog is called Rex.",
            "user: The cat is called Tom.",
        ]
        assert {scope for scope, _ in service.held.values()} == {"account:terminal:local"}
        assert len(service.told) == 3


async def test_memory_sync_beside_a_running_gateway_sends_past_turns_and_forget_erases_them(
    home: Path,
) -> None:
    plugged(home, "jotter")
    lines = [
        {
            "session": name,
            "role": role,
            "text": f"{name} {role}",
            "at": f"2026-0{month}-03T09:00:00Z",
        }
        for name, month in (("may", 5), ("july", 7))
        for role in ("user", "assistant")
    ]
    (home / "past.jsonl").write_text("\n".join(map(json.dumps, lines)))
    async with memory_service() as service:
        (home / "mneme.toml").write_text(
            f"[memory.providers.jotter]\nurl = '{service.url}'\nkey = 'JOTTER_KEY'\n"
        )
        await asyncio.to_thread(good, home, "import", str(home / "past.jsonl"))
        async with chatting(home) as process:
            assert await say(process, "The boat is called Molly.")
            await taken(service, 1)
            assert next(iter(service.held.values()))[1].startswith("user: The boat")
            done = await asyncio.to_thread(mneme, home, "memory", "sync", "jotter", JOTTER_KEY=KEY)
            assert "Queued 2 conversations that " in done.stdout
            assert "Delivery starts now." in done.stdout
            await taken(service, 3)
            assert len(service.told) == 3
            done = await asyncio.to_thread(mneme, home, "forget", "may", "--yes")
            assert "jotter may have stored it, too. I've asked for it" in done.stdout
            await dropped(service, 2)
        assert sorted(text.split("\n")[0] for _, text in service.held.values()) == [
            "user: The boat is called Molly.",
            "user: july user",
        ]
