"""Runs the suite over each real engine, which is started once per session."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from core.memory.http import CallTimeout
from core.memory.plugins import Plugins
from core.memory.provider import MemoryProvider
from tests.fixtures.provider_contract import Subject
from tests.fixtures.provider_harness import ProviderHarness
from tests.services.engines.engine import ENGINES, Engine, Running


class EngineSubject(Subject):
    """`number` makes the names of a test unique, because all tests share the engine."""

    def __init__(self, engine: Engine, running: Running, number: int) -> None:
        self.service, self.variables = engine, dict(running.variables)
        self.options: dict[str, Any] = {"namespace": f"test{number}", **running.options}

    def made(self, home: Path, **options: Any) -> MemoryProvider:
        return Plugins(home).create_provider(
            self.service.name, {**self.options, **options}, self.variables
        )

    async def copies(self, one: ProviderHarness, text: str) -> int:
        """Return the copies that the engine itself shows."""
        return sum(text in line for line in await one.recalled(text))


@pytest.fixture(scope="session", params=ENGINES)
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Engine, Running, Iterator[int]]]:
    found = ENGINES[request.param]
    if why := found.missing():
        pytest.skip(f"{request.param} is not here: {why}")
    with found.running(tmp_path_factory.mktemp(request.param)) as running:
        yield found, running, count(1)


@pytest.fixture(autouse=True)
def patient_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search of brv starts a program, which takes long on a busy machine."""
    monkeypatch.setattr("core.memory.services.byterover.SEARCH", CallTimeout(60.0, 60.0))


@pytest.fixture
def subject(engine: tuple[Engine, Running, Iterator[int]]) -> EngineSubject:
    found, running, numbers = engine
    return EngineSubject(found, running, next(numbers))
