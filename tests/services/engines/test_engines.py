"""The suite over the real engines that `tests/services/setup.sh` has made: what a double claims, an engine does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.memory.plugins import Plugins
from core.memory.provider import MemoryProvider
from tests.fixtures.provider_contract import Subject
from tests.fixtures.provider_harness import ProviderHarness
from tests.services.engines.engine import ENGINES, Engine, Running
from tests.services.test_conformance import (
    TestContract,
    test_it_says_what_it_is_and_nothing_of_its_key,
    test_its_tools_find_and_keep_for_whoever_asks,
    test_notes_are_kept_replaced_and_taken_out,
)

__all__ = [
    "TestContract",
    "test_it_says_what_it_is_and_nothing_of_its_key",
    "test_its_tools_find_and_keep_for_whoever_asks",
    "test_notes_are_kept_replaced_and_taken_out",
]


class EngineSubject(Subject):
    def __init__(self, engine: Engine, running: Running) -> None:
        self.service, self._running = engine, running

    def made(self, home: Path) -> MemoryProvider:
        return Plugins(home).made(self.service.name, self._running.options, self._running.variables)

    async def copies(self, one: ProviderHarness, text: str) -> int:
        """As it shows them itself."""
        return sum(text in line for line in await one.recalled(text))


@pytest.fixture(params=ENGINES)
async def subject(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EngineSubject]:
    engine = ENGINES[request.param]
    if why := engine.missing():
        pytest.skip(f"{request.param} is not here: {why}")
    async with engine.running(tmp_path) as running:
        yield EngineSubject(engine, running)
