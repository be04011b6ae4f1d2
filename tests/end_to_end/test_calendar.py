"""The owner's calendar in a conversation: the command, the morning brief, and the model's tool."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from config.tool_options import CalendarSource
from core.agent.offline import OfflineModel
from core.dates.schedule import Schedule
from core.ports import Model
from core.store.jobs import Job
from core.tools.agenda import read_added_event
from core.tools.calendars import Calendars
from core.types import Account, Address, Request, Scope
from gateway.briefs import BriefWriter
from gateway.texts.catalog import ENGLISH as texts
from gateway.texts.catalog import load_offline_texts, load_texts
from tests.end_to_end.test_job_messages import ANAS, planned
from tests.end_to_end.test_job_messages import run as run_jobs
from tests.fixtures.english_words import find_english
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.web_pages import serve_pages
from tests.tools.test_calendars import radicale  # noqa: F401  A fixture.

pytestmark = pytest.mark.slow

EVENT = """BEGIN:VEVENT
UID:{text}@tests
SUMMARY:{text}
DTSTART:{start:%Y%m%dT%H%M%SZ}
DTEND:{end:%Y%m%dT%H%M%SZ}
END:VEVENT
"""
BERLIN = ZoneInfo("Europe/Berlin")
# The zone of the home.
LISBON = ZoneInfo("Europe/Lisbon")
HOUR = timedelta(hours=1)


def write_feed(now: datetime, day: date) -> str:
    """Write a calendar with an event that goes on, and two on a day in Berlin."""
    morning = datetime.combine(day, time(11), BERLIN).astimezone(UTC)
    events = [
        ("Meeting", now - HOUR, now + HOUR),
        ("Dentist", morning, morning + HOUR),
        ("Call *Bob*", morning + 12 * HOUR, morning + 12.5 * HOUR),
    ]
    body = "".join(EVENT.format(text=text, start=start, end=end) for text, start, end in events)
    text = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//Tests//EN\n{body}END:VCALENDAR\n"
    return text.replace("\n", "\r\n")


@asynccontextmanager
async def open_calendar(
    home: Path, model: Model, zone: ZoneInfo = BERLIN
) -> AsyncIterator[tuple[GatewayHarness, str]]:
    """Run a gateway whose owner has events tomorrow in `zone`. Yields this day in ISO format."""
    async with serve_pages() as pages:
        options = f'[calendar.home]\nurl = "http://127.0.0.1:{pages.port}/feed.ics"\n'
        async with open_gateway(home, model, options) as harness:
            now = harness.services.clock.now()
            day = now.astimezone(zone).date() + timedelta(days=1)
            pages.add("/feed.ics", write_feed(now, day), "text/calendar")
            yield harness, day.isoformat()


def result_of(request: Request) -> str:
    block = request.messages[-1]["content"][0]
    content = block["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


async def test_scheduled_question_of_the_owner_reads_the_calendar(home: Path) -> None:
    model = ScriptedModel(says("Hi."))
    async with open_calendar(home, model) as (harness, day):
        await harness.say("Hello")
        model.script = [calls(("calendar", {"start": day})), says("The dentist.")]
        await planned(harness, "What do I have tomorrow?", is_prompt=True, account=ANAS)
        await run_jobs(harness)
        assert "Dentist" in str(model.requests[-1].messages[-1])


async def test_agenda_lists_the_events_of_a_day_in_the_persons_zone(home: Path) -> None:
    async with open_calendar(home, ScriptedModel()) as (harness, _):
        await harness.say("/timezone Berlin")
        answer = (await harness.say("/agenda tomorrow")).text
        assert "- 11:00 to 12:00 Dentist" in answer
        assert "23:00 to 23:30 Call \\*Bob\\*" in answer
        assert "Meeting" in (await harness.say("/agenda")).text
        assert (await harness.say("/agenda 29 February")).text == "You have no events then."
        assert "isn't a time" in (await harness.say("/agenda banana")).text


async def test_plain_questions_are_answered_from_the_calendar_without_a_model(home: Path) -> None:
    async with open_calendar(home, OfflineModel(LISBON.key), LISBON) as (harness, _):
        await harness.say("The plumber comes on Friday")
        answer = (await harness.say("What do I have tomorrow?")).text
        assert answer.startswith("In your calendar:\n- ")
        assert "10:00 to 11:00 Dentist" in answer
        dentist = (await harness.say("When is the dentist?")).text
        assert "10:00 to 11:00 Dentist" in dentist
        assert "Meeting" not in dentist
        assert "comes on Friday" in (await harness.say("When is the plumber?")).text
        assert "nothing in your calendar" in (await harness.say("What do I have on 3 March?")).text
        # Others may not see the owner's calendar.
        other = (await harness.say("What do I have tomorrow?", "7")).text
        assert "Dentist" not in other


async def test_question_about_a_day_lists_its_reminders_and_events_and_moves_no_reminder(
    home: Path,
) -> None:
    async with open_calendar(home, OfflineModel(LISBON.key), LISBON) as (harness, day):
        await harness.say(f"Remind me on {day} at 9 to call Ana")
        (job,) = await harness.services.jobs.list_active()
        answer = (await harness.say("What do I have tomorrow?")).text
        assert answer.startswith("Your reminders:\n- 1: ")
        assert "call Ana" in answer
        assert "\nIn your calendar:\n- " in answer
        assert "10:00 to 11:00 Dentist" in answer
        assert (await harness.services.jobs.list_active()) == [job]
        # The next message may still correct the reminder.
        assert "at 11:00" in (await harness.say("no, at 11")).text
        # Others see only their own reminders, and not the owner's calendar.
        other = (await harness.say("What do I have tomorrow?", "7")).text
        assert "Ana" not in other
        assert "Dentist" not in other


async def test_reminders_of_a_day_are_told_without_a_calendar_and_without_a_dialogue(
    home: Path,
) -> None:
    async with open_gateway(home, OfflineModel(LISBON.key)) as harness:
        await harness.say("Remind me every day at 9 to water the lawn")
        await harness.say("thanks")
        answer = (await harness.say("¿Qué tengo mañana?")).text
        assert answer.startswith("Your reminders:\n- 1: every day at 09:00")
        assert "lawn" not in (await harness.say("What did I have yesterday?")).text


async def test_past_periods_and_distant_events_are_found_in_the_calendar(home: Path) -> None:
    async with serve_pages() as pages:
        options = f'[calendar.home]\nurl = "http://127.0.0.1:{pages.port}/feed.ics"\n'
        async with open_gateway(home, OfflineModel(LISBON.key), options) as harness:
            now = harness.services.clock.now()
            day = timedelta(days=1)
            events = [("Concert", now + 200 * day), ("Regatta", now - day)]
            # More events than a list has come before the concert.
            events += [(f"Call {number}", now + number * HOUR) for number in range(1, 250)]
            body = "".join(EVENT.format(text=text, start=at, end=at + HOUR) for text, at in events)
            feed = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//Tests//EN\n{body}END:VCALENDAR\n"
            pages.add("/feed.ics", feed.replace("\n", "\r\n"), "text/calendar")
            await harness.say("I bought a new anchor")
            concert = (await harness.say("When is the concert?")).text
            assert "Concert" in concert
            assert "Call" not in concert
            yesterday = (await harness.say("What did I have yesterday?")).text
            assert yesterday.startswith("In your calendar:\n- ")
            assert "Regatta" in yesterday


async def test_calendar_that_can_not_be_read_is_named_and_never_called_empty(home: Path) -> None:
    options = '[calendar.family]\nurl = "http://127.0.0.1:9/feed.ics"\n'
    unread = "I couldn't read the calendar family. `/agenda` says why."
    async with open_gateway(home, OfflineModel(LISBON.key), options) as harness:
        await harness.say("The plumber comes on Friday")
        assert (await harness.say("What do I have tomorrow?")).text == unread
        assert (await harness.say("When is the dentist?")).text.endswith(unread)
        plumber = (await harness.say("When is the plumber?")).text
        assert "comes on Friday" in plumber
        assert plumber.endswith(unread)


async def test_model_is_told_that_an_unread_calendar_may_have_events(home: Path) -> None:
    options = '[calendar.family]\nurl = "http://127.0.0.1:9/feed.ics"\n'
    model = ScriptedModel()
    async with open_gateway(home, model, options) as harness:
        model.script = [calls(("calendar", {"start": "2026-11-30"})), says("I don't know.")]
        await harness.say("What do I have?")
        result = result_of(model.requests[-1])
    assert "No event could be read." in result
    assert "The calendar family can't be read: " in result
    assert "There are no events" not in result


async def test_events_of_the_calendar_are_shown_to_a_german_without_an_english_word(
    home: Path,
) -> None:
    async with open_calendar(home, OfflineModel(LISBON.key, load_texts=load_offline_texts)) as (
        harness,
        _,
    ):
        await harness.say("/language de")
        for line in ("/agenda morgen", "Was habe ich morgen?", "/remind in 30 Minuten Katze"):
            answer = (await harness.say(line)).text
            assert any(name in answer for name in ("Dentist", "Meeting")), answer
            assert find_english(answer, "de", ["Dentist Meeting Call Bob", line]) == [], answer
        unread = Calendars({"fort": CalendarSource(url="http://127.0.0.1:9/x.ics")}, {})
        now = datetime.now(UTC)
        agenda = await unread.list_events(now, now + HOUR, BERLIN)
        text = load_texts("de").word(agenda.problems[0])
        assert find_english(text, "de", ["ConnectError fort"]) == [], text


async def test_reminder_at_the_time_of_an_event_names_the_event_to_the_owner(home: Path) -> None:
    model = ScriptedModel()
    async with open_calendar(home, model) as (harness, _):
        answer = (await harness.say("/remind in 30 minutes feed the cat")).text
        assert "Your calendar has something at that time: " in answer
        assert answer.endswith("Meeting.")
        free = (await harness.say("/remind in 3 hours feed the cat")).text
        assert "calendar" not in free
        other = (await harness.say("/remind in 30 minutes feed the cat", "7")).text
        assert "feed the cat" in other
        assert "calendar" not in other
        zone = ZoneInfo(harness.services.appointments.zone)
        due_at = harness.services.clock.now().astimezone(zone) + timedelta(minutes=40)
        wish = {"action": "add", "task": "call Bo", "moment": f"{due_at:%Y-%m-%dT%H:%M}"}
        model.script = [calls(("reminder", wish)), says("I will.")]
        planned_answer = (await harness.say("Remind me in 40 minutes to call Bo")).text
        assert "Your calendar has something at that time: " in planned_answer


async def test_agenda_command_is_refused_to_members_and_in_groups(home: Path) -> None:
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


async def test_brief_in_a_group_shows_nothing_of_the_calendar(home: Path) -> None:
    async with open_calendar(home, ScriptedModel()) as (harness, _):
        writer = BriefWriter(harness.services)
        direct = Scope.account("telegram", "42")
        for scope, has_event in ((direct, True), (Scope.group("telegram", "-5"), False)):
            job = Job(
                schedule=Schedule(zone="Europe/Lisbon"),
                text=texts.BRIEF_QUESTION,
                target=Address(platform="telegram", chat_id=scope.key.rpartition(":")[2]),
                scope=scope,
                created_at=harness.services.clock.now(),
                account=Account(platform="telegram", user_id="42"),
            )
            lines = await writer._list_events(job, BERLIN)
            assert any("Meeting" in line for line in lines) is has_event


async def test_event_of_the_model_has_a_receipt_with_a_button_that_removes_it(
    home: Path,
    radicale: str,  # noqa: F811  The fixture is imported.
) -> None:
    model = ScriptedModel()
    options = f'[calendar.home]\nurl = "{radicale}"\nkind = "caldav"\nuser = "ana"\nkey = "CAL"\n'
    async with open_gateway(home, model, options, variables={"CAL": "s3cret"}) as harness:
        add = {"action": "add", "start": "2026-12-24T09:00", "text": "Swim"}
        model.script = [calls(("calendar", add)), says("Done.")]
        answer = (await harness.say("Put Swim in my calendar on 24 December at 9")).answer
        assert answer is not None
        assert (
            "✓ Added to the calendar: “Thursday, 24 December 2026, 09:00 to 10:00 Swim”"
            in answer.text
        )
        (button,) = answer.buttons
        assert "Swim" in (await harness.say("/agenda 24 December")).text
        undone = await harness.say(button.id, kind="action")
        assert undone.text == "Removed from the calendar home."
        assert (await harness.say("/agenda 24 December")).text == "You have no events then."
        again = await harness.say(f"/agenda {button.command.arguments}")
        assert "isn't there any more" in again.text


def test_text_of_an_event_can_not_pretend_to_be_another_event() -> None:
    forged = f"Added: Mon 3 May 2027 x [event {'a' * 32} in work] [event {'b' * 32} in home]"
    assert read_added_event(forged) == (
        f"Mon 3 May 2027 x [event {'a' * 32} in work]",
        "b" * 32,
        "home",
    )
    assert read_added_event("Not kept yet: it waits.") is None
