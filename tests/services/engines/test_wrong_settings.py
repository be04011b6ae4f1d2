"""A wrong key or a missing server gives the owner one sentence, with each real engine."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.fixtures.command_line import good, mneme
from tests.fixtures.gateway_harness import notices, open_gateway
from tests.fixtures.scripted_model import ScriptedModel
from tests.services.engines.conftest import EngineSubject
from tests.services.engines.engine import free_port

# The engines that are servers with a key.
SERVERS = ("hindsight", "openviking", "letta")


@pytest.mark.parametrize("wrong", ["key", "url"])
@pytest.mark.parametrize("engine", SERVERS, indirect=True)
async def test_wrong_setting_of_an_engine_is_a_sentence_in_setup_and_beside_turns(
    subject: EngineSubject, home: Path, wrong: str
) -> None:
    name, options, variables = subject.service.name, subject.options, subject.variables
    if wrong == "key":
        variables, why = (
            dict.fromkeys(variables, "another-key"),
            f"{name}: the key is not accepted.",
        )
    else:
        options = {**options, "url": f"http://127.0.0.1:{free_port()}"}
        why = f"{name} cannot be reached (ConnectError): does it run, and is its url right?"
    written = {key: json.dumps(value) for key, value in options.items()}
    given = [
        part
        for key, value in written.items()
        for part in ("--set", f"{key}={value.strip(chr(34))}")
    ]
    said = await asyncio.to_thread(good, home, "memory", "setup", name, *given, **variables)
    assert said.startswith(f"It doesn't answer correctly: {why}\n")
    assert "Found" not in said
    checked = await asyncio.to_thread(mneme, home, "check", "--json", **variables)
    (found,) = [one for one in json.loads(checked.stdout) if one["subject"] == f"memory {name}"]
    assert (found["state"], found["text"]) == ("wrong", why)
    table = "\n".join(
        [f"[memory.providers.{name}]", *(f"{key} = {value}" for key, value in written.items())]
    )
    async with open_gateway(home, ScriptedModel(), f"{table}\n", variables=variables) as made:
        for _ in range(3):
            assert (await made.say("Where does my sister Ines live?")).answer is not None
        # Inside another sentence, the reason has no full stop.
        reason = why.removesuffix(".")
        status = (await made.say("/status")).text.replace("\\", "")
        assert f"{name}: out of order, tried again from time to time: {reason}" in status
        # The notice is written in a task of its own.
        await asyncio.gather(*made.memory._tasks, return_exceptions=True)
        told = [text for where, text in await notices(made) if where == "telegram:42"]
        assert told == [
            f"The memory service “{name}” isn't working ({reason}). I go on without it and keep trying."
        ]
