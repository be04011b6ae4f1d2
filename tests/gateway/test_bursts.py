"""What comes in a burst is one turn: albums, forwards and long texts wait for the rest, and what is
added at once is answered together with what it is added to, unless something of the answer was
shown or done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from core.store.mailbox import OutboxCounts
from core.types import Address, Completion, Request, Scope
from gateway import queues
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.gateway.chats.test_setup import GROUP

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("waits_for_parts")]


class SilentModel:
    """Fills the role Model. Its first call says nothing for ever, unless it speaks or calls a tool
    first."""

    def __init__(self, word: str = "", tool: Completion | None = None) -> None:
        self.requests: list[Request] = []
        self.began = asyncio.Event()
        self.gate = asyncio.Event()
        self._word = word
        self._tool = tool

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        self.requests.append(request)
        if len(self.requests) == 1 and self._tool is not None:
            return self._tool
        if len(self.requests) == 1 + (self._tool is not None):
            if self._word:
                on_text(self._word)
            self.began.set()
            await self.gate.wait()
        return says(f"answer {len(self.requests)}")

    def sent(self, number: int = -1) -> str:
        return str(self.requests[number].messages)


async def said(harness: GatewayHarness, *texts: str, **changes: Any) -> list[KeptReply]:
    """Everything admitted and served at once; the replies once all are served."""
    replies, serving = [KeptReply() for _ in texts], list[Awaitable[None]]()
    for text, reply in zip(texts, replies, strict=True):
        number = await harness.admission.admit(harness.inbound(text, **changes), reply)
        assert number is not None
        serving.append(harness.admission.serve(number))
        await asyncio.sleep(0)
    await asyncio.gather(*serving)
    return replies


def answers(replies: Sequence[KeptReply]) -> list[str | None]:
    return [reply.answer.text if reply.answer else None for reply in replies]


@pytest.mark.parametrize(
    "changes",
    [{"group_id": "g"}, {"origin": "forwarded"}, {}],
    ids=["album", "forwarded", "long text"],
)
async def test_parts_of_a_split_message_are_answered_in_one_turn(
    home: Path, changes: dict[str, Any]
) -> None:
    model = ScriptedModel(says("I see"))
    parts = [f"part {n}" if changes else f"part {n} " + "word " * 800 for n in range(3)]
    async with open_gateway(home, model) as harness:
        assert answers(await said(harness, *parts, **changes)) == [None, None, "I see"]
        assert len(model.requests) == 1
        sent = model.sent()
        assert [sent.count(f"part {n}") for n in range(3)] == [1, 1, 1]
        assert await harness.services.inbox.list_waiting() == []


async def test_a_command_behind_an_album_does_not_wait_for_more(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "NEXT_PART_WAIT_S", 1000.0)
    async with open_gateway(home) as harness:
        photo, title = KeptReply(), KeptReply()
        numbers = [
            await harness.admission.admit(harness.inbound("photo", group_id="g"), photo),
            await harness.admission.admit(harness.inbound("/title Sea"), title),
        ]
        async with asyncio.timeout(10):
            await asyncio.gather(
                *(harness.admission.serve(number) for number in numbers if number is not None)
            )
        assert photo.text == "ok"
        assert "Sea" in title.text


async def test_message_added_before_anything_is_shown_is_answered_together(home: Path) -> None:
    model = SilentModel()
    async with open_gateway(home, model) as harness, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(harness.say("what is the capital"))
        await model.began.wait()
        second = await harness.say("of Portugal?")
        assert second.text == "answer 2"
        assert (await first).is_abandoned
        assert first.result().answer is None
        assert len(model.requests) == 2
        assert (
            model.sent(0).count("what is the capital")
            == model.sent(1).count("what is the capital")
            == 1
        )
        assert model.sent(1).index("what is the capital") < model.sent(1).index("of Portugal?")
        rows = await harness.services.database.fetch_all(
            "SELECT role, text FROM messages ORDER BY id"
        )
        assert [row["text"] for row in rows] == ["what is the capital", "of Portugal?", "answer 2"]
        assert await harness.services.outbox.count_items() == OutboxCounts(held=0, due=0, dead=0)
        assert (await harness.say("thanks")).text == "answer 3"
        assert model.sent(2).startswith(model.sent(1)[:-400]), "the prefix holds"


async def test_message_added_to_a_retried_question_is_answered_with_it(
    home: Path,
) -> None:
    model = SilentModel()
    model.gate.set()
    async with (
        open_gateway(home, model) as harness,
        asyncio.TaskGroup() as tasks,
        asyncio.timeout(20),
    ):
        await harness.say("what is the capital")
        model.requests.clear()
        model.gate.clear()
        model.began.clear()
        again = tasks.create_task(harness.say("/retry"))
        await model.began.wait()
        added = await harness.say("of Portugal?")
        assert (added.text, (await again).is_abandoned) == ("answer 2", True)
        assert model.sent().index("what is the capital") < model.sent().index("of Portugal?")
        assert await harness.services.inbox.list_waiting() == []


@pytest.mark.parametrize(
    "model",
    [
        lambda: SilentModel(word="Lis"),
        lambda: SilentModel(tool=calls(("memory", {"target": "memory", "action": "list"}))),
    ],
    ids=["shown", "a tool has run"],
)
async def test_message_sent_after_the_answer_is_shown_starts_its_own_turn(
    home: Path, model: Callable[[], SilentModel]
) -> None:
    silent = model()
    async with open_gateway(home, silent) as harness, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(harness.say("what is the capital"))
        await silent.began.wait()
        reply = KeptReply()
        number = await harness.admission.admit(harness.inbound("of Portugal?"), reply)
        assert number is not None
        silent.gate.set()
        assert (await first).text.startswith("answer")
        await harness.admission.serve(number)
        assert reply.text.startswith("answer")


async def test_message_of_another_group_member_is_answered_in_a_turn_of_its_own(home: Path) -> None:
    model = SilentModel()
    place = {
        "address": Address(platform="telegram", chat_id="-100"),
        "scope": Scope.group("telegram", "-100"),
        "is_direct": False,
    }
    async with (
        open_gateway(home, model, 'rooms = ["telegram:-100"]\n') as harness,
        asyncio.TaskGroup() as tasks,
    ):
        first = tasks.create_task(harness.say("what is the capital", "7", **place))
        await model.began.wait()
        reply = KeptReply()
        number = await harness.admission.admit(harness.inbound("lunch?", "42", **place), reply)
        assert number is not None
        model.gate.set()
        assert (await first).text == "answer 1"
        await harness.admission.serve(number)
        assert reply.text == "answer 2"


async def test_stop_cancels_the_running_turn_together_with_the_messages_added_to_it(
    home: Path,
) -> None:
    model = SilentModel()
    async with open_gateway(home, model) as harness, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(harness.say("tell me"))
        await model.began.wait()
        replies = await said(harness, "a story", "/stop")
        assert (await first).answer is None or (await first).text == "[stopped]"
        assert len(model.requests) <= 2
        assert await harness.services.inbox.list_waiting() == []
        assert replies[0].answer is not None


async def test_answer_that_ends_while_another_message_joins_the_turn_loses_neither_message(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = SilentModel()
    async with open_gateway(home, model) as harness:
        join = harness.queues.add

        def join_as_the_model_answers(event: queues.PendingEvent) -> None:
            if model.began.is_set():
                model.gate.set()
            join(event)

        monkeypatch.setattr(harness.queues, "add", join_as_the_model_answers)
        replies = [KeptReply(), KeptReply()]
        serving: list[Awaitable[None]] = []
        for text, reply in zip(("one", "two"), replies, strict=True):
            number = await harness.admission.admit(harness.inbound(text), reply)
            assert number is not None
            serving.append(harness.admission.serve(number))
            await model.began.wait()
        await asyncio.gather(*serving)
        stored = await harness.services.database.fetch_all(
            "SELECT text FROM messages WHERE role = 'assistant'"
        )
        assert (
            [row["text"] for row in stored]
            == [text for text in answers(replies) if text]
            == ["answer 2"]
        )
        assert "one" in model.sent()
        assert "two" in model.sent()


async def test_parts_in_a_group_whose_first_part_mentions_the_bot_are_one_turn(home: Path) -> None:
    model = ScriptedModel(says("At nine."))
    options = 'rooms = ["telegram:-5"]\n[turn]\ngather_s = 1.2\n'
    group = {**GROUP, "who": "9", "is_mention": True}
    rest = {**group, "is_mention": False, "is_addressed": False}
    async with open_gateway(home, model, options) as harness:
        admitted = []
        for text, changes in (
            ("When does the boat leave", group),
            ("to Capri", rest),
            ("Not for you", {**rest, "who": "8"}),
            ("on Sunday?", rest),
            ("I agree with Bo", {**rest, "reply_to": "77"}),
        ):
            message = harness.inbound(text, **changes)
            admitted.append(await harness.admission.admit(message, KeptReply()))
        first, second, other, third, reply = admitted
        assert (other, reply) == (None, None)
        for number in (first, second, third):
            assert number is not None
        await asyncio.gather(
            *(harness.admission.serve(number) for number in admitted if number is not None)
        )
        assert len(model.requests) == 1
        sent = model.sent()
        for part in ("When does the boat leave", "to Capri", "on Sunday?"):
            assert part in sent
        assert "Not for you" not in sent
        assert "I agree" not in sent
