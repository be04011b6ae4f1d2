"""When a turn cannot be answered: what was said is kept, told once, and the conversation stays
whole."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.agent.offline import OfflineModel
from core.errors import ModelError, StoreError
from core.models.wrappers import FallbackModel
from core.types import Address, Message, Scope, Session, Usage
from gateway.texts.catalog import ENGLISH as words
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow


async def texts(harness: GatewayHarness, kind: str = "chat") -> list[str]:
    return await harness.services.database.read(
        lambda connection: [
            row[0]
            for row in connection.execute(
                "SELECT text FROM messages WHERE kind = ? ORDER BY id", (kind,)
            )
        ]
    )


async def test_message_is_kept_when_its_turn_fails_before_it_began(home: Path) -> None:
    async with open_gateway(home) as harness:

        async def broken(turn: object) -> object:
            raise StoreError("The disk is slow.")

        harness.agent.sessions.open = broken  # type: ignore[assignment,method-assign]
        reply = await harness.say("an important thought")
        assert reply.text.startswith("The disk is slow. Your message is saved.")
        assert await texts(harness) == ["an important thought"]
        assert await harness.services.inbox.list_waiting() == []


async def test_failed_database_write_of_a_message_is_reported_and_the_message_kept_waiting(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        await harness.say("a first message")
        await harness.services.database.write(
            lambda connection: connection.execute(
                "ALTER TABLE messages RENAME COLUMN tools TO broken"
            ).close()
        )
        assert "the log has the details under" in (await harness.say("a second one")).text
        assert [entry.inbound.text for entry in await harness.services.inbox.list_waiting()] == [
            "a second one"
        ]


async def test_message_too_old_to_be_answered_is_stored_with_a_notice(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.admission.admit(harness.inbound("said long ago"), KeptReply())
        platform = harness.platforms["telegram"]
        assert await harness.admission.resume(platform, timedelta(0)) == []
        [(_, notice)] = platform.replies
        assert "I was away when you wrote this" in notice.text
        assert model.requests == []
        assert await harness.services.inbox.list_waiting() == []
        assert await texts(harness) == ["said long ago"]
        assert "I was away" in (await texts(harness, "notice"))[0]
        assert "said long ago" in (await harness.say("/recall long ago")).text.replace("**", "")


async def test_overheard_message_gets_no_apology_when_its_turn_fails(home: Path) -> None:
    room = {
        "address": Address(platform="telegram", chat_id="-100"),
        "scope": Scope.group("telegram", "-100"),
    }
    told = room | {"is_direct": False, "is_addressed": False}
    options = 'rooms = ["telegram:-100"]\n[room]\nlisten = true\n'
    async with open_gateway(home, options=options) as harness:
        await harness.admission.admit(harness.inbound("overheard", "666", **told), KeptReply())
        platform = harness.platforms["telegram"]
        for number in await harness.admission.resume(platform, timedelta(0)):
            await harness.admission.serve(number)
        assert all(reply.answer is None for _, reply in platform.replies)
        assert await texts(harness) == ["overheard"]


async def test_refused_conversation_does_not_silence_the_model_for_others(
    home: Path,
) -> None:
    first = ScriptedModel(ModelError("The request was refused.", status=400), says("hello Bob"))
    model = FallbackModel(
        first, OfflineModel("Europe/Lisbon", "The model is out of reach"), SteadyClock()
    )
    async with open_gateway(home, model) as harness:
        assert "The request was refused." in (await harness.say("something odd I said")).text
        assert (await harness.say("hello", "7")).text == "hello Bob"


async def test_conversation_the_model_server_refuses_as_too_long_continues_in_a_child_session(
    home: Path,
) -> None:
    first = ScriptedModel(says("one"), ModelError("too large", status=413), says("in the child"))
    model = FallbackModel(first, OfflineModel("Europe/Lisbon"), SteadyClock())
    async with open_gateway(home, model) as harness:
        await harness.say("first")
        assert (await harness.say("second")).text.startswith("in the child")
        session = await harness.services.conversations.find_open(harness.inbound("x").address)
        assert session is not None
        assert session.parent_id is not None
        assert "second" in str(first.requests[-1].messages)


async def test_calls_without_usage_do_not_open_a_child_for_every_message(home: Path) -> None:
    full = Usage(input=10, cache_read=15_500, output=10)
    nothing = [says(f"answer {number}", usage=Usage()) for number in range(4)]
    model = ScriptedModel(says("small"), says("big", usage=full), *nothing)
    async with open_gateway(home, model, "[model]\nwindow_tokens = 20000\n") as harness:
        await harness.say("long " * 3000)
        for number in range(5):
            await harness.say(f"message {number}")
        count = await harness.services.database.read(
            lambda connection: connection.execute("SELECT count(*) FROM sessions").fetchone()[0]
        )
        assert count == 2


async def test_streamed_text_starts_over_when_a_second_model_takes_over(home: Path) -> None:
    class Breaking(ScriptedModel):
        async def complete(self, request, on_text, on_wait):  # type: ignore[no-untyped-def]
            on_text("The ferry to Cacilhas leaves")
            raise ModelError("The connection was lost.", is_retryable=True)

    model = FallbackModel(Breaking(), OfflineModel("Europe/Lisbon"), SteadyClock())
    async with open_gateway(home, model) as harness:
        reply = await harness.say("The ferry is nice today.")
        assert reply.text.startswith("_The connection was lost._")
        assert all("leaves_" not in frame and "leavesI" not in frame for frame in reply.frames)


async def test_failed_turn_of_several_messages_is_reported_once_and_all_messages_are_stored(
    home: Path,
) -> None:
    model = ScriptedModel(says("first answer"), says("later"))
    model.gate = asyncio.Event()
    async with open_gateway(home, model) as harness, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(harness.say("first"))
        await model.began.wait()
        replies = [KeptReply() for _ in range(3)]
        numbers = [
            await harness.admission.admit(harness.inbound(text), reply)
            for text, reply in zip(("one", "two", "three"), replies, strict=True)
        ]
        opened = harness.services.conversations.load_open
        failures = [StoreError("The disk is slow.")]

        async def failing(
            address: Address, scopes: frozenset[Scope]
        ) -> tuple[Session, list[Message]] | None:
            if failures:
                raise failures.pop()
            return await opened(address, scopes)

        harness.services.conversations.load_open = failing  # type: ignore[method-assign]
        model.gate.set()
        await first
        for number in numbers:
            assert number is not None
            await harness.admission.serve(number)
        assert replies[-1].text.startswith("The disk is slow.")
        assert {"one", "two", "three"} <= set(await texts(harness))
        assert await harness.services.inbox.list_waiting() == []


async def test_a_command_that_is_too_old_is_kept_as_a_command_without_its_secret(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.admission.admit(harness.inbound("/approve SECRET42"), KeptReply())
        await harness.admission.resume(harness.platforms["telegram"], timedelta(seconds=-1))
        assert "/approve" in await texts(harness, "command")
        assert await texts(harness) == []
        await harness.say("hello there")
        assert "SECRET42" not in str(model.requests)


async def test_a_press_that_fails_is_no_chat_message(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("hello")
        said = await texts(harness)
        shown = (await harness.say("/usage")).answer
        assert shown is not None
        pressed: dict[str, Any] = {"text": shown.buttons[0].id, "kind": "action", "command": None}
        commands = harness.commands
        given, answer = commands.resolve_command, commands.answer

        async def broken(*_: object) -> Any:
            raise StoreError("The disk is slow.")

        commands.resolve_command = broken  # type: ignore[assignment,method-assign]
        for _ in range(3):
            with pytest.raises(StoreError):
                await harness.say(**pressed)
        assert await harness.services.inbox.list_waiting() == [], "the platform brings it again"
        [(address, told)] = harness.platforms["telegram"].replies
        assert address.chat_id == "42"
        assert told.text == words.OUTAGE.format(reason="The disk is slow. "), (
            "once, by a message that needs no store"
        )
        commands.resolve_command, commands.answer = given, broken  # type: ignore[assignment,method-assign]
        assert (await harness.say(**pressed)).text.startswith("The disk is slow.")
        commands.answer = answer  # type: ignore[method-assign]
        assert (await harness.say(**pressed)).answer is not None
        assert await texts(harness) == said
        assert shown.buttons[0].id not in str(await texts(harness, "command"))


async def test_question_repeated_in_a_child_session_is_stored_once(home: Path) -> None:
    first = ScriptedModel(ModelError("too large", status=413), says("the beginning"))
    model = FallbackModel(first, OfflineModel("Europe/Lisbon"), SteadyClock())
    async with (
        open_gateway(home, model, "[model]\nwindow_tokens = 8000\n") as harness,
        asyncio.TaskGroup() as tasks,
    ):
        first.gate = asyncio.Event()
        turn = tasks.create_task(harness.say("long " * 3000))
        await first.began.wait()
        await harness.say("/stop")
        assert (await turn).text.endswith("[stopped]")
        session = await harness.services.conversations.find_open(harness.inbound("x").address)
        assert session is not None
        rows = await harness.services.conversations.load_history(
            session, frozenset((session.scope,))
        )
        assert [row.role for row in rows] == ["user", "assistant"]
