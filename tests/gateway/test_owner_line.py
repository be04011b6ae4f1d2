"""The owner's line for a day: told at 80 %, asked at 100 %, in money or in unpriced tokens."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from core.types import Address, Usage
from gateway import services
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, notices, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow

IDS = count()
CRON = Address(platform="cron", chat_id="1")
# A model without a price. Each answer uses 15 tokens.
LINE = "[limits]\nowner_day = { money = 0, tokens = 30 }\n"
REACHED = (
    "Your limit for today is reached (30 of 30 tokens). `/usage more` allows the same amount again "
    "today; otherwise I go on at midnight (Europe/Lisbon). Commands and reminders work meanwhile."
)
PRICED = """
[limits]
owner_day = { money = 2.0, tokens = 30 }
[usage.prices]
"scripted" = { input = 1.0, output = 1.0, cache_write = 1.0, cache_read = 1.0 }
"""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SteadyClock:
    clock = SteadyClock()
    monkeypatch.setattr(services, "WallClock", lambda: clock)
    return clock


async def say(harness: GatewayHarness, clock: SteadyClock, text: str, **changes: Any) -> KeptReply:
    """Say something as the owner, two minutes after the last message."""
    clock.advance(minutes=2)
    return await harness.say(text, **{"message_id": f"m{next(IDS)}", **changes})


async def press(harness: GatewayHarness, reply: KeptReply, label: str) -> KeptReply:
    assert reply.answer is not None
    [button] = [button for button in reply.answer.buttons if button.label == label]
    return await harness.say(button.id, kind="action")


async def test_owner_is_asked_to_confirm_at_the_daily_token_limit_instead_of_an_answer(
    home: Path, clock: SteadyClock
) -> None:
    model = ScriptedModel(*[says("Yes.", usage=Usage(input=12, output=3))] * 9)
    options = LINE.replace("30", "60")
    async with open_gateway(home, model, options) as harness:
        for _ in range(4):
            assert (await say(harness, clock, "Is it cold?")).text == "Yes."
        reply = await say(harness, clock, "Is it warm?")
        assert reply.text == REACHED.replace("30 of 30", "60 of 60")
        assert len(model.requests) == 4


async def test_warning_near_the_owners_daily_limit_names_the_limit_and_is_sent_once(
    home: Path, clock: SteadyClock
) -> None:
    model = ScriptedModel(*[says("Yes.", usage=Usage(input=20, output=4))] * 9)
    async with open_gateway(home, model, LINE) as harness:
        for _ in range(2):
            await say(harness, clock, "Is it cold?")
        await say(harness, clock, "Is it warm?")
        [(place, text)] = await notices(harness)
        assert place == "telegram:42"
        assert text.startswith("Your limit for today is nearly reached (24 of 30 tokens).")


async def test_button_raises_the_owners_daily_limit_and_answers_the_last_message(
    home: Path, clock: SteadyClock
) -> None:
    async with open_gateway(home, ScriptedModel(), LINE) as harness:
        for _ in range(2):
            await say(harness, clock, "Is it cold?")
        refusal = await say(harness, clock, "Is it warm?")
        assert refusal.text == REACHED
        raised = await press(harness, refusal, "Go on")
        assert raised.text.startswith("Your limit for today is raised: 30 of 60 tokens.")
        answer = await press(harness, raised, "Answer my last message")
        assert answer.text == "ok"
        assert "**Your limit for today**: 45 of 60 tokens" in (await harness.say("/usage")).text


async def test_raised_daily_limit_of_the_owner_stops_answers_again_and_is_reset_the_next_day(
    home: Path, clock: SteadyClock
) -> None:
    async with open_gateway(home, ScriptedModel(), LINE) as harness:
        await harness.say("/usage more")
        for _ in range(4):
            assert (await say(harness, clock, "Is it cold?")).text == "ok"
        assert "60 of 60 tokens" in (await say(harness, clock, "Is it warm?")).text
    async with open_gateway(home, ScriptedModel(), LINE) as harness:
        assert "60 of 60 tokens" in (await say(harness, clock, "Is it warm?")).text
        clock.advance(days=1)
        for _ in range(2):
            assert (await say(harness, clock, "Is it cold?")).text == "ok"
        assert "30 of 30 tokens" in (await say(harness, clock, "Is it warm?")).text


async def test_scheduled_question_over_the_owners_daily_limit_calls_no_model(
    home: Path, clock: SteadyClock
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LINE) as harness:
        replies = [await say(harness, clock, "Any news?", address=CRON) for _ in range(5)]
        texts = [reply.answer.text if reply.answer else None for reply in replies]
        assert texts == ["ok", "ok", REACHED, None, None]
        assert len(model.requests) == 2


async def test_owners_daily_limit_counts_money_if_the_models_price_is_known(
    home: Path, clock: SteadyClock
) -> None:
    model = ScriptedModel(*[says("Yes.", usage=Usage(input=1_000_000))] * 9)
    async with open_gateway(home, model, PRICED) as harness:
        for _ in range(2):
            assert (await say(harness, clock, "Is it cold?")).text == "Yes."
        assert "($2.00 of $2.00)" in (await say(harness, clock, "Is it warm?")).text


async def test_helper_model_calls_stop_at_the_owners_daily_limit(
    home: Path, clock: SteadyClock
) -> None:
    helper = ScriptedModel(*[says("[]")] * 99)
    async with open_gateway(home, ScriptedModel(), LINE, helper) as harness:
        for _ in range(2):
            await say(harness, clock, "I live in Porto and my sister is called Clara.")
        requests_at_line = len(helper.requests)
        clock.advance(minutes=2)
        summary = await harness.say("/recall --summary Porto")
        assert "limit for today is reached" in summary.text
        assert len(helper.requests) == requests_at_line


async def test_only_the_owner_can_raise_the_owners_daily_limit(
    home: Path, clock: SteadyClock
) -> None:
    async with open_gateway(home, ScriptedModel(), LINE) as harness:
        assert "Write /usage" in (await harness.say("/usage more", "7")).text
        for _ in range(2):
            await say(harness, clock, "Is it cold?")
        assert (await say(harness, clock, "Is it warm?")).text == REACHED


async def test_owners_daily_limit_that_is_turned_off_never_stops_answers(
    home: Path, clock: SteadyClock
) -> None:
    options = '[limits]\nowner_day = { money = "off", tokens = 0 }\n'
    async with open_gateway(home, ScriptedModel(), options) as harness:
        for _ in range(4):
            assert (await say(harness, clock, "Is it cold?")).text == "ok"
        assert "You have no daily limit" in (await harness.say("/usage more")).text


async def test_owners_daily_limit_cannot_be_raised_in_an_incognito_conversation(
    home: Path, clock: SteadyClock
) -> None:
    async with open_gateway(home, ScriptedModel(), LINE) as harness:
        await harness.say("/incognito on")
        assert "outside of incognito" in (await harness.say("/usage more")).text
