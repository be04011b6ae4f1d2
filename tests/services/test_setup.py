"""A memory service as its owner uses it: setup, checks, a conversation, and a restart."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.end_to_end.test_provider_restart import ROOT, chatting, say
from tests.fixtures.command_line import mneme
from tests.services.doubles.double import KEY, Double, running
from tests.services.registry import SERVICES, Service, each
from tests.services.test_turn import is_stored, kept

pytestmark = pytest.mark.slow


@pytest.fixture(params=each())
async def served(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Service, Double]]:
    service = SERVICES[request.param]
    async with running(service.double()) as double:
        yield service, double


async def set_up(home: Path, service: Service, double: Double, **changed: str) -> str:
    """Return the output of `mneme memory setup` on both streams."""
    service.place(home, double)
    options = {**service.table(double), **changed}
    given = [
        part
        for name, value in options.items()
        for part in ("--set", f"{name}={json.dumps(value).strip(chr(34))}")
    ]
    done = await asyncio.to_thread(
        mneme, home, "memory", "setup", service.name, *given, SERVICE_KEY=KEY
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


async def test_memory_service_is_set_up_and_checked_without_showing_its_key(
    served: tuple[Service, Double], home: Path
) -> None:
    service, double = served
    said = await set_up(home, service, double)
    assert f"Found {service.name}" in said
    assert f"The memory service {service.name} will be on after the next start" in said
    assert KEY not in said + (home / "mneme.toml").read_text()
    assert (
        tomllib.loads((home / "mneme.toml").read_text())["memory"]["providers"][service.name][
            service.address
        ]
        == double.url
    )
    checked = await asyncio.to_thread(mneme, home, "check", "--json", SERVICE_KEY=KEY)
    (found,) = [
        one for one in json.loads(checked.stdout) if one["subject"] == f"memory {service.name}"
    ]
    assert (found["state"], "It can be used" in found["text"]) == ("right", True)
    double.fault = "unauthorized"
    said = await set_up(home, service, double)
    assert "the key is not accepted" in said
    assert f"The options of the memory service {service.name} are stored, but it doesn't" in said
    assert f"mneme memory setup {service.name} --off" in said
    checked = await asyncio.to_thread(mneme, home, "check", "--json", SERVICE_KEY=KEY)
    (found,) = [
        one for one in json.loads(checked.stdout) if one["subject"] == f"memory {service.name}"
    ]
    assert (found["state"], "the key is not accepted" in found["text"]) == ("wrong", True)
    assert KEY not in checked.stdout + checked.stderr


async def test_setup_of_an_unreachable_service_is_refused_with_a_sentence(
    served: tuple[Service, Double], home: Path
) -> None:
    service, double = served
    for url in ("http://127.0.0.1:9", f"{double.url}/elsewhere"):
        said = await set_up(home, service, double, **{service.address: url})
        why = said.partition("It doesn't answer correctly: ")[2].splitlines()[0]
        assert re.search(
            r"(cannot be reached|refuses|cannot reach its model|doesn't support).*(url right|set api)",
            why,
        )
        assert "Found" not in said


@pytest.mark.timeout(1200)
@pytest.mark.sweep
async def test_a_talk_of_three_turns_with_a_kill_after_each_is_known_to_it_once(
    served: tuple[Service, Double], home: Path
) -> None:
    service, double = served
    await set_up(home, service, double)
    said = ["The boat is called Molly.", "The dog is called Rex.", "The cat is called Tom."]
    for line in said[:2]:
        async with chatting(home, SERVICE_KEY=KEY) as process:
            assert await say(process, line)
            await is_stored(home, line)
            process.kill()
            await process.wait()
    async with chatting(home, SERVICE_KEY=KEY) as process:
        assert await say(process, said[2])
        for line in said:
            await kept(double, line)
        assert process.stdin is not None
        process.stdin.close()
        assert await process.wait() == 0
    assert [sum(line in text for text in double.texts()) for line in said] == [1, 1, 1]


async def test_memory_setup_at_a_terminal_asks_for_the_required_options(home: Path) -> None:
    async with running(SERVICES["mem0, self-hosted"].double()) as double:
        typed, typing = os.openpty()
        environ = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environ |= {"MNEME_HOME": str(home), "PYTHONPATH": str(ROOT), "SERVICE_KEY": KEY}
        command = [sys.executable, "-m", "gateway.cli.main", "memory", "setup", "mem0"]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=typing, stdout=-1, stderr=-1, env=environ
        )
        os.close(typing)
        os.write(typed, f"self_hosted\n{double.url}\nsk-1234\nSERVICE_KEY\n".encode())
        said, wrong = map(bytes.decode, await process.communicate())
        os.close(typed)
    assert process.returncode == 0, wrong
    assert "deployment: platform, self_hosted or embedded (a text)" in said
    assert "url: where it listens, if self_hosted (a text) [https://api.mem0.ai]" in said
    assert "not the secret itself" in said + wrong
    assert "Found mem0, a server at 127.0.0.1" in said
    table = tomllib.loads((home / "mneme.toml").read_text())["memory"]["providers"]["mem0"]
    expected = {"deployment": "self_hosted", "url": double.url, "key": "SERVICE_KEY"}
    assert table == {"enabled": True, "mode": "hybrid", **expected}
