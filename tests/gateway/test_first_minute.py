"""The first minute without a model: an answer that shows what works, with three buttons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.agent.offline import OfflineModel
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.live_system import PERSON, LiveSystem

pytestmark = pytest.mark.slow

STEPS = ["Remind me in a minute", "Remember this day", "What do you know?"]


async def test_newcomer_without_a_model_gets_three_buttons_that_work(home: Path) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        reply = await harness.say("hello")
        assert reply.text.startswith("Hello! Ask me a question")
        assert reply.text.endswith("Three things to try:")
        assert reply.answer is not None
        assert [button.label for button in reply.answer.buttons] == STEPS
        remind, remember, facts = reply.answer.buttons
        assert "stretch your legs" in (await harness.say(remind.id, kind="action")).text
        assert "I met Mneme today" in (await harness.say(remember.id, kind="action")).text
        assert "I met Mneme today" in (await harness.say(facts.id, kind="action")).text
        again = await harness.say("My bicycle is green.")
        assert again.text == "I've saved that."


@pytest.mark.parametrize("first_text", ["Where is my bicycle?", "remind me tomorrow at 9 to call"])
async def test_first_message_that_uses_a_tool_gets_buttons_only_if_it_says_that_there_is_no_model(
    home: Path, first_text: str
) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        reply = await harness.say(first_text)
        assert reply.answer is not None
        has_steps = STEPS[0] in [button.label for button in reply.answer.buttons]
        assert has_steps == ("No model is configured" in reply.text)
        assert has_steps == reply.text.endswith("Three things to try:")


async def test_greeting_of_a_returning_person_has_no_introduction_buttons(home: Path) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        await harness.say("My bicycle is green.")
        await harness.say("/new")
        reply = await harness.say("hello")
        assert "No model is configured" in reply.text
        assert reply.answer is not None
        assert reply.answer.buttons == ()


def labels(message: dict[str, Any]) -> list[str]:
    keyboard = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [button["text"] for row in keyboard for button in row]


async def test_first_minute_on_telegram_shows_three_buttons(home: Path) -> None:
    async with LiveSystem.open(home) as live:
        await live.start(ANTHROPIC_API_KEY="", ANTHROPIC_BASE_URL="")
        live.telegram.user_says(PERSON, "hello")
        await live.until(lambda: any(labels(each) for each in live.telegram.messages(PERSON)))
        (message,) = live.telegram.messages(PERSON)
        assert labels(message) == STEPS
        live.telegram.user_presses(PERSON, message["message_id"], STEPS[1])
        await live.until(lambda: "I met Mneme today" in str(live.telegram.texts(PERSON)))


async def test_first_minute_on_discord_shows_three_buttons(home: Path) -> None:
    async with LiveSystem.open(home) as live:
        await live.start(ANTHROPIC_API_KEY="", ANTHROPIC_BASE_URL="")
        await live.discord.user_says(live.channel, "hello", live.discord_person)
        await live.until(
            lambda: any(post["components"] for post in live.discord.messages(live.channel))
        )
        (post,) = [each for each in live.discord.messages(live.channel) if each["components"]]
        assert "Ask me a question" in post["content"]
        shown = [item["label"] for row in post["components"] for item in row["components"]]
        assert shown == STEPS
