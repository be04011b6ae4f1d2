"""/stop at awkward moments: twice, while the answer is being stored, between rounds, while it is
being retried."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.types import Account, Address, Completion, Request, Scope
from tests.end_to_end.test_recall_platforms import serving
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.discord_setup import checked, make
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

LISTING = {"target": "memory", "action": "list"}


class WaitingModel:
    """Says that it has to be tried again, and never answers."""

    def __init__(self) -> None:
        self.began = asyncio.Event()

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        on_wait("The model is overloaded. Trying again in 4 s (2 of 5).")
        self.began.set()
        await asyncio.Event().wait()
        raise AssertionError("never reached")


async def answers(harness: GatewayHarness) -> list[str]:
    session = await harness.services.conversations.find_open(harness.inbound("x").address)
    assert session is not None
    rows = await harness.services.conversations.load_history(session, frozenset((session.scope,)))
    return [row.text for row in rows if row.role == "assistant"]


async def test_a_second_stop_is_an_answer_and_not_an_error(home: Path) -> None:
    model = ScriptedModel(says("A long story"))
    model.gate = asyncio.Event()
    async with open_gateway(home, model) as harness, asyncio.TaskGroup() as tasks:
        turn = tasks.create_task(harness.say("tell me"))
        await model.began.wait()
        await asyncio.gather(harness.say("/stop"), harness.say("/stop"))
        # One of them may be left to the worker, to leave after the answer that it stopped.
        stopped = "SELECT text FROM messages WHERE kind = 'command' AND role = 'assistant'"
        rows = await harness.services.database.read(
            lambda connection: connection.execute(stopped).fetchall()
        )
        assert {row["text"] for row in rows} <= {"Stopped.", "There is nothing to stop."}
        assert len(rows) == 2
        assert (await turn).text == "A long story\n\n[stopped]"


@pytest.mark.both_engines
async def test_stopped_answer_is_stored_marked_and_its_earlier_tool_rounds_once(
    home: Path,
) -> None:
    model = ScriptedModel(calls(("memory", LISTING), text="Let me look."), says("I found a lot"))
    async with open_gateway(home, model) as harness, asyncio.TaskGroup() as tasks:

        def hold(request: Request) -> Completion:
            model.gate = asyncio.Event()
            model.began.clear()
            return says("I found a lot")

        model.script[1] = hold
        turn = tasks.create_task(harness.say("look"))
        while len(model.requests) < 2:
            model.began.clear()
            await model.began.wait()
        await model.began.wait()
        await harness.say("/stop")
        assert (await turn).text == "Let me look.\n\nI found a lot\n\n[stopped]"
        assert await answers(harness) == ["Let me look.", "I found a lot\n\n[stopped]"]


async def test_retry_notice_shown_while_the_model_is_waited_for_is_not_stored_as_an_answer(
    home: Path,
) -> None:
    model = WaitingModel()
    async with open_gateway(home, model) as harness, asyncio.TaskGroup() as tasks:
        turn = tasks.create_task(harness.say("hello"))
        await model.began.wait()
        await harness.say("/stop")
        reply = await turn
        assert any("Trying again in 4 s" in frame for frame in reply.frames), (
            "the person sees that it is retried"
        )
        assert reply.text == "[stopped]"
        assert await answers(harness) == ["[stopped]"]


async def test_answer_stored_before_the_stop_is_kept(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("The full answer."))) as harness:
        conversations = harness.services.conversations
        address = harness.inbound("x").address
        append = conversations.append

        class StoppedWhileStoring:
            """The real store; the stop comes while the last transaction of the turn runs."""

            def __getattr__(self, name: str) -> object:
                return getattr(conversations, name)

            async def append(self, *given: object, **named: object) -> object:
                done = await append(*given, **named)  # type: ignore[arg-type]
                if len(given) > 2 and given[2] is not None:
                    harness.queues.stop(address)
                    await asyncio.Event().wait()
                return done

        harness.agent.conversations = StoppedWhileStoring()  # type: ignore[assignment]
        assert (await harness.say("hello")).text == "The full answer."
        assert await answers(harness) == ["The full answer."]


def note_writes(monkeypatch: pytest.MonkeyPatch, database: Any) -> asyncio.Event:
    """Return an event that is set when the next write is asked for."""
    is_asked = asyncio.Event()
    write = database.write

    async def note(*values: Any, **options: Any) -> Any:
        is_asked.set()
        return await write(*values, **options)

    monkeypatch.setattr(database, "write", note)
    return is_asked


async def test_answer_being_stored_when_stop_arrives_is_kept_as_the_only_answer(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel(says("The full answer."))
    gate = model.gate = asyncio.Event()
    is_busy, may_end = threading.Event(), threading.Event()

    def long(_: object) -> None:
        is_busy.set()
        assert may_end.wait(20)

    async with open_gateway(home, model) as harness, asyncio.TaskGroup() as tasks:
        turn = tasks.create_task(harness.say("hello"))
        await model.began.wait()
        database = harness.services.database
        tasks.create_task(database.write(long))
        assert await asyncio.to_thread(is_busy.wait, 20)
        (running,) = harness.agent._running.values()
        writes = note_writes(monkeypatch, database)
        gate.set()
        await asyncio.wait_for(writes.wait(), 20)
        # The answer waits for what is written before it.
        assert running.answered_calls
        assert harness.queues.stop(harness.inbound("x").address)
        for _ in range(20):
            await asyncio.sleep(0)
        may_end.set()
        assert (await turn).text == "The full answer."
        assert await answers(harness) == ["The full answer."]


async def test_answer_stored_while_one_of_two_askers_is_removed_reaches_the_other(
    home: Path,
) -> None:
    room: dict[str, Any] = {
        "address": Address(platform="telegram", chat_id="-100"),
        "scope": Scope.group("telegram", "-100"),
        "is_direct": False,
    }
    options = 'rooms = ["telegram:-100"]\n'
    async with open_gateway(home, ScriptedModel(says("The full answer.")), options) as harness:
        append, tasks = harness.services.conversations.append, list[asyncio.Task[None]]()

        async def remove() -> None:
            member = Account(platform="telegram", user_id="7")
            await harness.services.removals.remove([member], harness.services.clock.now())
            await harness.turns.recheck_access()

        class RemovedWhileStoring:
            def __getattr__(self, name: str) -> object:
                return getattr(harness.services.conversations, name)

            async def append(self, *given: object, **named: object) -> object:
                done = await append(*given, **named)  # type: ignore[arg-type]
                if len(given) > 2 and given[2] is not None:
                    tasks.append(asyncio.create_task(remove()))
                    await asyncio.Event().wait()
                return done

        harness.agent.conversations = RemovedWhileStoring()  # type: ignore[assignment]
        replies = [KeptReply(), KeptReply()]
        asked = (harness.inbound("hello", "7", **room), harness.inbound("and how are you?", **room))
        numbers = [await harness.admission.admit(*one) for one in zip(asked, replies, strict=True)]
        async with asyncio.timeout(20):
            await asyncio.gather(
                *(harness.admission.serve(number) for number in numbers if number is not None)
            )
            await asyncio.gather(*tasks)
        assert [reply.answer and reply.answer.text for reply in replies] == [
            None,
            "The full answer.",
        ]


async def test_stopped_discord_answer_is_marked_in_its_one_posted_message(home: Path) -> None:
    model = ScriptedModel(says("A long story"))
    model.gate = asyncio.Event()
    async with checked(DiscordApi()) as api:
        ana = api.user("Ana")
        channel = await api.channel("general")
        async with (
            open_gateway(
                home,
                model,
                f'rooms = ["discord:{channel}"]',
                create_adapter=lambda services: make(api, services.inbox, services.clock),
            ) as harness,
            serving(harness, "discord"),
        ):
            await api.wait_connected()
            await api.user_says(channel, f"{api.mention()} tell me", ana)
            (shown,) = await api.wait_for(lambda: api.messages(channel)[1:])
            await api.slash(channel, ana, "stop")
            await api.wait_for(
                lambda: "Stopped." in api.said(channel, ana) and "[stopped]" in api.said(channel)[0]
            )
            assert api.said(channel) == ["A long story\n\n[stopped]"], (
                "only who stopped it sees more"
            )
            assert api.messages(channel)[1]["id"] == shown["id"]
