"""/model: which model answers in a conversation, and how a person changes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel

OPTIONS = '[model]\nchoices = ["openai/gpt-6-astra", "claude-opus-5-5"]\n'
OTHER = "openai/gpt-6-astra"


async def ask_and_read_model(harness: GatewayHarness, text: str, **changes: object) -> str:
    """Send a message, and return the model that was asked."""
    await harness.say(text, **changes)  # type: ignore[arg-type]
    assert isinstance(harness.model, ScriptedModel)
    return harness.model.requests[-1].model


async def test_chosen_model_answers_in_this_conversation_until_a_new_one(home: Path) -> None:
    async with open_gateway(home, options=OPTIONS) as harness:
        assert await ask_and_read_model(harness, "Hello") == "claude-sonnet-5-5"
        shown = await harness.say("/model")
        assert shown.text.startswith("`claude-sonnet-5-5` answers here.")
        assert shown.answer is not None
        assert [button.label for button in shown.answer.buttons] == [OTHER, "claude-opus-5-5"]
        answer = (await harness.say("/model gpt-6-ASTRA")).text
        assert answer.startswith(f"From now on, `{OTHER}` answers in this conversation.")
        assert await ask_and_read_model(harness, "And now?") == OTHER
        assert await ask_and_read_model(harness, "Elsewhere?", who="7") == "claude-sonnet-5-5"
        await harness.say("/compress")
        assert await ask_and_read_model(harness, "After the summary?") == OTHER
        await harness.say("/model default")
        assert await ask_and_read_model(harness, "Back?") == "claude-sonnet-5-5"
        await harness.say(f"/model {OTHER}")
        await harness.say("/new")
        assert await ask_and_read_model(harness, "New?") == "claude-sonnet-5-5"


async def test_model_that_is_no_longer_offered_is_replaced_at_the_next_summary(home: Path) -> None:
    async with open_gateway(home, options=OPTIONS) as harness:
        await harness.say("Hello")
        await harness.say(f"/model {OTHER}")
        assert harness.services.settings.model.keep_name(OTHER) == OTHER
    async with open_gateway(home) as harness:
        assert harness.services.settings.model.keep_name(OTHER) == "claude-sonnet-5-5"
        assert (await harness.say("/model", message_id="900")).text == (
            "`claude-sonnet-5-5` answers here. Add others with `choices` below [model] in mneme.toml."
        )


@pytest.mark.parametrize("name", ["gpt-9", "astra", "claude"])
async def test_model_that_is_not_offered_is_refused_with_those_that_are(
    home: Path, name: str
) -> None:
    async with open_gateway(home, options=OPTIONS) as harness:
        text = (await harness.say(f"/model {name}")).text
        assert text == (
            f"I have no model {name} here. You can choose `claude-sonnet-5-5`, `{OTHER}`, "
            "`claude-opus-5-5`."
        )


async def test_names_are_suggested_while_they_are_typed(home: Path) -> None:
    async with open_gateway(home, options=OPTIONS) as harness:
        group = harness.commands
        scope = harness.inbound("x").scope
        assert await group.autocomplete("model", "ASTRA", scope) == {OTHER: OTHER}
