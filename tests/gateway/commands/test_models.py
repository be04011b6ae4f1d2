"""/model: which model answers in a conversation, and how a person changes it."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from core.errors import Sentence
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel

pytestmark = pytest.mark.slow

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


async def test_model_that_is_no_longer_offered_is_not_asked_any_more(home: Path) -> None:
    async with open_gateway(home, options=OPTIONS) as harness:
        await harness.say("Hello")
        await harness.say(f"/model {OTHER}")
        assert harness.services.settings.model.keep_name(OTHER) == OTHER
    async with open_gateway(home) as harness:
        assert harness.services.settings.model.keep_name(OTHER) == "claude-sonnet-5-5"
        assert (await harness.say("/model", message_id="900")).text == (
            "`claude-sonnet-5-5` answers here. Add others with `choices` under [model] in mneme.toml."
        )
        assert await ask_and_read_model(harness, "Hi", message_id="901") == "claude-sonnet-5-5"


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


async def test_model_names_are_autocompleted_for_the_model_command(home: Path) -> None:
    async with open_gateway(home, options=OPTIONS) as harness:
        asked = harness.inbound("/model ASTRA")
        suggestions = await harness.commands.autocomplete(asked, "ASTRA", "", asked.scope)
        assert suggestions == {OTHER: OTHER}


HELPERS = '[model]\nhelper_choices = ["openai/gpt-6-luna", "ollama/qwen4"]\n'


def helper_of_last(helper: ScriptedModel, kind: str) -> str:
    """Return the helper model that the last request of a kind named."""
    return [request for request in helper.requests if request.kind == kind][-1].model


async def test_chosen_helper_model_helps_in_this_conversation_until_a_new_one(home: Path) -> None:
    helper = ScriptedModel()
    async with open_gateway(home, options=HELPERS, titles=helper) as harness:
        shown = await harness.say("/model")
        assert "`claude-haiku-5-5` helps with titles, summaries and facts." in shown.text
        assert shown.answer is not None
        labels = [button.label for button in shown.answer.buttons]
        assert labels == ["Helper: openai/gpt-6-luna", "Helper: ollama/qwen4"]
        answer = (await harness.say("/model helper gpt-6-luna")).text
        assert answer.startswith("From now on, `openai/gpt-6-luna` helps in this conversation")
        await harness.say("About the ferry")
        assert helper_of_last(helper, "title") == "openai/gpt-6-luna"
        await harness.say("Elsewhere?", who="7")
        assert helper_of_last(helper, "title") == "claude-haiku-5-5"
        assert "`openai/gpt-6-luna` helps" in (await harness.say("/model")).text
        await harness.say("/compress")
        assert "`openai/gpt-6-luna` helps" in (await harness.say("/model")).text
    async with open_gateway(home, options=HELPERS, titles=helper) as harness:
        # The choice survives a restart.
        harness._ids = count(900)
        assert "`openai/gpt-6-luna` helps" in (await harness.say("/model")).text
        await harness.say("/model helper default")
        assert "`claude-haiku-5-5` helps" in (await harness.say("/model")).text
        await harness.say("/model helper qwen4")
        await harness.say("/new")
        await harness.say("About a third ferry")
        assert helper_of_last(helper, "title") == "claude-haiku-5-5"


async def test_helper_model_choice_of_a_deleted_conversation_is_removed(home: Path) -> None:
    async with open_gateway(home, options=HELPERS, titles=ScriptedModel()) as harness:
        await harness.say("/model helper qwen4")
        await harness.services.database.execute(
            "UPDATE state_meta SET key = 'helper_model:999' WHERE key LIKE 'helper_model:%'"
        )
        await harness.services.helper_choices.load()
        rows = await harness.services.database.fetch_all(
            "SELECT key FROM state_meta WHERE key LIKE 'helper_model:%'"
        )
        assert rows == []
        assert harness.services.helper_choices.names == {}


async def test_models_chosen_in_incognito_answer_there_and_leave_no_trace(home: Path) -> None:
    options = OPTIONS + HELPERS.partition("\n")[2]
    async with open_gateway(home, options=options, titles=ScriptedModel()) as harness:
        await harness.say("/incognito")
        await harness.say(f"/model {OTHER}")
        assert await ask_and_read_model(harness, "Who answers?") == OTHER
        await harness.say("/model helper qwen4")
        assert "`ollama/qwen4` helps" in (await harness.say("/model")).text
        rows = await harness.services.database.fetch_all(
            "SELECT key FROM state_meta WHERE key LIKE 'helper_model:%'"
        )
        assert rows == []
        await harness.say("/incognito off")
        assert await ask_and_read_model(harness, "And now?") == "claude-sonnet-5-5"


async def test_helper_model_that_is_not_offered_is_refused(home: Path) -> None:
    async with open_gateway(home, options=HELPERS) as harness:
        text = (await harness.say("/model helper claude-opus-5-5")).text
        assert text == (
            "I have no model claude-opus-5-5 here. You can choose `claude-haiku-5-5`, "
            "`openai/gpt-6-luna`, `ollama/qwen4`."
        )


async def test_helper_models_are_suggested_while_they_are_typed(home: Path) -> None:
    async with open_gateway(home, options=HELPERS) as harness:
        asked = harness.inbound("/model helper o")
        suggestions = await harness.commands.autocomplete(asked, "helper o", "", asked.scope)
        assert list(suggestions) == ["helper openai/gpt-6-luna", "helper ollama/qwen4"]


async def test_model_command_shows_what_the_model_lacks(home: Path) -> None:
    options = '[model]\nlacks = { "claude-sonnet-5-5" = ["pictures"] }\n'
    async with open_gateway(home, options=options) as harness:
        await harness.services.model_limits.save_lack("claude-sonnet-5-5", "tools")
        text = (await harness.say("/model")).text
        assert text.startswith("`claude-sonnet-5-5` answers here. It can't use pictures, tools.")


async def test_model_command_hides_a_lack_that_the_settings_deny(home: Path) -> None:
    options = '[model]\nlacks = { "claude-sonnet-5-5" = [] }\n'
    async with open_gateway(home, options=options) as harness:
        await harness.services.model_limits.save_lack("claude-sonnet-5-5", "tools")
        assert "can't use" not in (await harness.say("/model")).text


async def test_models_chosen_before_the_first_message_are_reset_by_new(home: Path) -> None:
    options = OPTIONS + HELPERS.partition("\n")[2]
    helper = ScriptedModel()
    async with open_gateway(home, options=options, titles=helper) as harness:
        await harness.say(f"/model {OTHER}")
        await harness.say("/model helper qwen4")
        assert (await harness.say("/new")).text.startswith("This conversation is already new.")
        assert (await harness.say("/model")).text.startswith("`claude-sonnet-5-5` answers here.")
        assert await ask_and_read_model(harness, "New?") == "claude-sonnet-5-5"
        assert helper_of_last(helper, "title") == "claude-haiku-5-5"


async def test_model_helper_command_without_a_name_shows_the_helper_model_unchanged(
    home: Path,
) -> None:
    async with open_gateway(home, options=HELPERS, titles=ScriptedModel()) as harness:
        await harness.say("/model helper qwen4")
        shown = await harness.say("/model helper")
        assert shown.text == (
            "`ollama/qwen4` helps with titles, summaries and facts. To change that: "
            "`/model helper claude-haiku-5-5`, `/model helper openai/gpt-6-luna`"
        )
        assert shown.answer is not None
        labels = [button.label for button in shown.answer.buttons]
        assert labels == ["Helper: claude-haiku-5-5", "Helper: openai/gpt-6-luna"]
        assert "`ollama/qwen4` helps" in (await harness.say("/model")).text


async def test_model_helper_command_without_choices_names_the_setting_that_adds_them(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        assert (await harness.say("/model helper")).text == (
            "`claude-haiku-5-5` helps with titles, summaries and facts. "
            "Add others with `helper_choices` under [model] in mneme.toml."
        )


async def test_model_that_is_out_of_reach_is_named_with_the_reason_and_who_answered(
    home: Path,
) -> None:
    async with open_gateway(home, options=OPTIONS) as harness:
        await harness.say("Hello")
        outages = harness.services.model_outages
        await outages.begin("claude-sonnet-5-5", Sentence("It is out of credit."))
        shown = (await harness.say("/model")).text
        assert shown.startswith(
            "`claude-sonnet-5-5` is set for this conversation, but it didn't answer when I last asked it. "
            "It is out of credit. To change that: "
        )
        assert isinstance(harness.model, ScriptedModel)
        await outages.note_answer(harness.model.requests[-1], OTHER, has_notice=True)
        shown = (await harness.say("/model")).text
        assert f"It is out of credit. `{OTHER}` answered instead. " in shown
        await outages.end("claude-sonnet-5-5")
        shown = (await harness.say("/model")).text
        assert shown.startswith("`claude-sonnet-5-5` answers here.")


async def test_helper_model_chosen_in_incognito_is_kept_after_a_compression(home: Path) -> None:
    helper = ScriptedModel()
    async with open_gateway(home, options=HELPERS, titles=helper) as harness:
        await harness.say("/incognito")
        for number in range(6):
            await harness.say(f"The ferry number {number} leaves at nine.")
        await harness.say("/model helper qwen4")
        await harness.say("/compress")
        assert "`ollama/qwen4` helps" in (await harness.say("/model")).text
