"""The owner's calendar in a conversation: the command, the morning brief, and the model's tool."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from core.types import Address, Request, Scope
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.web_pages import serve_pages

pytestmark = pytest.mark.slow

EVENT = """BEGIN:VEVENT
UID:{uid}@tests
SUMMARY:{text}
DTSTART:{day}T{start}00Z
DTEND:{day}T{end}00Z
END:VEVENT
"""


def write_feed(day: str) -> str:
    events = [("Dentist", "1000", "1100"), ("Call *Bob*", "2200", "2230")]
    body = "".join(
        EVENT.format(uid=text, text=text, day=day, start=start, end=end)
        for text, start, end in events
    )
    text = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//Tests//EN\n{body}END:VCALENDAR\n"
    return text.replace("\n", "\r\n")


@asynccontextmanager
async def open_calendar(
    home: Path, model: ScriptedModel
) -> AsyncIterator[tuple[GatewayHarness, str]]:
    """Run a gateway whose owner has two events tomorrow. Yields its date in ISO format, too."""
    async with serve_pages() as pages:
        options = f'[calendar.home]\nurl = "http://127.0.0.1:{pages.port}/feed.ics"\n'
        async with open_gateway(home, model, options) as harness:
            tomorrow = harness.services.clock.now().date().toordinal() + 1
            day = type(harness.services.clock.now().date()).fromordinal(tomorrow)
            pages.add("/feed.ics", write_feed(f"{day:%Y%m%d}"), "text/calendar")
            yield harness, day.isoformat()


def result_of(request: Request) -> str:
    block = request.messages[-1]["content"][0]
    content = block["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


async def test_agenda_lists_the_events_of_a_day_in_the_persons_zone(home: Path) -> None:
    async with open_calendar(home, ScriptedModel()) as (harness, _):
        await harness.say("/timezone Berlin")
        answer = (await harness.say("/agenda tomorrow")).text
        assert "- 11:00 to 12:00 Dentist" in answer
        assert "23:00 to 23:30 Call \\*Bob\\*" in answer
        assert (await harness.say("/agenda")).text == "You have no events then."
        assert "isn't a time" in (await harness.say("/agenda banana")).text


async def test_agenda_is_the_owners_alone(home: Path) -> None:
    async with open_calendar(home, ScriptedModel()) as (harness, _):
        refusal = "I show the calendar only to my owner, in a direct chat."
        assert (await harness.say("/agenda tomorrow", "7")).text == refusal
        group: dict[str, Any] = {
            "is_direct": False,
            "address": Address(platform="telegram", chat_id="-5"),
            "scope": Scope.group("telegram", "-5"),
        }
        assert (await harness.say("/agenda tomorrow", **group)).text == refusal


async def test_model_reads_events_as_framed_text_and_only_for_the_owner(home: Path) -> None:
    model = ScriptedModel()
    async with open_calendar(home, model) as (harness, day):
        look = calls(("calendar", {"action": "list", "start": day}))
        model.script = [look, says("The dentist.")]
        await harness.say("What do I have tomorrow?")
        result = result_of(model.requests[-1])
        assert result.startswith("[Events of the calendar.")
        assert "Dentist" in result
        model.script = [look, says("I can't see that.")]
        await harness.say("What does the owner have tomorrow?", "7")
        assert "Only the owner" in result_of(model.requests[-1])


async def test_event_is_not_added_to_a_feed(home: Path) -> None:
    model = ScriptedModel()
    async with open_calendar(home, model) as (harness, day):
        add = calls(("calendar", {"action": "add", "start": f"{day}T09:00", "text": "Swim"}))
        model.script = [add, says("That isn't possible.")]
        await harness.say("Put Swim in my calendar, tomorrow at 9")
        assert "ICS feeds can only be read" in result_of(model.requests[-1])
