"""Every provider there is, under the contract: what is built in, and the plugins of the tests with
their service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from core.memory.provider import MemoryProvider
from core.notes.notebook import Notebook
from core.notes.provider import NotesProvider
from core.search.recall import HistoryProvider, Recall
from core.store.notes import Notes
from core.store.sqlite.database import Database
from core.types import Scope
from tests.fixtures.facts_memory import evidence_of, facts_memory
from tests.fixtures.memory_service import KEY, memory_service
from tests.fixtures.note_edits import add_note
from tests.fixtures.provider_contract import SAID, ProviderContract, ServiceContract, Subject
from tests.fixtures.provider_harness import ProviderHarness, provider
from tests.fixtures.scheduler_harness import RunningClock

pytestmark = pytest.mark.slow

ZONE = "Europe/Lisbon"


class _History(Subject):
    is_service = False

    def built(self, home: Path, database: Database, clock: RunningClock) -> MemoryProvider:
        return HistoryProvider(Recall(database, clock, ZONE), ZONE)


class _Facts(Subject):
    is_service = False

    def built(self, home: Path, database: Database, clock: RunningClock) -> MemoryProvider:
        return facts_memory(database, clock)


class _Notes(Subject):
    """Written by hand or by the model, read in the prompt."""

    is_service = False

    def built(self, home: Path, database: Database, clock: RunningClock) -> MemoryProvider:
        self.notebook = Notebook(home, Notes(database), clock, {"memory": 2200, "user": 1375})
        return NotesProvider(self.notebook, evidence_of(database))

    async def keep(self, one: ProviderHarness, scope: Scope) -> None:
        await add_note(self.notebook, scope, frozenset({scope}), "user", SAID)

    async def found(self, one: ProviderHarness, *scopes: Scope) -> Sequence[str]:
        block = await one.memory.system_prompt_block(await one.context(*scopes))
        return [line.replace("- ", "n1 ", 1) for line in block.split("\n") if line.startswith("- ")]


class _Diary(Subject):
    def made(self, home: Path) -> MemoryProvider:
        return provider(home, "diary", {}, {})


class _Jotter(Subject):
    def __init__(self, url: str) -> None:
        self._url = url

    def made(self, home: Path) -> MemoryProvider:
        return provider(
            home, "jotter", {"url": self._url, "key": "JOTTER_KEY"}, {"JOTTER_KEY": KEY}
        )


class TestHistory(ProviderContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return _History()


class TestFacts(ProviderContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return _Facts()


class TestNotes(ProviderContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return _Notes()


class TestDiary(ServiceContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return _Diary()


class TestJotter(ServiceContract):
    @pytest.fixture
    async def subject(self) -> AsyncIterator[Subject]:
        async with memory_service() as service:
            yield _Jotter(service.url)
