"""The rules that every memory service follows, tested through the real manager and outbox.

In addition to the contract of all providers, there are the cases of a service on a network. A
service is a line in `registry.py`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import get_args

import pytest

from core.errors import ToolError
from core.memory.http import CallTimeout
from core.memory.model_server import JsonModel
from core.memory.provider import MemoryProvider
from core.memory.service import ReflectionOptions
from core.store.notes import NoteChange
from core.types import Scope, Tool, ToolContext
from gateway.texts.catalog import load_texts
from tests.fixtures.english_words import find_english
from tests.fixtures.provider_contract import ASKED, SAID, ServiceContract, Subject
from tests.fixtures.provider_harness import ANA, BEN, ProviderHarness, harness
from tests.services.doubles.double import KEY, RETRY_AFTER_S, Double, Fault, running
from tests.services.registry import SERVICES, Service, each

pytestmark = pytest.mark.slow

FINAL = ("refusing", "unauthorized")
PASSING: list[Fault] = [one for one in get_args(Fault) if one not in (*FINAL, "well")]
# Names in the descriptions of services that stay as they are in every language.
PRODUCT_WORDS = ("auth_mode trusted",)
ROOM = Scope.group("telegram", "-5551234")


class ServiceSubject(Subject):
    """A service with its double."""

    def __init__(self, service: Service, double: Double) -> None:
        self.service, self.double = service, double

    def made(self, home: Path) -> MemoryProvider:
        return self.service.made(home, self.double)

    def fails(self, fault: Fault) -> None:
        """Let the service fail in this way from now on, if it can."""
        if fault in self.service.never:
            pytest.skip(f"{self.service.name} cannot fail so")
        self.double.fault = fault

    async def copies(self, one: ProviderHarness, text: str) -> int:
        """Return how many copies of a text the service stores."""
        return sum(text in kept for kept in self.double.texts())

    def sent(self) -> str:
        """Return all texts that the service ever got."""
        return "\n".join([*self.double.sent, *self.double.asked])

    def said_of_it(self, one: ProviderHarness) -> str:
        """Return the state of the service that the owner sees."""
        descriptions = [service.description for service in one.memory.externals.values()]
        return f"{one.memory.states} {descriptions} {one.notices} {one.outbox.ends}"


@pytest.fixture(params=each())
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[ServiceSubject]:
    service = SERVICES[request.param]
    async with running(service.double()) as double:
        yield ServiceSubject(service, double)


class TestContract(ServiceContract):
    """Available, initialised, stored, found, of its scope only, linked, restarted, forgotten;
    nothing of a schedule."""


async def test_state_of_a_service_names_it_and_never_shows_its_key(
    subject: ServiceSubject, home: Path
) -> None:
    async with harness(home, [subject.made(home)]) as one:
        await one.memory.start()
        await asyncio.gather(*one.memory._tasks)
        name = subject.service.name
        assert one.memory.states[name] == "works"
        description = one.memory.externals[name].description
        assert description is not None
        assert str(description).startswith(name)
        assert KEY not in str(description)
        # The plugins describe themselves in English, as a provider of somebody else may.
        if not subject.service.is_plugin:
            typed = [name, *map(str, description.values.values()), *PRODUCT_WORDS]
            assert find_english(load_texts("fr").word(description), "fr", typed) == []


async def test_service_gets_what_was_typed_under_no_name_of_an_account(
    subject: ServiceSubject, home: Path
) -> None:
    async with harness(home, [subject.made(home)]) as one, one.working():
        await one.turn(f"{SAID}\n\nPasted zebra.", "```\nfenced walrus\n```")
        await one.turn("My key is sk-ant-abcdefgh12345678.", scope=ROOM)
        await one.turn("pasted ocelot " * 100)
        await one.carried(3)
        assert one.ends == ["done"] * 3
        assert await subject.copies(one, SAID) == 1
        everything = subject.sent()
        for word in ("zebra", "walrus", "ocelot", "sk-ant", "telegram", "account:", "5551234"):
            assert word not in everything


async def test_memory_service_adds_replaces_and_removes_notes_of_one_person(
    subject: ServiceSubject, home: Path
) -> None:
    tea, mate = "Ana likes green tea in the morning.", "Ana likes bitter mate in the morning."
    steps = (("add", None, tea), ("replace", tea, mate), ("remove", mate, None))
    kept = []
    async with harness(home, [subject.made(home)]) as one, one.working():
        for number, (action, before, after) in enumerate(steps, 1):
            at = one.clock.now()
            change = NoteChange(
                scope=ANA, target="user", action=action, before=before, after=after, at=at
            )
            await one.notes.log_changes(change)
            await one.memory.on_memory_write()
            await one.carried(number)
            kept.append((await subject.copies(one, tea), await subject.copies(one, mate)))
            found = "\n".join(await one.recalled("what does Ana like in the morning?"))
            assert ("tea" in found, "mate" in found) == tuple(map(bool, kept[-1]))
            assert await one.recalled("what does Ana like in the morning?", BEN) == []
    assert kept == [(1, 0), (0, 1), (0, 0)]


@pytest.mark.parametrize("fault", FINAL)
async def test_turn_refused_for_good_is_not_sent_again_and_delays_nothing(
    subject: ServiceSubject, home: Path, fault: Fault
) -> None:
    async with harness(home, [subject.made(home)]) as one, one.working():
        subject.fails(fault)
        await one.turn(SAID)
        await one.carried(1)
        subject.double.fault = "well"
        await one.turn("My brother Rui lives in Braga.")
        await one.carried(2)
        assert one.ends == ["buried", "done"]
        assert (await subject.copies(one, SAID), await subject.copies(one, "Braga")) == (0, 1)
        error = (await one.outbox.count_items()).error
        assert ("key is not accepted" in error) == (fault == "unauthorized")
        assert KEY not in error + subject.said_of_it(one)
        assert "Ines" not in error + subject.said_of_it(one)


@pytest.mark.parametrize("fault", PASSING)
async def test_turn_after_a_passing_fault_is_sent_again_in_order_and_once(
    subject: ServiceSubject, home: Path, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = CallTimeout(0.3, 0.3)
    monkeypatch.setattr("core.memory.http.WRITE", short)
    monkeypatch.setattr(JsonModel.complete, "__defaults__", (short,))
    async with harness(home, [subject.made(home)]) as one, one.working():
        # A service may first look up where to write.
        for name, module in list(sys.modules.items()):
            if name.startswith("core.memory.services.") and hasattr(module, "SEARCH"):
                monkeypatch.setattr(module, "SEARCH", short)
        subject.fails(fault)
        await one.turn(SAID)
        await one.turn("My brother Rui lives in Braga.")
        await one.carried(1)
        assert one.ends == ["postponed"]
        error = (await one.outbox.count_items()).error
        assert error
        assert KEY not in error + subject.said_of_it(one)
        assert "Ines" not in error + subject.said_of_it(one)
        monkeypatch.undo()
        subject.double.fault = "well"
        subject.double.may_go.set()
        if fault == "limited":
            monkeypatch.setattr("core.memory.http.monotonic", lambda: 10.0**9)
        await one.later(seconds=2 if fault != "limited" else RETRY_AFTER_S + 1)
        await one.carried(3)
        assert one.ends == ["postponed", "done", "done"]
        assert (await subject.copies(one, SAID), await subject.copies(one, "Braga")) == (1, 1)


@pytest.mark.parametrize("fault", [*FINAL, *PASSING])
async def test_turn_continues_when_the_memory_services_search_hangs_fails_or_is_rate_limited(
    subject: ServiceSubject, home: Path, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with harness(home, [subject.made(home)], timeout_s=60.0) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        if fault in ("hanging", "slow"):
            one.memory._timeout_s = 0.1
        subject.fails(fault)
        async with asyncio.timeout(100):
            assert await one.recalled(ASKED) == []
        assert KEY not in subject.said_of_it(one)
        subject.double.fault = "well"
        searches = one.searches()
        subject.double.may_go.set()
        await asyncio.gather(*searches)
        one.memory._timeout_s = 60.0
        if fault == "limited":
            assert await one.recalled(ASKED) == [], "it asked to be left alone"
            monkeypatch.setattr("core.memory.http.monotonic", lambda: 10.0**9)
        assert "Porto" in "\n".join(await one.recalled(ASKED))


async def test_two_homes_on_one_server_share_no_memories_of_the_same_account(
    subject: ServiceSubject, home: Path, tmp_path: Path
) -> None:
    other_home = tmp_path / "other"
    other_home.mkdir()
    braga = "My brother Rui lives in Braga."
    for place, text in ((home, SAID), (other_home, braga)):
        async with harness(place, [subject.made(place)], 60) as one, one.working():
            await one.turn(text)
            await one.carried(1)
    questions = f"{ASKED} Where does my brother Rui live?"
    for place, own, foreign in ((home, "Porto", "Braga"), (other_home, "Braga", "Porto")):
        async with harness(place, [subject.made(place)], 60) as one:
            lines = "\n".join(await one.recalled(questions))
            assert (own in lines, foreign in lines) == (True, False)


async def test_memory_service_is_not_called_for_a_minute_after_three_failures(
    subject: ServiceSubject, home: Path
) -> None:
    async with harness(home, [subject.made(home)]) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        subject.fails("failing")
        context = await one.context(ANA)
        for _ in range(3):
            assert await one.memory.prefetch(ASKED, context) == []
            await one.memory.queue_prefetch(ASKED, context)
            await asyncio.gather(*one.searches())
        state = one.memory.states[subject.service.name]
        assert state.startswith("out of order, tried again from time to time: ")
        assert [kind for kind, *_ in one.notices] == ["down"]
        before = len(subject.double.asked)
        assert await one.memory.prefetch(ASKED, context) == []
        assert len(subject.double.asked) == before
        subject.double.fault = "well"
        one.clock.advance(seconds=60)
        assert "Porto" in "\n".join(await one.memory.prefetch(ASKED, context))
        assert one.memory.states[subject.service.name].startswith("works")


async def test_turn_waiting_at_the_end_of_the_process_is_sent_once_by_the_next(
    subject: ServiceSubject, home: Path
) -> None:
    said = [SAID, "My brother Rui lives in Braga.", "Our boat is called Molly."]
    async with harness(home, [subject.made(home)]) as one:
        for text in said:
            await one.turn(text)
        # The first one arrives, and the process ends before it knows.
        async with one.working():
            subject.double.fault = "lost"
            await one.carried(1)
    subject.double.fault = "well"
    async with harness(home, [subject.made(home)]) as one, one.working():
        await one.memory.start()
        await one.later(seconds=3)
        await one.carried(3)
        assert [await subject.copies(one, text) for text in said] == [1, 1, 1]
        assert "Porto" in "\n".join(await one.recalled(ASKED))


async def test_reflection_of_a_memory_service_is_given_to_the_next_turn_only_if_configured(
    subject: ServiceSubject, home: Path
) -> None:
    if not issubclass(subject.made(home).options or object, ReflectionOptions):
        pytest.skip(f"{subject.service.name} can be asked for single memories only")
    for is_set in (False, True):
        provider = subject.service.made(home, subject.double, reflect=is_set)
        async with harness(home, [provider]) as one, one.working():
            if not is_set:
                await one.turn(SAID)
                await one.carried(1)
                subject.double.work()
            before = len(subject.double.asked)
            mine, other = await one.context(ANA), await one.context(BEN)
            for context in (mine, other):
                await one.memory.queue_prefetch(ASKED, context)
                await asyncio.gather(*one.searches())
            assert (len(subject.double.asked) > before) == is_set
            assert (
                "Porto" in "\n".join(await one.memory.prefetch("What else is new?", mine))
            ) == is_set
            assert await one.memory.prefetch("What else is new?", other) == []


async def test_several_turns_are_sent_to_a_memory_service_in_one_batch_and_forgotten_singly(
    subject: ServiceSubject, home: Path
) -> None:
    said = [
        SAID,
        "My brother Rui lives in Braga.",
        "Our boat is called Molly.",
        "The dog is called Rex.",
    ]

    def made() -> MemoryProvider:
        return subject.service.made(home, subject.double, every_turns=3)

    async with harness(home, [made()]) as one, one.working():
        for text in said[:2]:
            await one.turn(text)
        assert (await one.outbox.count_items()).due == 0
        for text in said[2:]:
            await one.turn(text)
        await one.carried(1)
        assert [await subject.copies(one, text) for text in said] == [1, 1, 1, 0]
    async with harness(home, [made()]) as one, one.working():
        await one.memory.start()
        await one.carried(1)
        assert [await subject.copies(one, text) for text in said] == [1, 1, 1, 1]
        rows = await one.conversations.load_history(await one.session(), frozenset({ANA}))
        (gone,) = [row.id for row in rows if row.text == SAID]
        await one.database.execute(
            "UPDATE messages SET kind = 'command', text = '' WHERE id = :id", {"id": gone}
        )
        assert await one.queue.forget([gone])
        one.worker.wake()
        await one.carried(5)
        assert one.ends == ["done"] * 5
        assert [await subject.copies(one, text) for text in said] == [0, 1, 1, 1]
        assert "Braga" in "\n".join(await one.recalled("where does my brother Rui live?"))


async def search_until_found(tool: Tool, question: str, context: ToolContext, word: str) -> str:
    """Search with a service's tool until its result contains a word, and return the result.

    On a busy machine, a service that works may miss the time limit of one search.
    """
    result = ""
    for _ in range(10):
        result = await tool.run({"query": question}, context)
        if word in result:
            return result
    pytest.fail(f"no search found {word!r}, the last one returned: {result}")


async def test_tools_of_a_memory_service_find_and_store_only_for_the_person_who_asks(
    subject: ServiceSubject, home: Path
) -> None:
    service = subject.service
    if not service.search_tool:
        pytest.skip(f"{service.name} has no such tools")
    async with harness(home, [subject.made(home)]) as one, one.working():
        tools = {tool.name: tool for tool in await one.memory.tools()}
        mine, other = await one.context(ANA), await one.context(BEN)
        await one.turn(SAID)
        await one.carried(1)
        if service.add_tool:
            await tools[service.add_tool].run(
                {"content": "The spare key hangs behind the garage door."}, mine
            )
            await search_until_found(
                tools[service.search_tool], "where is the spare key?", mine, "garage"
            )
        await search_until_found(tools[service.search_tool], ASKED, mine, "Porto")
        for asked in (ASKED, "where is the spare key?"):
            found = await tools[service.search_tool].run({"query": asked}, other)
            assert "Porto" not in found
            assert "garage" not in found


async def test_tool_deletes_only_what_the_person_may_see(
    subject: ServiceSubject, home: Path
) -> None:
    service = subject.service
    if not service.forget_tool:
        pytest.skip(f"{service.name} has no tool that deletes by an id alone")
    async with harness(home, [subject.made(home)]) as one, one.working():
        await one.turn(SAID)
        await one.turn("Ben says hello.", scope=BEN)
        await one.carried(2)
        tools = {tool.name: tool for tool in await one.memory.tools()}
        forget = tools[service.forget_tool]
        mine, other, room = [await one.context(scope) for scope in (ANA, BEN, ROOM)]
        shown = await search_until_found(tools[service.search_tool], ASKED, mine, "Porto")
        memory_id = next(line.split(" ")[0] for line in shown.splitlines() if "Porto" in line)
        for context, why in ((other, "There is no memory"), (room, "In a group")):
            with pytest.raises(ToolError, match=why):
                await forget.run({"memory_id": memory_id}, context)
        await forget.run({"memory_id": memory_id}, mine)
        assert "Porto" not in "\n".join(await one.recalled(ASKED))
        assert "Ben says hello." in "\n".join(await one.recalled("Ben says hello.", BEN))


async def test_result_of_another_scope_from_a_leaking_memory_service_is_left_out(
    subject: ServiceSubject, home: Path
) -> None:
    double = subject.double
    if not hasattr(double, "is_leaking"):
        pytest.skip("this double keeps everybody apart")
    double.is_leaking = True
    async with harness(home, [subject.made(home)]) as one, one.working():
        await one.turn(SAID)
        await one.turn("Ben says hello.", scope=BEN)
        await one.carried(2)
        assert "Porto" in "\n".join(await one.recalled(ASKED))
        assert "Porto" not in "\n".join(await one.recalled(ASKED, BEN))
