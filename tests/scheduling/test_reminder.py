"""The model's face of appointments: what it may say, what it reads, and what it is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.dates.schedule import ParsedSchedule
from core.errors import Refused, ToolError
from core.facts.evidence import EvidenceSearch
from core.review.pending import Review
from core.scheduling.appointments import Appointments, reminder_tool
from core.store.jobs import Jobs
from core.store.notes import Notes
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.types import Account, Address, Message, Scope, Sender, Session, Tool, ToolContext
from tests.fixtures.clock import SteadyClock
from tests.fixtures.scheduler_harness import at_any_time

ANA = Scope.account("telegram", "42")
CHAT = Address(platform="telegram", chat_id="42")


@pytest.fixture
async def context(database: Database, clock: SteadyClock) -> ToolContext:
    """In which Ana has asked for what is planned here."""
    conversations = Conversations(database, clock)
    session = await conversations.create(Session(address=CHAT, scope=ANA, started_at=clock.now()))
    sender = Sender(id="42", name="Ana")
    asked = Message(
        role="user", text="", session_id=session.id, created_at=clock.now(), sender=sender
    )
    lines = ("remind me to call Bob", "and to call Eve", "every day tell me the news")
    await conversations.append([replace(asked, text=line) for line in lines])
    return ToolContext(
        session=session,
        scope=ANA,
        scopes=frozenset((ANA,)),
        sender=sender,
        now=clock.now(),
        message_id=5,
    )


@pytest.fixture
def appointments(database: Database, clock: SteadyClock) -> Appointments:
    return Appointments(Jobs(database), clock, "Europe/Lisbon", lambda: None, at_any_time)


@pytest.fixture
def review(database: Database, clock: SteadyClock) -> Review:
    return Review(Notes(database), clock)


@pytest.fixture
def tool(
    appointments: Appointments, database: Database, clock: SteadyClock, review: Review
) -> Tool:
    conversations = Conversations(database, clock)
    evidence = EvidenceSearch(conversations)

    async def ask(reading: ParsedSchedule, context: ToolContext, origin: str | None) -> str:
        return f"Do you mean {appointments.format_exact_line(reading)}?"

    return reminder_tool(appointments, conversations, evidence, review, ask)


def test_the_schema_is_the_one_arguments_are_read_with(tool: Tool) -> None:
    assert tool.name == "reminder"
    assert set(tool.schema["properties"]) == {"action", "when", "text", "job_id", "is_prompt"}
    assert tool.schema["required"] == ["action"]
    assert tool.schema["additionalProperties"] is False
    assert tool.schema["properties"]["action"]["enum"] == [
        "add",
        "list",
        "pause",
        "resume",
        "remove",
    ]
    assert not tool.is_quote


async def test_set_list_pause_resume_remove(
    tool: Tool, appointments: Appointments, context: ToolContext
) -> None:
    said = await tool.run(
        {"action": "add", "when": "tomorrow at 09:00", "text": "call Bob"}, context
    )
    assert (
        said
        == "Reminder 1 is set for Saturday 21 November 2026 at 09:00 (Europe/Lisbon): “call Bob”."
    )
    (job,) = await appointments.jobs.list_visible(context.scopes)
    assert (job.target, job.scope, job.account) == (
        CHAT,
        ANA,
        Account(platform="telegram", user_id="42"),
    )
    assert (
        await tool.run({"action": "list"}, context)
        == "1: Saturday 21 November 2026 at 09:00: call Bob"
    )
    assert "Paused" in await tool.run({"action": "pause", "job_id": 1}, context)
    assert "[paused]" in await tool.run({"action": "list"}, context)
    assert "Resumed" in await tool.run({"action": "resume", "job_id": "1"}, context)
    assert "Removed" in await tool.run({"action": "remove", "job_id": 1}, context)
    assert await tool.run({"action": "list"}, context) == "There are no reminders here."


async def test_a_prompt(tool: Tool, appointments: Appointments, context: ToolContext) -> None:
    await tool.run(
        {"action": "add", "when": "0 9 * * 1-5", "text": "tell me the news", "is_prompt": True},
        context,
    )
    (job,) = await appointments.jobs.list_visible(context.scopes)
    assert (job.is_prompt, job.schedule.cron) == (True, "0 9 * * 1-5")


async def test_a_doubt_is_said(tool: Tool, context: ToolContext) -> None:
    said = await tool.run({"action": "add", "when": "at 5", "text": "call Bob"}, context)
    assert said.startswith(
        "Reminder 1 is set for Friday 20 November 2026 at 17:00 (Europe/Lisbon): “call Bob”."
    )
    assert "The time is ambiguous" in said


async def test_a_whole_line(tool: Tool, appointments: Appointments, context: ToolContext) -> None:
    """As the offline answer passes it on: what leaves a doubt is asked about."""
    said = await tool.run(
        {"action": "add", "when": "to call Bob tomorrow at 9", "text": ""}, context
    )
    assert (
        said
        == "Reminder 1 is set for Saturday 21 November 2026 at 09:00 (Europe/Lisbon): “call Bob”."
    )
    said = await tool.run({"action": "add", "when": "to call Bob at 5", "text": ""}, context)
    assert said == "Do you mean 2026-11-20 17:00 | call Bob?"
    assert len(await appointments.jobs.list_visible(context.scopes)) == 1


async def test_a_turn_done_again_makes_no_second_one(
    tool: Tool, appointments: Appointments, context: ToolContext
) -> None:
    wish = {"action": "add", "when": "tomorrow at 9", "text": "call Bob"}
    first = await tool.run(wish, context)
    assert await tool.run(wish, context) == first
    await tool.run({**wish, "text": "call Eve"}, context)
    await tool.run(wish, replace(context, message_id=6))
    assert len(await appointments.jobs.list_visible(context.scopes)) == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "action: Field required"),
        ({"action": "explode"}, "action: Input should be"),
        ({"action": "list", "colour": "red"}, "colour: Extra inputs"),
        ({"action": "add", "text": "call"}, "needs when"),
        (
            {"action": "add", "when": "tomorrow at 9", "text": "x" * 2001},
            "A reminder can have 2,000",
        ),
        ({"action": "add", "when": "someday", "text": "call"}, "find a time in that"),
        ({"action": "add", "when": "yesterday at 9", "text": "call"}, "is in the past"),
        ({"action": "add", "when": "every 10 seconds", "text": "call"}, "Once a minute"),
        ({"action": "remove"}, "needs job_id"),
        ({"action": "remove", "job_id": "seven"}, "job_id: Input should be"),
        ({"action": "remove", "job_id": 7}, "There is no reminder 7 here."),
    ],
)
async def test_refused(
    tool: Tool, context: ToolContext, arguments: dict[str, object], sentence: str
) -> None:
    with pytest.raises((Refused, ToolError)) as refusal:
        await tool.run(arguments, context)
    assert sentence in str(refusal.value)


async def test_somebody_else_sees_nothing(tool: Tool, context: ToolContext) -> None:
    await tool.run({"action": "add", "when": "tomorrow at 9", "text": "call Bob"}, context)
    bob = Scope.account("telegram", "43")
    stranger = replace(context, scope=bob, scopes=frozenset((bob,)))
    assert await tool.run({"action": "list"}, stranger) == "There are no reminders here."
    with pytest.raises((Refused, ToolError), match="There is no reminder 1 here"):
        await tool.run({"action": "remove", "job_id": 1}, stranger)


async def test_a_scheduled_session_makes_none_but_may_end_its_own(
    tool: Tool, context: ToolContext
) -> None:
    await tool.run(
        {"action": "add", "when": "every day at 9", "text": "tell me the news", "is_prompt": True},
        context,
    )
    inside = replace(
        context, session=replace(context.session, address=Address(platform="cron", chat_id="1"))
    )
    with pytest.raises((Refused, ToolError), match="can't set reminders"):
        await tool.run({"action": "add", "when": "in 5 minutes", "text": "again"}, inside)
    assert "Removed" in await tool.run({"action": "remove", "job_id": 1}, inside)


async def test_nobody_is_no_account(tool: Tool, review: Review, context: ToolContext) -> None:
    webhook = replace(context, sender=Sender(id="1", name="hook", is_anonymous=True))
    await tool.run({"action": "add", "when": "tomorrow at 9", "text": "call"}, webhook)
    # What the others said doesn't count as typed by the webhook, so the job waits.
    (pending,) = await review.list_pending(context.scopes)
    assert pending.account is None


async def test_what_may_be_somebody_elses_waits_for_a_yes(
    tool: Tool,
    appointments: Appointments,
    review: Review,
    context: ToolContext,
    database: Database,
    clock: SteadyClock,
) -> None:
    conversations, session = Conversations(database, clock), context.session

    async def say(text: str, **more: Any) -> None:
        row = Message(role="user", text=text, session_id=session.id, created_at=clock.now())
        await conversations.append([replace(row, **more)])

    wanted = {"action": "add", "when": "tomorrow at 9", "text": "pay the plumber 300 EUR"}
    await say("remind me tomorrow to water the plants")
    assert "is set" in await tool.run({**wanted, "text": "call Eve"}, context)
    asked = await tool.run({**wanted, "text": "see the dentist"}, context)
    assert asked == "Do you mean 2026-11-21 09:00 | see the dentist?", (
        "these are the model's own words"
    )
    await say("Pay the plumber 300 EUR, says Bob.", origin="forwarded")
    await say("It is a bill.", role="assistant")
    await say("remind me tomorrow at 9 to water the plants", sender=context.sender)
    assert "is set" in await tool.run(
        {**wanted, "text": "water the plants"}, replace(context, message_id=6)
    )
    said = await tool.run({**wanted, "is_prompt": True}, context)
    assert said.startswith("Not kept yet: no one here has typed")
    (pending,) = await review.list_pending(context.scopes)
    assert len(await appointments.jobs.list_visible(context.scopes)) == 2
    receipt = await appointments.approve(pending)
    assert receipt == (
        "Scheduled question 3 is set for Saturday 21 November 2026 at 09:00 (Europe/Lisbon): “pay the plumber 300 EUR”."
    )
    assert await appointments.approve(pending) == receipt, "approved twice it is one"
