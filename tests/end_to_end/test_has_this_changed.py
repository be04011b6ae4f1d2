"""A fact that another statement closes: Mneme asks once whether it has changed, and shows what a
correction changed. Both notices have buttons, which still work after a restart."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from core.models.claude import Claude
from core.types import Answer, Button
from gateway import services
from tests.bench.changes import KEY, ScriptedHelper
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.messages_api import MessagesApi

pytestmark = pytest.mark.slow


AFTER_RESTART = 100
"""The platform's messages after the restart have ids from this one on."""


async def list_notices(harness: GatewayHarness) -> list[Answer]:
    due = await harness.services.outbox.list_due(harness.services.clock.now())
    return [item.answer for item in due if item.kind == "notice" and item.answer is not None]


async def press(harness: GatewayHarness, button: Button) -> str:
    return (await harness.say(button.id, kind="action")).text


async def list_current(harness: GatewayHarness) -> list[str]:
    text = (await harness.say("/memory facts")).text
    current, _, _ = text.partition("_No longer true_")
    return [line.split("** ")[1].split(" (")[0] for line in current.splitlines() if "- **f" in line]


async def test_two_homes_without_a_word_of_change_are_asked_about_once(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("I live in Leeds")
        await harness.say("/new")
        await harness.say("I live in York")
        (notice,) = await list_notices(harness)
        assert notice.text.startswith("Has this changed? You told me “I live in Leeds”, and now")
        assert [button.label for button in notice.buttons] == ["Yes, it has", "No, both are true"]
        assert await list_current(harness) == ["I live in York"]
        await harness.say("/new")
        now, before = (await harness.say("where do I live?")).text.splitlines()[:2]
        assert "“I live in York”" in now
        assert "“I live in Leeds”" in before
        assert "no longer so" in before
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        harness._ids = count(AFTER_RESTART)
        (notice,) = await list_notices(harness)
        await press(harness, notice.buttons[1])
        assert sorted(await list_current(harness)) == ["I live in Leeds", "I live in York"]
        await harness.say("I live in York")
        assert len(await list_notices(harness)) == 1


async def test_yes_to_has_this_changed_keeps_the_newer_home(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("J'habite à Lille")
        await harness.say("J'habite à Metz")
        (notice,) = await list_notices(harness)
        assert "J'habite à Metz" in await press(harness, notice.buttons[0])
        assert await list_current(harness) == ["J'habite à Metz"]


@pytest.mark.both_engines
async def test_stated_move_replaces_the_former_home_without_asking(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("I live in Leeds")
        await harness.say("I moved to York")
        assert await list_notices(harness) == []
        assert await list_current(harness) == ["I moved to York"]


async def test_button_of_a_corrected_fact_undoes_the_correction(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("My doctor is Dr Amin")
        await harness.say("sorry, not Amin, it's Dr Amir")
        (notice,) = await list_notices(harness)
        assert notice.text == "Corrected: “My doctor is Dr Amin” → “My doctor is Dr Amir”"
        assert await list_current(harness) == ["My doctor is Dr Amir"]
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        harness._ids = count(AFTER_RESTART)
        (notice,) = await list_notices(harness)
        await press(harness, notice.buttons[0])
        assert await list_current(harness) == ["My doctor is Dr Amin"]
        again = await harness.say("/memory restore f1")
        assert "is still true" in again.text


async def test_correction_is_of_the_last_messages_and_not_of_an_older_fact(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("My birthday is on 9 August")
        for text in ("the bins are on Tuesdays", "tea is better than coffee", "it rains"):
            await harness.say(text)
        await harness.say("the dentist is on 17 February")
        await harness.say("no wait, I meant 18 February")
        assert await list_notices(harness) == []
        assert await list_current(harness) == ["My birthday is on 9 August"]


async def test_fact_change_found_by_the_helper_model_later_is_announced_and_can_be_undone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SteadyClock(datetime(2026, 2, 2, 18, tzinfo=UTC))
    monkeypatch.setattr(services, "WallClock", lambda: clock)
    async with MessagesApi(ScriptedHelper("ended"), key=KEY) as api:
        helper = Claude(api_key=KEY, base_url=api.url, clock=clock)
        async with open_gateway(home, OfflineModel("UTC"), titles=helper) as harness:
            for text in ("we keep three hens", "the fox got all our hens, they are gone now"):
                await harness.say(text)
                clock.advance(minutes=2)
                await harness.memory.tend()
            (notice,) = await list_notices(harness)
            assert notice.text == (
                "Updated: “we keep three hens” → “the fox got all our hens, they are gone now”"
            )
            await press(harness, notice.buttons[0])
            assert await list_current(harness) == ["we keep three hens"]
        await helper.close()
