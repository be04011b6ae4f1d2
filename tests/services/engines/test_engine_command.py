"""`mneme memory engine hindsight` with the real engine keeps its data after a kill, as the user
`nobody`."""

from __future__ import annotations

import os
import signal
import subprocess
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from core.memory.plugins import Plugins
from tests.fixtures.command_line import process
from tests.fixtures.provider_contract import ASKED, SAID
from tests.fixtures.provider_harness import harness
from tests.services.engines.engine import ENGINES, ROOT, START_S, free_port, models

KEY = "engine-key-1234567890"


@pytest.mark.skipif(ENGINES["hindsight"].missing() != "", reason="hindsight is not here")
async def test_local_hindsight_engine_runs_until_stopped_and_keeps_its_memories_over_a_restart(
    home: Path,
) -> None:
    def engine(action: str, *given: str) -> subprocess.CompletedProcess[str]:
        command = ("memory", "engine", "hindsight", action, *given)
        variables = {"MNEME_HOME": str(home), "ENGINE_KEY": KEY}
        return process(home.parent, command, "", variables, START_S)

    port = free_port()
    with models() as url, TemporaryDirectory(prefix="mneme-engine-") as data:
        options = {
            "llm_url": url,
            "llm_model": "any",
            "llm_provider": "mock",
            "embedder_url": url,
            "key": "ENGINE_KEY",
            "port": port,
            "data": data,
        }
        given = [part for name, value in options.items() for part in ("--set", f"{name}={value}")]
        table = {"url": f"http://127.0.0.1:{port}", "key": "ENGINE_KEY", "retain_async": False}
        made = partial(Plugins(home).create_provider, "hindsight", table)
        try:
            done = engine("start", "--program", str(ROOT / "hindsight/bin/hindsight-api"), *given)
            assert "hindsight 1.1.0 is running at" in done.stdout, done.stderr
            async with (
                harness(home, [made({"ENGINE_KEY": KEY})], timeout_s=60) as one,
                one.working(),
            ):
                await one.turn(SAID)
                await one.carried(1)
                assert one.ends == ["done"]
                assert "Porto" in "\n".join(await one.recalled(ASKED))
            os.kill(
                int((home / "engines/hindsight/server.pid").read_text().split()[0]), signal.SIGKILL
            )
            while "is running at" in engine("status").stdout:
                pass
            assert "but its PostgreSQL is" in engine("status").stdout
            assert "MB of memory" in engine("start").stdout
            async with harness(home, [made({"ENGINE_KEY": KEY})], timeout_s=60) as one:
                assert "Porto" in "\n".join(await one.recalled(ASKED))
            async with harness(home, [made({"ENGINE_KEY": "another"})]) as one:
                assert await one.recalled(ASKED) == []
        finally:
            assert engine("stop").returncode == 0
        assert engine("status").stdout == "hindsight isn't running.\n"
        assert not any("postmaster.pid" in files for _, _, files in os.walk(data))
