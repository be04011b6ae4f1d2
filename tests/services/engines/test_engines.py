"""Runs the suite over the real engines that `tests/services/setup.sh` installs, to check the
doubles."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from core.errors import DeliveryError
from core.memory.service import Entry, RemoteService, SyncItem
from core.memory.services.byterover import ByteRover
from tests.fixtures.provider_contract import ASKED, SAID
from tests.fixtures.provider_harness import ANA, BEN, harness
from tests.services.engines.conftest import EngineSubject
from tests.services.test_byterover import OTHERWISE, add_files
from tests.services.test_conformance import (
    TestContract,
    test_memory_service_adds_replaces_and_removes_notes_of_one_person,
    test_state_of_a_service_names_it_and_never_shows_its_key,
    test_tool_deletes_only_what_the_person_may_see,
    test_tools_of_a_memory_service_find_and_store_only_for_the_person_who_asks,
)

__all__ = [
    "TestContract",
    "test_memory_service_adds_replaces_and_removes_notes_of_one_person",
    "test_state_of_a_service_names_it_and_never_shows_its_key",
    "test_tool_deletes_only_what_the_person_may_see",
    "test_tools_of_a_memory_service_find_and_store_only_for_the_person_who_asks",
]


async def test_engine_stores_a_repeated_turn_once_and_erases_it_as_a_whole(
    subject: EngineSubject, home: Path
) -> None:
    provider = subject.made(home)
    assert isinstance(provider, RemoteService)
    async with harness(home, [provider], 20) as one:
        own = one.memory.externals[provider.name]
        await own.call(20, "is_available")
        space, key = provider.space(ANA), provider.record.derive_name("turn")
        told = SyncItem(key=key, kind="turn", lines=[("user", SAID)], at=one.clock.now())
        await own._run(partial(provider.keep, space, told))
        remote = await own._run(partial(provider.keep, space, replace(told, is_retry=True)))
        assert await subject.copies(one, SAID) == 1
        entry = Entry(key=key, space=space, remote=remote)
        assert await own._run(partial(provider.holds, entry))
        # It is not known what it calls it, and it is not there any more.
        for known in (replace(entry, remote=None), entry):
            await own._run(partial(provider.erase, known))
            assert not await own._run(partial(provider.holds, known))
        assert await one.recalled(ASKED) == []


@pytest.mark.parametrize("engine", ["hindsight"], indirect=True)
async def test_engine_erases_memories_that_it_makes_after_the_erasure(
    subject: EngineSubject, home: Path
) -> None:
    provider = subject.made(home, retain_async=True)
    assert isinstance(provider, RemoteService)
    async with harness(home, [provider], 20) as one:
        own = one.memory.externals[provider.name]
        await own.call(20, "is_available")
        space, key = provider.space(ANA), provider.record.derive_name("turn")
        told = SyncItem(key=key, kind="turn", lines=[("user", SAID)], at=one.clock.now())
        remote = await own._run(partial(provider.keep, space, told))
        assert len(remote) == 1
        entry, refusals = Entry(key=key, space=space, remote=remote), set[str]()
        async with asyncio.timeout(60):
            while True:
                try:
                    await own._run(partial(provider.erase, entry))
                    break
                except DeliveryError as error:
                    refusals.add(str(error))
        assert refusals <= {"hindsight has not processed the text yet"}
        assert not await own._run(partial(provider.holds, entry))
        assert await one.recalled(ASKED) == []


@pytest.mark.parametrize("engine", ["byterover"], indirect=True)
async def test_its_model_answers_from_the_files_of_whoever_asks(
    subject: EngineSubject, home: Path
) -> None:
    async with harness(home, [subject.made(home)], 20) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        tools = {tool.name: tool for tool in await one.memory.tools()}
        mine, other = await one.context(ANA), await one.context(BEN)
        assert "Porto" in await tools["brv_query"].run({"query": ASKED}, mine)
        assert await tools["brv_query"].run({"query": ASKED}, other) == "It has nothing to say."
        assert "It has 1 files" in await tools["brv_status"].run({}, mine)


@pytest.mark.parametrize("engine", ["byterover"], indirect=True)
async def test_byterover_search_finds_a_file_with_any_word_of_the_question_in_a_large_tree(
    subject: EngineSubject, home: Path
) -> None:
    provider = subject.made(home)
    assert isinstance(provider, ByteRover)
    async with harness(home, [provider], 20) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        add_files(provider)
        assert "Porto" in "\n".join(await one.recalled(OTHERWISE))
