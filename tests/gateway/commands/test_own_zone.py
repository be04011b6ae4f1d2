"""The times that a person reads are in their own time zone, not in that of the settings."""

from __future__ import annotations

import re
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.media_samples import make_photo
from tests.fixtures.scripted_model import ScriptedModel, calls, says

# Their clocks are 25 hours apart, so they never show the same day.
ZONE_OF_SETTINGS = "Pacific/Kiritimati"
OWN_ZONE = "Pacific/Pago_Pago"


def name_day(harness: GatewayHarness, zone: str) -> str:
    """Return the beginning of a day as the answers write it: "30 Nov"."""
    today = harness.services.clock.now().astimezone(ZoneInfo(zone))
    return f"{today.day} {today:%b}"


@pytest.mark.parametrize(
    "question",
    [
        "/recall boiler",
        "/recall boiler after:yesterday",
        "/sessions",
        "/forget boiler",
        "/memory history",
        "/memory pending",
        "/memory why leaks",
        "/memory why f1",
        "/files",
        "/files send 1",
        "/people",
    ],
)
async def test_answer_of_a_command_has_days_in_the_zone_of_the_person(
    home: Path, question: str
) -> None:
    note = ("memory", {"target": "memory", "action": "add", "content": "The cellar is damp"})
    model = ScriptedModel(calls(note), says("Noted."), says("A blue picture."))
    async with open_gateway(home, model, zone=ZONE_OF_SETTINGS) as harness:
        await harness.say(f"/timezone {OWN_ZONE}")
        await harness.say("the boiler leaks")
        await harness.send(make_photo(), "p.jpg", "photo", "our boiler")
        await harness.say("/memory add the boiler leaks")
        await harness.say("/remember my boiler is a Vaillant")
        days = [name_day(harness, OWN_ZONE)]
        answer = (await harness.say(question)).text
        # Midnight may have passed meanwhile.
        days.append(name_day(harness, OWN_ZONE))
        assert any(re.search(rf"\b{day}", answer) for day in days), answer
        assert not re.search(rf"\b{name_day(harness, ZONE_OF_SETTINGS)}", answer), answer


async def test_conversations_are_suggested_with_days_in_the_zone_of_the_person(home: Path) -> None:
    async with open_gateway(home, zone=ZONE_OF_SETTINGS) as harness:
        await harness.say(f"/timezone {OWN_ZONE}")
        await harness.say("the boiler leaks")
        days = [name_day(harness, OWN_ZONE)]
        labels = await harness.admission.autocomplete(harness.inbound("/sessions"), "")
        days.append(name_day(harness, OWN_ZONE))
    (label,) = labels.values()
    assert any(f"({day}" in label for day in days), label
