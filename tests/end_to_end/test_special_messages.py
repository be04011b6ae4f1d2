"""Polls, checklists, dice, contacts and places: the model reads them as words, and without a model
the answer is short and true. What can't be read is kept and said to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from core.guard.origin_and_fence import insertion
from tests.end_to_end.test_media import texts_of
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow

MESSAGES = {
    "poll": f"Poll: {insertion('When do we meet? Options: Monday; Tuesday')}",
    "closed poll": f"Closed poll: {insertion('When? Options: Monday (3); Tuesday (1)')}",
    "checklist": f"Checklist: {insertion('Trip. open: passports; done: tickets')}",
    "dice": f"Dice: {insertion('🎲 4')}",
    "contact": f"Contact: {insertion('Ben, +351 900')}",
    "place": f"Location: {insertion('38.7, -9.1')}",
}
INVOICE = f"""Message: {insertion('an invoice, which can be read only in Telegram: ("title": "Kayak")')}"""


@pytest.mark.parametrize("kind", MESSAGES)
async def test_special_message_is_saved_and_gets_a_short_answer_without_a_model(
    home: Path, kind: str
) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        await harness.say("On Monday the boiler leaked, says Ben; we meet on Tuesday")
        assert (await harness.say(MESSAGES[kind])).text == "I've saved that."


async def test_message_of_an_unreadable_kind_is_stored_and_confirmed_as_unread(home: Path) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        assert (await harness.say(INVOICE)).text.startswith("I've kept that, but I can't read it.")
        assert "Kayak" in (await harness.say("/recall kayak")).text


async def test_model_reads_the_words_of_a_special_message(home: Path) -> None:
    model = ScriptedModel(says("Monday wins."))
    async with open_gateway(home, model) as harness:
        await harness.say(MESSAGES["closed poll"])
        assert "Monday (3); Tuesday (1)" in texts_of(model.requests[0])
