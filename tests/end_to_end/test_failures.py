"""When a turn cannot be answered: what was said is kept, told once, and the conversation stays whole."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from core.agent.offline import Offline
from core.errors import ModelError, StoreError
from core.models.fallback import FallbackModel
from core.types import Address, Message, Scope, Session, Usage
from tests.fixtures.clock import SteadyClock
from tests.fixtures.corridor import Corridor, KeptReply, open_corridor
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow


async def texts(corridor: Corridor, kind: str = "chat") -> list[str]:
    return await corridor.services.database.read(
        lambda connection: [
            row[0] for row in connection.execute("SELECT text FROM messages WHERE kind = ? ORDER BY id", (kind,))
        ]
    )


async def test_what_was_said_is_kept_when_the_turn_fails_before_it_began(home: Path) -> None:
    async with open_corridor(home) as corridor:

        async def broken(turn: object) -> object:
            raise StoreError("The disk is slow.")

        corridor.router._agent._sessions.open = broken  # type: ignore[assignment,method-assign]
        reply = await corridor.say("an important thought")
        assert reply.text.startswith("The disk is slow. What you wrote is kept.")
        assert await texts(corridor) == ["an important thought"]
        assert await corridor.services.inbox.waiting() == []


async def test_a_store_that_takes_no_message_any_more_is_told_of(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await corridor.say("a first message")
        await corridor.services.database.write(
            lambda connection: connection.execute("ALTER TABLE messages RENAME COLUMN tools TO broken").close()
        )
        assert "the log has the details under" in (await corridor.say("a second one")).text
        assert [entry.inbound.text for entry in await corridor.services.inbox.waiting()] == ["a second one"]


async def test_what_is_too_old_to_be_answered_is_kept(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await corridor.router.admit(corridor.inbound("said long ago"), KeptReply())
        await corridor.router.resume(corridor.platforms["telegram"], timedelta(0))
        assert await texts(corridor) == ["said long ago"]
        assert "I was away" in (await texts(corridor, "notice"))[0]
        assert "said long ago" in (await corridor.say("/recall long ago")).text.replace("**", "")


async def test_what_was_overheard_is_never_apologised_for(home: Path) -> None:
    room = {"address": Address(platform="telegram", chat_id="-100"), "scope": Scope.room("telegram", "-100")}
    told = room | {"is_direct": False, "is_addressed": False}
    options = 'rooms = ["telegram:-100"]\n[room]\nlisten = true\n'
    async with open_corridor(home, options=options) as corridor:
        await corridor.router.admit(corridor.inbound("overheard", "666", **told), KeptReply())
        platform = corridor.platforms["telegram"]
        for number in await corridor.router.resume(platform, timedelta(0)):
            await corridor.router.serve(number)
        assert all(reply.answer is None for _, reply in platform.replies)
        assert await texts(corridor) == ["overheard"]


async def test_one_conversation_that_is_refused_does_not_silence_the_model_for_others(home: Path) -> None:
    first = ScriptedModel(ModelError("The request was refused.", status=400), says("hello Bob"))
    model = FallbackModel(first, Offline("Europe/Lisbon", "The model is out of reach"), SteadyClock())
    async with open_corridor(home, model) as corridor:
        assert "The request was refused." in (await corridor.say("something odd I said")).text
        assert (await corridor.say("hello", "7")).text == "hello Bob"


async def test_a_conversation_that_the_server_finds_too_long_goes_on_in_a_child(home: Path) -> None:
    first = ScriptedModel(says("one"), ModelError("too large", status=413), says("in the child"))
    model = FallbackModel(first, Offline("Europe/Lisbon"), SteadyClock())
    async with open_corridor(home, model) as corridor:
        await corridor.say("first")
        assert (await corridor.say("second")).text == "in the child"
        session = await corridor.services.conversations.current(corridor.inbound("x").address)
        assert session is not None
        assert session.parent_id is not None
        assert "second" in str(first.requests[-1].messages)


async def test_calls_without_usage_do_not_open_a_child_for_every_message(home: Path) -> None:
    full = Usage(input=10, cache_read=15_500, output=10)
    nothing = [says(f"answer {number}", usage=Usage()) for number in range(4)]
    model = ScriptedModel(says("big", usage=full), *nothing)
    async with open_corridor(home, model, "[model]\nwindow_tokens = 20000\n") as corridor:
        for number in range(5):
            await corridor.say(f"message {number}")
        count = await corridor.services.database.read(
            lambda connection: connection.execute("SELECT count(*) FROM sessions").fetchone()[0]
        )
        assert count == 2


async def test_frames_begin_anew_when_the_fallback_takes_over(home: Path) -> None:
    class Breaking(ScriptedModel):
        async def complete(self, request, on_text, on_wait):  # type: ignore[no-untyped-def]
            on_text("The ferry to Cacilhas leaves")
            raise ModelError("The connection was lost.", is_retryable=True)

    model = FallbackModel(Breaking(), Offline("Europe/Lisbon"), SteadyClock())
    async with open_corridor(home, model) as corridor:
        reply = await corridor.say("The ferry is nice today.")
        assert reply.text.startswith("_The connection was lost._")
        assert all("leaves_" not in frame and "leavesI" not in frame for frame in reply.frames)


async def test_a_batch_that_fails_is_told_once_and_all_of_it_is_kept(home: Path) -> None:
    model = ScriptedModel(says("first answer"), says("later"))
    model.gate = asyncio.Event()
    async with open_corridor(home, model) as corridor, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(corridor.say("first"))
        await model.began.wait()
        replies = [KeptReply() for _ in range(3)]
        numbers = [
            await corridor.router.admit(corridor.inbound(text), reply)
            for text, reply in zip(("one", "two", "three"), replies, strict=True)
        ]
        opened = corridor.services.conversations.opened
        failures = [StoreError("The disk is slow.")]

        async def failing(address: Address, scopes: frozenset[Scope]) -> tuple[Session, list[Message]] | None:
            if failures:
                raise failures.pop()
            return await opened(address, scopes)

        corridor.services.conversations.opened = failing  # type: ignore[method-assign]
        model.gate.set()
        await first
        for number in numbers:
            assert number is not None
            await corridor.router.serve(number)
        assert replies[-1].text.startswith("The disk is slow.")
        assert {"one", "two", "three"} <= set(await texts(corridor))
        assert await corridor.services.inbox.waiting() == []


async def test_a_command_that_is_too_old_is_kept_as_a_command_without_its_secret(home: Path) -> None:
    model = ScriptedModel()
    async with open_corridor(home, model) as corridor:
        await corridor.router.admit(corridor.inbound("/approve SECRET42"), KeptReply())
        await corridor.router.resume(corridor.platforms["telegram"], timedelta(seconds=-1))
        assert "/approve" in await texts(corridor, "command")
        assert await texts(corridor) == []
        await corridor.say("hello there")
        assert "SECRET42" not in str(model.requests)


async def test_a_press_that_fails_is_no_chat_message(home: Path) -> None:
    async with open_corridor(home) as corridor:

        async def broken(inbound: object, scope: object) -> None:
            raise StoreError("The disk is slow.")

        corridor.router._commands.pressed = broken  # type: ignore[method-assign]
        reply = await corridor.say("btn-TOKEN-123", kind="action", command=None)
        assert reply.text.startswith("The disk is slow.")
        assert await texts(corridor) == []


async def test_a_question_asked_again_in_a_child_stands_there_once(home: Path) -> None:
    first = ScriptedModel(ModelError("too large", status=413), says("the beginning"))
    model = FallbackModel(first, Offline("Europe/Lisbon"), SteadyClock())
    async with open_corridor(home, model, "[model]\nwindow_tokens = 8000\n") as corridor, asyncio.TaskGroup() as tasks:
        first.gate = asyncio.Event()
        turn = tasks.create_task(corridor.say("long " * 3000))
        await first.began.wait()
        await corridor.say("/stop")
        assert (await turn).text.endswith("[stopped]")
        session = await corridor.services.conversations.current(corridor.inbound("x").address)
        assert session is not None
        rows = await corridor.services.conversations.history(session, frozenset((session.scope,)))
        assert [row.role for row in rows] == ["user", "assistant"]
