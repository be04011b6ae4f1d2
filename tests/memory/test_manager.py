"""Memories side by side: what is told to a service reaches it once and in order, and nothing that
it does reaches the turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from core.agent.tool_runner import ToolRunner
from core.errors import ToolError
from core.memory.manager import FAILURES_TO_OPEN
from core.memory.provider import Forgotten, MemoryProvider
from core.store.mailbox import OutboxCounts
from core.store.notes import NoteChange
from core.types import Effect, Json, Message, Session, SessionEnd, Tool, ToolContext
from tests.fixtures.memory_service import KEY, MemoryService, memory_service
from tests.fixtures.provider_harness import ANA, BEN, ProviderHarness, harness, provider

pytestmark = pytest.mark.slow


@pytest.fixture
async def service() -> AsyncIterator[MemoryService]:
    async with memory_service() as opened:
        yield opened


def life(
    home: Path, service: MemoryService, timeout_s: float = 2.0
) -> AbstractAsyncContextManager[ProviderHarness]:
    jotter = provider(
        home, "jotter", {"url": service.url, "key": "JOTTER_KEY"}, {"JOTTER_KEY": KEY}
    )
    return harness(home, [jotter], timeout_s=timeout_s)


async def test_turn_sent_to_a_service_is_recalled_for_its_scope_only(
    home: Path, service: MemoryService
) -> None:
    async with life(home, service) as one, one.working():
        await one.turn("I moved to Porto in May.")
        await one.carried(1)
        assert await one.recalled("what of Porto?") == [
            "jotter:j1 user: I moved to Porto in May. assistant: Noted."
        ]
        assert await one.recalled("what of Porto?", BEN) == []
        assert await one.recalled("what of Porto?", BEN, ANA)
        assert one.ends == ["done"]


async def test_small_talk_asks_no_memory_service(home: Path, service: MemoryService) -> None:
    async with life(home, service) as one:
        assert await one.recalled("ok, thanks! 👍") == []
        assert service.asked == []


async def test_turn_refused_by_a_memory_service_is_not_retried_and_does_not_delay_the_next(
    home: Path, service: MemoryService
) -> None:
    async with life(home, service) as one, one.working():
        service.mood = "refusing"
        await one.turn("one")
        await one.carried(1)
        service.mood = "well"
        await one.turn("two")
        await one.carried(2)
        assert one.ends == ["buried", "done"]
        assert [text for _, text in service.held.values()] == ["user: two\nassistant: Noted."]
        assert one.notices == []
        assert (await one.outbox.count_items()).dead == 1


@pytest.mark.parametrize("mood", ["failing", "babbling"])
async def test_failed_turns_are_sent_again_in_order(
    home: Path, service: MemoryService, mood: str
) -> None:
    async with life(home, service) as one, one.working():
        service.mood = mood  # type: ignore[assignment]
        await one.turn("one")
        await one.turn("two")
        await one.carried(1)
        service.mood = "well"
        await one.later(seconds=2)
        await one.carried(3)
        assert one.ends == ["postponed", "done", "done"]
        assert [text.split("\n")[0] for _, text in service.held.values()] == [
            "user: one",
            "user: two",
        ]


async def test_a_service_that_hangs_costs_a_turn_its_time_limit_until_the_breaker_opens(
    home: Path, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.memory.manager.SEARCH_TIMEOUT_S", 0.15)
    async with life(home, service, timeout_s=0.05) as one:
        service.mood = "hanging"
        for number in range(FAILURES_TO_OPEN):
            assert await one.recalled(f"where is key {number}?") == []
        await one.watch.until(lambda: bool(one.notices))
        assert "no answer within 0.15 s" in one.memory.states["jotter"]
        assert await one.recalled("where is the key?") == []
        assert len(service.asked) <= FAILURES_TO_OPEN, "nobody waits for it any more"
        service.may_go.set()


async def test_late_search_result_of_a_memory_service_joins_the_next_turn_of_the_same_person_only(
    home: Path, service: MemoryService
) -> None:
    async with life(home, service, timeout_s=0.05) as one, one.working():
        await one.turn("The key is under the mat.")
        await one.carried(1)
        own = await one.context(ANA)
        late = ["jotter:j1 user: The key is under the mat. assistant: Noted."]
        for after, found in ((own, late), (await one.context(BEN, session=own.session), [])):
            service.mood = "hanging"
            service.may_go.clear()
            assert await one.recalled("where is the key?") == []
            service.mood = "well"
            search = one.searches()
            service.may_go.set()
            await asyncio.gather(*search)
            assert await one.memory.prefetch("something else entirely", after) == found
        assert await one.recalled("something else entirely") == late
        assert await one.recalled("something else entirely") == []


async def test_recall_begun_before_an_erasure_serves_no_later_turn(
    home: Path, service: MemoryService
) -> None:
    async with life(home, service, timeout_s=0.3) as one, one.working():
        await one.turn("The key is under the mat.")
        await one.carried(1)
        service.mood = "hanging"
        service.is_asked.clear()
        asking = asyncio.create_task(one.recalled("where is the key?"))
        await service.is_asked.wait()
        one.memory.invalidate()
        assert await asking == []
        service.mood = "well"
        search = one.searches()
        service.may_go.set()
        await asyncio.gather(*search)
        assert await one.recalled("something else entirely") == []


async def test_circuit_breaker_of_a_memory_service_opens_with_one_notice_and_closes_again(
    home: Path, service: MemoryService
) -> None:
    async with life(home, service) as one:
        service.mood = "failing"
        for _ in range(FAILURES_TO_OPEN + 2):
            assert await one.recalled("the key") == []
        assert len(service.asked) == FAILURES_TO_OPEN
        assert one.memory.states["jotter"].startswith("out of order")
        await one.watch.until(lambda: bool(one.notices))
        assert one.notices == [
            ("down", "jotter", "HTTPError HTTP Error 500: Internal Server Error")
        ]
        one.clock.advance(seconds=31)
        assert await one.recalled("the key") == []
        assert len(service.asked) == FAILURES_TO_OPEN + 1, "one call to try it"
        service.mood = "well"
        one.clock.advance(seconds=31)
        await one.recalled("the key")
        assert len(service.asked) == FAILURES_TO_OPEN + 1, "the rest is twice as long by then"
        one.clock.advance(seconds=31)
        await one.recalled("the key")
        assert one.memory.states["jotter"] == "works"
        assert len(one.notices) == 1


async def test_turn_unsent_at_a_crash_is_sent_after_the_restart(
    home: Path, service: MemoryService
) -> None:
    async with life(home, service) as one:
        await one.turn("first")
        session = await one.session()
        row = Message(role="user", text="second", session_id=session.id, created_at=one.clock.now())
        await one.conversations.append(
            [
                row,
                Message(
                    role="assistant", text="k", session_id=session.id, created_at=one.clock.now()
                ),
            ]
        )
    async with life(home, service) as one, one.working():
        await one.memory.start()
        await one.carried(2)
        assert [text for _, text in service.held.values()] == [
            "user: first\nassistant: Noted.",
            "user: second\nassistant: k",
        ]
    async with life(home, service) as one, one.working():
        await one.memory.start()
        await one.turn("third")
        await one.carried(1)
    assert len(service.told) == len(service.held) == 3, "and none of it twice"


async def test_memory_service_is_not_told_of_jobs_and_incognito_turns(
    home: Path, service: MemoryService
) -> None:
    async with life(home, service) as one:
        await one.turn("the task", platform="cron")
        context = await one.context(ANA)
        hidden = Session(
            id=context.session.id,
            address=context.session.address,
            scope=ANA,
            started_at=one.clock.now(),
            is_incognito=True,
        )
        await one.memory.on_turn_end(hidden, [])
        assert await one.memory.prefetch("the key", await one.context(ANA, session=hidden)) == []
        assert service.asked == []
        assert await one.outbox.count_items() == OutboxCounts(held=0, due=0, dead=0)


async def test_erased_message_is_not_sent_to_a_service(home: Path, service: MemoryService) -> None:
    async with life(home, service) as one:
        session = await one.session()
        said = Message(
            role="user",
            text="secret",
            session_id=session.id,
            created_at=one.clock.now(),
            external_id="9",
        )
        await one.conversations.append(
            [
                said,
                Message(
                    role="assistant", text="k", session_id=session.id, created_at=one.clock.now()
                ),
            ]
        )
        await one.over(session)
        await one.conversations.amend(session.address, "9", None)
        async with one.working():
            await one.carried(1)
        assert "secret" not in str(service.held)


class Listener(MemoryProvider):
    """Writes down what it is told; `words` is what it has to say."""

    name = "listener"

    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []
        self.words: list[str] = []

    async def is_available(self) -> bool:
        return True

    async def initialize(self, folder: Path) -> None:
        self.heard.append(("initialize", folder.name, await asyncio.to_thread(folder.is_dir)))

    async def prefetch(self, text: str, context: ToolContext) -> list[str]:
        return self.words

    async def queue_prefetch(self, text: str, context: ToolContext) -> list[str]:
        return [f"q1 after {text}"]

    async def system_prompt_block(self, context: ToolContext) -> str:
        return "\n".join(self.words)

    async def tools(self) -> Sequence[Tool]:
        async def run(arguments: Json, context: ToolContext) -> str:
            return ", ".join([arguments["word"]] * 2)

        return (
            Tool(
                name="echo",
                description="Says it twice.",
                schema={"type": "object"},
                effects={"": Effect.READ},
                run=run,
            ),
        )

    async def on_session_end(self, session: Session, messages: object) -> None:
        self.heard.append(("end", session.id))

    async def on_session_switch(self, new_id: int, parent_id: int | None, reason: str) -> None:
        self.heard.append(("switch", new_id, parent_id, reason))

    async def on_delegation(self, session: Session, task: str, result: str) -> None:
        self.heard.append(("delegation", session.parent_id, task, result))

    async def on_memory_write(self, change: NoteChange) -> None:
        self.heard.append((change.action, change.before, change.after, change.scope))

    async def shutdown(self) -> None:
        self.heard.append(("shutdown",))


class Other(Listener):
    name = "other"


async def test_note_changes_and_session_hooks_are_sent_to_a_service_once_from_the_outbox(
    home: Path,
) -> None:
    listener = Listener()
    async with harness(home, [listener]) as one, one.working():
        for action, before, after in (
            ("add", None, "tea"),
            ("replace", "tea", "rum"),
            ("remove", "rum", None),
        ):
            change = NoteChange(
                scope=ANA,
                target="user",
                action=action,
                before=before,
                after=after,
                at=one.clock.now(),
            )
            await one.notes.log_changes(change)
            await one.memory.on_memory_write()
        await one.turn("hello there")
        session = await one.session()
        await one.ended(session)
        await one.memory.on_session_switch(session.id, 7, "compression")
        await one.carried(5)
    assert listener.heard[0] == ("initialize", "listener", True)
    assert [heard for heard in listener.heard if heard[-1] == ANA] == [
        ("add", None, "tea", ANA),
        ("replace", "tea", "rum", ANA),
        ("remove", "rum", None, ANA),
    ]
    told = [heard for heard in listener.heard if heard[0] in ("end", "switch")]
    assert told == [("end", session.id), ("switch", session.id, 7, "compression")]
    assert listener.heard[-1] == ("shutdown",)


async def test_memory_service_hears_of_a_sessions_start_only_after_the_previous_session_ended(
    home: Path,
) -> None:
    listener = Listener()
    async with harness(home, [listener]) as one:
        for number in range(4):
            session = await one.session()
            await one.memory.on_session_switch(session.id, None, "new")
            await one.turn(f"line {number}")
            await one.ended(session)
        async with one.working():
            await one.carried(8)
    heard = [(told[0], told[1]) for told in listener.heard if told[0] in ("end", "switch")]
    assert heard == [(what, number) for number in range(1, 5) for what in ("switch", "end")]


async def test_delegated_task_is_reported_once_and_is_no_turn(home: Path) -> None:
    class Turns(Listener):
        async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
            self.heard.append(("turn", session.id))

        async def on_forget(self, forgotten: Forgotten) -> None:
            self.heard.append(("forget", *forgotten.messages))

    listener = Turns()
    async with harness(home, [listener]) as one, one.working():
        parent, now = await one.session(), one.clock.now()
        made = replace(parent, parent_id=parent.id, end=SessionEnd(at=now), is_delegated=True)
        child = await one.conversations.create(made)
        task = Message(
            role="user", text="Which ferry?", session_id=child.id, created_at=now, origin="tool"
        )
        rows = await one.conversations.append(
            [task, replace(task, role="assistant", text="The blue one.")]
        )
        await one.memory.on_delegation(child)
        await one.queue.catch_up()
        await one.carried(1)
        assert listener.heard[1:] == [("delegation", parent.id, "Which ferry?", "The blue one.")]
        await one.queue.forget([rows[1].id])
        await one.carried(3)
        assert listener.heard[2:] == [("forget", rows[1].id)]


async def test_queued_prefetch_of_a_memory_service_is_merged_into_the_next_recall(
    home: Path,
) -> None:
    listener = Listener()
    listener.words = ["l1 Ana likes tea", "l1 Ana likes tea"]
    async with harness(home, [listener]) as one:
        await one.memory.queue_prefetch("tea at five", await one.context(ANA))
        assert await one.recalled("what then?") == [
            "listener:l1 Ana likes tea",
            "listener:q1 after tea at five",
        ]


async def test_line_of_a_memory_service_that_contains_a_secret_is_left_out_of_the_prompt(
    home: Path,
) -> None:
    listener = Listener()
    listener.words = ["l1 Bearer 0123456789abcdef01234567 opens the lake house", "l2 Ana likes tea"]
    async with harness(home, [listener]) as one:
        assert await one.recalled("tea again") == ["listener:l2 Ana likes tea"]
        assert await one.memory.system_prompt_block(await one.context(ANA)) == ""
        listener.words = ["Ana likes tea."]
        assert await one.memory.system_prompt_block(await one.context(ANA)) == (
            "## LISTENER\nAna likes tea."
        )


async def test_best_line_of_each_memory_service_precedes_the_second_line_of_any(home: Path) -> None:
    one, other = Listener(), Other()
    one.words, other.words = ["a1 tea", "a2 rum"], ["b1 soup", "b2 bread"]
    async with harness(home, [one, other]) as life_of_both:
        lines = await life_of_both.recalled("what then?")
        assert [line.split(":")[1][:2] for line in lines] == ["a1", "b1", "a2", "b2"]


async def test_prefetched_lines_are_dropped_after_an_erasure(
    home: Path,
) -> None:
    async with harness(home, [Listener()]) as one:
        await one.memory.queue_prefetch("tea at five", await one.context(ANA))
        await asyncio.gather(*one.searches())
        one.memory.invalidate()
        assert await one.recalled("what then?") == []


async def test_a_tool_of_a_service_is_not_called_incognito(home: Path) -> None:
    listener = Listener()
    async with harness(home, [listener]) as one:
        (tool,) = await one.memory.tools()
        context = await one.context(ANA)
        assert await tool.run({"word": "tea"}, context) == "tea, tea"
        hidden = replace(context, session=replace(context.session, is_incognito=True))
        call = {"name": "echo", "id": "1", "input": {"word": "tea"}}
        (row,) = await ToolRunner([tool], 5).run([call], hidden)
        assert "calls an external service, which this conversation may not do" in row.text
        with pytest.raises(ToolError, match="echo failed: listener failed: KeyError"):
            await tool.run({}, context)


async def test_mode_of_a_memory_service_decides_between_tools_and_context(home: Path) -> None:
    listener = Listener()
    listener.words = ["l1 Ana likes tea"]
    listener.mode = "tools"
    async with harness(home, [listener]) as one:
        assert [tool.name for tool in await one.memory.tools()] == ["echo"]
        assert await one.recalled("tea again") == []
        assert await one.memory.system_prompt_block(await one.context(ANA)) == ""
        listener.mode = "context"
        assert await one.memory.tools() == []
        assert await one.recalled("tea again") == ["listener:l1 Ana likes tea"]
