"""How fast people are answered: what is over it is kept and answered together, the owner waits for
nobody, and talks of two assistants end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.types import Account, Address, Scope
from gateway import access_and_rates
from gateway.access_and_rates import MAX_TURNS_IN_A_ROW, TURNS_RESET_S, TokenBuckets
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel

pytestmark = pytest.mark.slow

LISTED = 'rooms = ["telegram:-100"]\n'
LIMITS = "[limits]\n"
"""As they are when nobody says otherwise."""
QUICK = f"{LISTED}[limits]\nturns_per_minute = 1000\nroom_turns_per_minute = 1000\n"
BURST = 12  # limits.turns_per_minute
EACH_S = 60.0 / BURST


class Moments:
    """A monotonic clock that stands still."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> Moments:
    made = Moments()
    monkeypatch.setattr(access_and_rates, "monotonic", made)
    return made


def in_topic(number: int, chat: str = "7") -> dict[str, Any]:
    address = Address(platform="telegram", chat_id=chat, thread_id=str(number))
    if chat.startswith("-"):
        return {"address": address, "scope": Scope.group("telegram", chat), "is_direct": False}
    return {"address": address}


async def begun(
    harness: GatewayHarness, text: str, who: str = "7", **changes: Any
) -> tuple[KeptReply, Awaitable[None] | None]:
    """What is said, admitted and being served."""
    reply = KeptReply()
    number = await harness.admission.admit(harness.inbound(text, who, **changes), reply)
    return reply, None if number is None else asyncio.ensure_future(harness.admission.serve(number))


def answered(replies: Sequence[KeptReply]) -> list[int]:
    return [number for number, reply in enumerate(replies) if reply.answer is not None]


async def asked(harness: GatewayHarness) -> list[str]:
    found = await harness.services.database.fetch_all(
        "SELECT text FROM messages WHERE role = 'user' ORDER BY id"
    )
    return [row["text"] for row in found]


def test_rate_limit_is_refilled_after_a_minute_and_the_number_of_buckets_bounded(
    moments: Moments,
) -> None:
    buckets, ana = TokenBuckets(3), Account(platform="telegram", user_id="7")
    for _ in range(3):
        assert buckets.wait_s(ana) == 0
        buckets.take(ana)
    assert buckets.wait_s(ana) == 20
    moments.now_s += 20
    assert buckets.wait_s(ana) == 0
    buckets.take(ana)
    assert buckets.wait_s(ana) == 20
    moments.now_s += 60
    for number in range(access_and_rates._MAX_BUCKETS):
        buckets.take(Account(platform="telegram", user_id=str(number)))
    assert len(buckets._full_at) <= access_and_rates._MAX_BUCKETS
    assert buckets.wait_s(ana) == 0


async def test_sixty_messages_over_sixty_topics_are_thirteen_calls(
    home: Path, moments: Moments
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LIMITS) as harness:
        told = [
            await begun(harness, f"message {number}.", **in_topic(number)) for number in range(60)
        ]
        replies, serving = (
            [reply for reply, _ in told],
            [task for _, task in told if task is not None],
        )
        await asyncio.gather(*serving[:BURST])
        assert len(model.requests) == BURST
        assert len(await harness.services.inbox.list_waiting()) == 60 - BURST, (
            "what is over it is kept"
        )
        moments.now_s += EACH_S
        last = await harness.say("message 60.", "7", **in_topic(60))
        await asyncio.gather(*serving)
        assert len(model.requests) == BURST + 1
        assert all(model.sent().count(f"message {number}.") == 1 for number in range(BURST, 61))
        assert last.text == "ok", "where the last of it was said"
        assert answered(replies) == list(range(BURST))
        assert all(reply.is_abandoned for reply in replies[BURST:])
        assert await harness.services.inbox.list_waiting() == []
        assert sorted(await asked(harness)) == sorted(f"message {number}." for number in range(61))
        (item,) = await harness.services.database.fetch_all(
            "SELECT address FROM outbox ORDER BY id DESC LIMIT 1"
        )
        assert item["address"] == "telegram:7/60"
        again = await harness.admission.admit(
            harness.inbound("message 30.", "7", **in_topic(30), message_id="31"), last
        )
        assert again is None, "redelivered, it is known where it was said"


async def test_messages_over_the_rate_limit_are_answered_after_a_restart(
    home: Path, moments: Moments
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LIMITS) as harness:
        for number in range(40):
            await harness.admission.admit(
                harness.inbound(f"message {number}.", "7", **in_topic(number)), KeptReply()
            )
    async with open_gateway(home, model, LIMITS) as harness, asyncio.timeout(20):
        adapter = harness.platforms["telegram"]
        resumed = await harness.admission.resume(adapter, timedelta(days=1))
        assert len(resumed) == 40
        serving = [harness.admission.serve(number) for number in resumed]
        await asyncio.gather(*serving[:BURST])
        moments.now_s += EACH_S
        await harness.say("and now?", "7", **in_topic(39))
        await asyncio.gather(*serving)
        assert len(model.requests) == BURST + 1
        assert await harness.services.inbox.list_waiting() == []


async def test_shutdown_does_not_wait_for_held_messages(home: Path, moments: Moments) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LIMITS) as harness, asyncio.timeout(20):
        for number in range(BURST + 2):
            await begun(harness, f"message {number}.", **in_topic(number))
        await harness.turns.drain(60)
        assert len(model.requests) == BURST
        assert len(await harness.services.inbox.list_waiting()) == 2, (
            "they are answered after the next start"
        )


async def test_owner_is_never_rate_limited(home: Path, moments: Moments) -> None:
    model, burst = ScriptedModel(), 5
    async with (
        open_gateway(home, model, f"{LISTED}[limits]\nturns_per_minute = {burst}\n") as harness,
        asyncio.timeout(20),
    ):
        for number in range(2 * burst):
            assert (await harness.say("mine", "42", **in_topic(number, "42"))).text == "ok"
        told = [
            await begun(harness, "theirs", "8", **in_topic(number, "-100"))
            for number in range(2 * burst)
        ]
        tasks = [task for _, task in told if task is not None]
        await asyncio.gather(*tasks[:burst])
        here = in_topic(2 * burst - 1, "-100")
        assert (
            await harness.say("mine, in the topic where theirs wait", "42", **here)
        ).text == "ok"
        assert len(model.requests) == 3 * burst + 1
        moments.now_s += 60.0 / burst
        harness.queues._release_held()
        await asyncio.gather(*tasks)
        assert len(model.requests) == 3 * burst + 2


async def test_group_has_its_own_rate_limit_and_held_messages_are_grouped_by_member(
    home: Path, moments: Moments
) -> None:
    model = ScriptedModel()
    options = f"{LISTED}[limits]\nroom_turns_per_minute = 2\n"
    async with open_gateway(home, model, options) as harness, asyncio.timeout(20):
        told = [
            await begun(harness, f"from {who} in {number}.", str(who), **in_topic(number, "-100"))
            for number, who in enumerate((8, 9, 8, 9, 8))
        ]
        serving = [task for _, task in told if task is not None]
        await asyncio.gather(*serving[:2])
        assert len(model.requests) == 2
        assert (await harness.say("elsewhere", "7")).text == "ok"
        moments.now_s += 60
        await harness.say("from 8 in 5.", "8", **in_topic(5, "-100"))
        await asyncio.gather(*serving)
        later = [model.sent(number) for number in (3, 4)]
        assert sorted([n for n in range(2, 6) if f" in {n}." in sent] for sent in later) == [
            [2, 4, 5],
            [3],
        ]
        assert answered([reply for reply, _ in told]) == [0, 1, 3]


async def test_message_that_joins_a_waiting_turn_uses_no_rate_token(
    home: Path, moments: Moments
) -> None:
    model = ScriptedModel()
    model.gate = asyncio.Event()
    async with open_gateway(home, model, LIMITS) as harness, asyncio.timeout(20):
        tasks = [await begun(harness, f"line {number}.") for number in range(1)]
        await model.began.wait()
        tasks += [await begun(harness, f"line {number}.") for number in range(1, 30)]
        model.gate.set()
        await asyncio.gather(*(task for _, task in tasks if task is not None))
        assert len(model.requests) == 2
        assert model.sent().count("line ") == 29


async def test_held_incognito_message_is_never_answered_in_another_chat(
    home: Path, moments: Moments
) -> None:
    model = ScriptedModel()
    async with (
        open_gateway(home, model, "[limits]\nturns_per_minute = 1\n") as harness,
        asyncio.timeout(20),
    ):
        await harness.say("/incognito on", "7", **in_topic(1))
        await harness.say("the first one", "7", **in_topic(3))
        kept, one = await begun(harness, "plain words", "7", **in_topic(2))
        secret, two = await begun(harness, "secret words", "7", **in_topic(1))
        both, three = await begun(harness, "more plain words", "7", **in_topic(3))
        assert one is not None
        assert two is not None
        assert three is not None
        moments.now_s += 60
        harness.queues._release_held()
        await asyncio.gather(one, three)
        assert (kept.answer, both.text, secret.answer) == (None, "ok", None)
        assert "secret" not in model.sent()
        moments.now_s += 60
        harness.queues._release_held()
        await two
        assert "incognito" in secret.text
        assert "secret words" not in await asked(harness)


async def test_held_message_can_be_edited_and_deleted_also_after_its_answer(
    home: Path, moments: Moments
) -> None:
    model = ScriptedModel()
    async with (
        open_gateway(home, model, "[limits]\nturns_per_minute = 1\n") as harness,
        asyncio.timeout(20),
    ):
        await harness.say("the first one", "7", **in_topic(1))
        told = [
            await begun(harness, text, "7", **in_topic(number), message_id=str(100 + number))
            for number, text in ((2, "withdrawn"), (3, "reworded"), (4, "the newest"))
        ]
        await harness.say("", "7", **in_topic(2), message_id="102", kind="delete")
        await harness.say("better words", "7", **in_topic(3), message_id="103", kind="edit")
        moments.now_s += 60
        harness.queues._release_held()
        await asyncio.gather(*(task for _, task in told if task is not None))
        assert answered([reply for reply, _ in told]) == [2]
        assert await asked(harness) == ["the first one", "better words", "the newest"]
        await harness.say("best words", "7", **in_topic(3), message_id="103", kind="edit")
        assert await asked(harness) == ["the first one", "best words", "the newest"]
        await harness.say("", "7", **in_topic(3), message_id="103", kind="delete")
        assert await asked(harness) == ["the first one", "", "the newest"]


async def test_rate_limited_message_before_a_deleted_one_is_answered_in_its_own_chat(
    home: Path, moments: Moments
) -> None:
    model = ScriptedModel()
    model.gate = asyncio.Event()
    async with (
        open_gateway(home, model, "[limits]\nturns_per_minute = 1\n") as harness,
        asyncio.timeout(20),
    ):
        running = await begun(harness, "the first one", "7", **in_topic(4))
        await model.began.wait()
        told = [
            await begun(harness, f"in {number}.", "7", **in_topic(number), message_id=f"9{number}")
            for number in (2, 3, 4)
        ]
        moments.now_s += 60
        harness.queues._release_held()
        await harness.say("", "7", **in_topic(4), message_id="94", kind="delete")
        model.gate.set()
        await asyncio.gather(*(task for _, task in (running, *told) if task is not None))
        assert answered([reply for reply, _ in told]) == [1]
        assert [f"in {number}." in model.sent() for number in (2, 3, 4)] == [True, True, False]
        items = await harness.services.database.fetch_all("SELECT address FROM outbox ORDER BY id")
        assert [row["address"] for row in items] == ["telegram:7/4", "telegram:7/3"]


async def test_held_message_of_a_removed_person_is_not_answered(
    home: Path, moments: Moments
) -> None:
    model = ScriptedModel()
    async with (
        open_gateway(home, model, "[limits]\nturns_per_minute = 1\n") as harness,
        asyncio.timeout(20),
    ):
        await harness.say("the first one", "7")
        reply, task = await begun(harness, "the second one")
        assert task is not None
        ana = Account(platform="telegram", user_id="7")
        await harness.services.removals.remove([ana], harness.services.clock.now())
        await harness.turns.recheck_access()
        await task
        assert reply.is_abandoned
        assert len(model.requests) == 1


async def test_commands_beyond_the_rate_limit_are_not_answered(
    home: Path, moments: Moments
) -> None:
    async with (
        open_gateway(home, options="[limits]\ncommands_per_minute = 5\n") as harness,
        asyncio.timeout(20),
    ):
        replies = [await harness.say("/whoami", "7") for _ in range(30)]
        assert answered(replies) == list(range(5))
        moments.now_s += 12
        assert answered([await harness.say("/whoami", "7") for _ in range(3)]) == [0]
        assert len(answered([await harness.say("/whoami") for _ in range(30)])) == 30, "the owner's"
        assert len(answered([await harness.say("/link ABCD", "666") for _ in range(30)])) == 5, (
            "a stranger's only one"
        )
        assert await harness.services.inbox.list_waiting() == []


IN_ROOM: dict[str, Any] = {
    "address": Address(platform="telegram", chat_id="-100"),
    "scope": Scope.group("telegram", "-100"),
    "is_direct": False,
}


async def test_two_assistants_answering_each_other_in_one_group_stop_after_a_few_turns(
    home: Path, tmp_path: Path, moments: Moments
) -> None:
    """Each speaks through an account that no platform marks as a bot's."""
    (tmp_path / "other").mkdir()
    model = ScriptedModel()
    async with (
        open_gateway(home, model, QUICK) as one,
        open_gateway(tmp_path / "other", options=QUICK) as other,
    ):
        said, answers = "hello, what do you think?", list[str]()
        while len(answers) < 100:
            house, account = ((one, "801"), (other, "802"))[len(answers) % 2]
            moments.now_s += 20
            reply = await house.say(said, account, **IN_ROOM)
            if reply.answer is None:
                break
            said = reply.text
            answers.append(said)
        assert len(answers) == 2 * MAX_TURNS_IN_A_ROW
        assert [number for number, text in enumerate(answers) if "I only listen" in text] == [
            10,
            11,
        ]
        assert (await one.say("and you?", "801", **IN_ROOM)).answer is None
        assert (await one.say("what are they at?", "9", **IN_ROOM)).text == "ok"
        assert "and you?" in str(model.requests[-1].messages), "it was kept"
        assert (await one.say("so?", "801", **IN_ROOM)).text == "ok", "somebody else has spoken"
        for number in range(2 * MAX_TURNS_IN_A_ROW):
            assert (await one.say("/help", "801", **IN_ROOM)).answer is not None
            assert (await one.say(f"line {number}", "801", **IN_ROOM)).text == "ok", (
                "who is a person gives a command"
            )


async def test_member_after_a_pause_and_the_owner_are_answered_despite_many_turns(
    home: Path, moments: Moments
) -> None:
    async with open_gateway(home, options=QUICK) as harness:
        for number in range(2 * MAX_TURNS_IN_A_ROW):
            assert (await harness.say(f"line {number}", "42", **IN_ROOM)).text == "ok"
            assert (await harness.say(f"line {number}", "7")).text == "ok", (
                "in a direct chat they are alone"
            )
        for number in range(MAX_TURNS_IN_A_ROW + 1):
            reply = await harness.say(f"line {number}", "7", **IN_ROOM)
        assert reply.answer is None
        moments.now_s += TURNS_RESET_S + 1
        assert (await harness.say("still there?", "7", **IN_ROOM)).text == "ok"


@pytest.mark.parametrize("who", ["42", "7"])
async def test_message_via_a_bot_begins_no_turn_and_is_foreign_text(home: Path, who: str) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LIMITS) as harness:
        assert (await harness.say("The sky is green.", who, origin="via_bot")).answer is None
        assert model.requests == []
        assert (await harness.say("is it true?", who)).text == "ok"
        (foreign, said, *_), *rest = [
            [block["text"] for block in message["content"]]
            for message in model.requests[0].messages
        ]
        assert ", sent through a bot]" in foreign
        assert said == "The sky is green."
        assert rest == []
        assert (await harness.services.inbox.list_waiting()) == []


async def test_questions_that_are_due_together_are_turns_of_their_own(
    home: Path, moments: Moments
) -> None:
    model = ScriptedModel()
    async with (
        open_gateway(home, model, "[limits]\nturns_per_minute = 1\n") as harness,
        asyncio.timeout(20),
    ):
        due: list[dict[str, Any]] = [
            {"address": Address(platform="cron", chat_id=number)} for number in "12"
        ]
        told = [await begun(harness, "what is new?", **place) for place in due]
        tasks = [task for _, task in told if task is not None]
        await tasks[0]
        moments.now_s += 60
        harness.queues._release_held()
        await tasks[1]
        assert answered([reply for reply, _ in told]) == [0, 1]
        assert len(model.requests) == 2


async def test_command_sent_after_rate_limited_messages_runs_after_them(
    home: Path, moments: Moments
) -> None:
    """What was written in an incognito conversation is not kept because that was ended a moment
    later."""
    async with (
        open_gateway(home, options="[limits]\nturns_per_minute = 1\n") as harness,
        asyncio.timeout(20),
    ):
        await harness.say("/incognito on", "7")
        await harness.say("the first one", "7")
        told = [
            await begun(harness, text)
            for text in ("secret words", "/incognito off", "plain words", "/title Sea")
        ]
        assert answered([reply for reply, _ in told]) == []
        for _ in range(2):
            moments.now_s += 60
            harness.queues._release_held()
        await asyncio.gather(*(task for _, task in told if task is not None))
        assert answered([reply for reply, _ in told]) == [0, 1, 2, 3]
        assert await asked(harness) == ["/incognito on", "plain words", "/title Sea"]


async def test_message_behind_a_held_command_is_answered_in_its_own_chat(
    home: Path, moments: Moments
) -> None:
    """/incognito, say: its conversation is not known to be incognito yet as the next words come."""
    async with (
        open_gateway(home, options="[limits]\nturns_per_minute = 3\n") as harness,
        asyncio.timeout(20),
    ):
        for number in range(3):
            await harness.say(f"line {number}", "7", **in_topic(3))
        lines = (
            (1, "plain words"),
            (1, "/incognito on"),
            (1, "secret words"),
            (2, "more plain words"),
        )
        told = [await begun(harness, text, "7", **in_topic(topic)) for topic, text in lines]
        moments.now_s += 60
        harness.queues._release_held()
        await asyncio.gather(*(task for _, task in told if task is not None))
        assert answered([reply for reply, _ in told]) == [0, 1, 2, 3]
        assert "incognito" in told[2][0].text
        assert sorted((await asked(harness))[3:]) == [
            "/incognito on",
            "more plain words",
            "plain words",
        ]
