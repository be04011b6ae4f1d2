"""A turn whose memory service works, never answers, or fails: how long it takes, and which notice
it gets."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import get_args

import pytest
from structlog.testing import capture_logs

from config.settings import Settings
from core.memory.provider import Mode
from gateway.check import run_checks
from gateway.upkeep.home_checks import CheckResult
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.provider_contract import ASKED, SAID
from tests.fixtures.scripted_model import ScriptedModel
from tests.services.doubles.double import KEY, Double, running
from tests.services.registry import SERVICES, Service, each

pytestmark = pytest.mark.slow

# How long a turn waits for a service that never answers, and for one that does.
SHORT_BOX_S, LONG_BOX_S = 0.5, 60.0
DEADLINE_S = 300.0
LATE = "a memory provider took too long and was skipped"


@asynccontextmanager
async def house(
    home: Path,
    service: Service,
    double: Double,
    mode: Mode = "hybrid",
    box_s: float = LONG_BOX_S,
) -> AsyncIterator[GatewayHarness]:
    """With the service on, and what it is to be told on its way."""
    service.place(home, double)
    written = "\n".join(
        f"{name} = {json.dumps(value)}" for name, value in service.table(double).items()
    )
    table = f'[memory]\nprefetch_timeout_s = {box_s}\n[memory.providers.{service.name}]\nmode = "{mode}"\n{written}\n'
    async with open_gateway(home, ScriptedModel(), table, variables={"SERVICE_KEY": KEY}) as made:
        assert not made.memory.warnings
        worker = asyncio.create_task(made.delivery.run())
        try:
            yield made
        finally:
            worker.cancel()
            await asyncio.wait([worker])


async def kept(double: Double, text: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not any(text in one for one in double.texts()):
            await asked(double)


async def is_stored(home: Path, line: str) -> None:
    """Wait until a line is stored as a message. An answer may be that to an earlier line."""
    async with asyncio.timeout(DEADLINE_S):
        while not _has_message(home, line):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def _has_message(home: Path, line: str) -> bool:
    with closing(sqlite3.connect(home / "state.db")) as connection:
        statement = "SELECT 1 FROM messages WHERE text = ?"
        return connection.execute(statement, (line,)).fetchone() is not None


async def asked(double: Double) -> None:
    """Wait for the next question to the service."""
    double.is_asked.clear()
    await asyncio.wait([asyncio.ensure_future(double.is_asked.wait())], timeout=0.2)


def given(made: GatewayHarness) -> str:
    """Return the last request to the model."""
    assert isinstance(made.model, ScriptedModel)
    return str(made.model.requests[-1].messages)


def told_by(made: GatewayHarness, service: Service) -> str:
    """Those lines of what the model was given last that the service found."""
    return str([line for line in given(made).split("\\n") if f"{service.name}:" in line])


@pytest.mark.parametrize("name", each())
async def test_turn_waits_at_most_its_time_limit_for_a_memory_service_that_never_answers(
    home: Path, name: str
) -> None:
    service = SERVICES[name]
    async with (
        running(service.double()) as double,
        house(home, service, double, box_s=SHORT_BOX_S) as made,
    ):
        await made.say(SAID)
        await kept(double, SAID)
        double.fault = "hanging"
        # One that goes on, and one that ends a conversation and begins another: once the box, and
        # no second time.
        for before in ("", "/new"):
            with capture_logs() as logs:
                async with asyncio.timeout(DEADLINE_S):
                    if before:
                        await made.say(before)
                    assert (await made.say(ASKED)).answer is not None
            late = [entry["provider"] for entry in logs if entry["event"] == LATE]
            assert late.count(service.name) == 1
        assert "Porto" not in told_by(made, service)


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.parametrize("name", each())
async def test_each_memory_mode_gives_the_model_only_the_context_or_tools_that_it_names(
    home: Path, name: str, mode: Mode
) -> None:
    service = SERVICES[name]
    async with running(service.double()) as double, house(home, service, double, mode) as made:
        await made.say(SAID)
        await kept(double, SAID)
        await made.say("/new")
        await made.say(ASKED)
        assert isinstance(made.model, ScriptedModel)
        request = made.model.requests[-1]
        tools = {str(tool["name"]) for tool in request.tools}
        own = {tool for tool in (service.search_tool, service.add_tool) if tool}
        assert tools & own == (own if mode != "context" else set())
        assert ("Porto" in told_by(made, service)) == (mode != "tools")
        system = "".join(str(part["text"]) for part in request.system)
        assert (f"## {service.name.upper()}\n" in system) == (mode != "tools")
        if service.search_tool:
            assert (f"{service.search_tool} finds more" in system) == (mode == "hybrid")


@pytest.mark.parametrize("name", each())
async def test_status_and_check_report_the_state_of_the_service_without_its_key(
    home: Path, name: str
) -> None:
    service = SERVICES[name]

    async def checked() -> CheckResult:
        settings = Settings.load({"MNEME_HOME": str(home), "SERVICE_KEY": KEY})
        return next(
            one for one in await run_checks(settings) if one.subject == f"memory {service.name}"
        )

    async with running(service.double()) as double, house(home, service, double) as made:
        await made.memory.start()
        await asyncio.gather(*made.memory._tasks)
        about = str(made.memory.externals[service.name].description)
        assert about.startswith(service.name)
        status = (await made.say("/status")).text.replace("\\", "")
        assert f"**memory**: {service.name}: works; {about}\n" in status
        found = await checked()
        assert (found.state, about[:80] in found.text) == ("right", True)
        assert "nothing waits to be sent" in found.text
        await made.say(SAID)
        await kept(double, SAID)
        double.fault = "failing"
        for _ in range(3):
            await made.say(ASKED)
        async with asyncio.timeout(DEADLINE_S):
            while not (await made.services.outbox.count_items(f"memory:{service.name}:")).error:
                await asked(double)
        said = (await made.say("/status")).text.replace("\\", "")
        assert f"**memory**: {service.name}: out of order, tried again from time to time: " in said
        assert "to be sent to it" in said
        assert "(last error: " in said
        found = await checked()
        assert found.state == "wrong"
        assert "to be sent to it" in found.text
        assert "(last error: " in found.text
        assert KEY not in said + found.text
