"""The model's face of appointments: what it may say, what it reads, and what it is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from core.agent.tool_runner import NOT_DONE, STILL_WAITING, ToolRunner
from core.dates.schedule import ParsedSchedule, Schedule
from core.errors import Refused, ToolError
from core.facts.evidence import EvidenceSearch
from core.guard.foreign_texts import CALENDAR_FILE_MARK
from core.review.pending import Review
from core.review.transcript import TranscriptReader
from core.review.wish_judge import WishJudge
from core.scheduling.appointments import Appointments
from core.scheduling.tool import read_choices, reminder_tool
from core.store.jobs import CALENDAR_FILE_ORIGIN, Jobs
from core.store.notes import MAX_PENDING, Notes
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.store.visibility import scope_parameter
from core.types import (
    MEMORY_TAG,
    Account,
    Address,
    Command,
    ErasureEpoch,
    Message,
    Scope,
    Sender,
    Session,
    Tool,
    ToolCallKey,
    ToolContext,
)
from tests.fixtures.clock import SteadyClock
from tests.fixtures.scheduler_harness import at_any_time
from tests.fixtures.scripted_model import ScriptedModel, says

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
    lines = ("remind me to call Bob", "and to call Eve", "tell me the news")
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
def conversations(database: Database, clock: SteadyClock) -> Conversations:
    return Conversations(database, clock)


@pytest.fixture
def tool(appointments: Appointments, conversations: Conversations, review: Review) -> Tool:
    evidence = EvidenceSearch(conversations)

    async def ask(reading: ParsedSchedule, context: ToolContext, origin: str | None) -> str:
        return f"Do you mean {appointments.format_exact_line(reading, 'Europe/Lisbon')}?"

    return reminder_tool(appointments, TranscriptReader(conversations), evidence, review, ask)


def test_reminder_tool_schema_lists_exactly_the_arguments_it_accepts(tool: Tool) -> None:
    assert tool.name == "reminder"
    assert set(tool.schema["properties"]) == {
        *("action", "moment", "recurrence", "zone", "kind", "task", "job_id")
    }
    assert tool.schema["properties"]["kind"]["enum"] == ["reminder", "question", "watch"]
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


async def test_reminder_tool_adds_lists_pauses_resumes_and_removes_a_reminder(
    tool: Tool, appointments: Appointments, context: ToolContext
) -> None:
    said = await tool.run(
        {"action": "add", "moment": "2026-11-21T09:00", "task": "call Bob"}, context
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


async def test_list_marks_reminders_from_a_calendar_file(
    tool: Tool, appointments: Appointments, context: ToolContext
) -> None:
    await tool.run({"action": "add", "moment": "2026-11-21T09:00", "task": "call Bob"}, context)
    (job,) = await appointments.jobs.list_visible(context.scopes)
    reading = ParsedSchedule(schedule=job.schedule, text="call Eve", is_certain=True)
    await appointments.add_job(
        reading, CHAT, ANA, account=job.account, origin=f"{CALENDAR_FILE_ORIGIN}1"
    )
    lines = str(await tool.run({"action": "list"}, context)).splitlines()
    marks = {line.endswith(CALENDAR_FILE_MARK): line for line in lines}
    assert "call Eve" in marks[True]
    assert "call Bob" in marks[False]


async def test_tool_adds_a_repeated_question_with_its_recurrence(
    tool: Tool, appointments: Appointments, context: ToolContext
) -> None:
    await tool.run(
        {
            "action": "add",
            "recurrence": "FREQ=DAILY",
            "moment": "2026-11-21T09:00",
            "task": "tell me the news",
            "kind": "question",
        },
        context,
    )
    (job,) = await appointments.jobs.list_visible(context.scopes)
    assert (job.is_prompt, job.is_watch) == (True, False)
    assert job.schedule.recurrences == (
        "DTSTART;TZID=Europe/Lisbon:20261121T090000\nRRULE:FREQ=DAILY",
    )


async def test_watch_job_tells_the_model_to_answer_only_if_something_is_new(
    tool: Tool, appointments: Appointments, context: ToolContext
) -> None:
    wish = {"action": "add", "recurrence": "FREQ=DAILY", "moment": "2026-11-21T09:00"}
    await tool.run({**wish, "task": "tell me the news", "kind": "watch"}, context)
    (job,) = await appointments.jobs.list_visible(context.scopes)
    assert (job.is_watch, job.text) == (True, "Tell me only if something is new: tell me the news")


async def test_reminder_with_a_time_zone_of_its_own_is_scheduled_in_that_zone(
    tool: Tool, appointments: Appointments, context: ToolContext
) -> None:
    wish = {"action": "add", "moment": "2026-11-21T09:00", "zone": "America/New_York"}
    await tool.run({**wish, "task": "call Bob"}, context)
    (job,) = await appointments.jobs.list_visible(context.scopes)
    assert job.schedule == Schedule(
        zone="America/New_York", at=datetime(2026, 11, 21, 14, tzinfo=UTC)
    )


BOB = "call Bob"
ONCE = {"action": "add", "moment": "2026-11-21T10:00", "task": BOB}
WEEKLY = {**ONCE, "moment": "2026-11-23T10:00", "recurrence": "FREQ=WEEKLY;BYDAY=MO"}


@pytest.mark.parametrize(
    ("typed", "wish", "lines"),
    [
        (f"remind me tomorrow at 11 to {BOB}", ONCE, ["2026-11-21 11:00", "2026-11-21 10:00"]),
        ("no, at 11", ONCE, ["2026-11-21 11:00", "2026-11-21 10:00"]),
        (f"erinnere mich am Sonntag an {BOB}", ONCE, ["2026-11-22 10:00", "2026-11-21 10:00"]),
        (f"remind me in 20 minutes to {BOB}", ONCE, ["2026-11-20 12:20", "2026-11-21 10:00"]),
        (
            f"every Monday at 10 remind me to {BOB}",
            {**ONCE, "moment": "2026-11-23T10:00"},
            [
                "DTSTART;TZID=Europe/Lisbon:20261121T100000 RRULE:FREQ=WEEKLY;BYDAY=MO",
                "2026-11-23 10:00",
            ],
        ),
        (
            "at 11 please",
            WEEKLY,
            [
                "DTSTART;TZID=Europe/Lisbon:20261123T110000 RRULE:FREQ=WEEKLY;BYDAY=MO",
                "DTSTART;TZID=Europe/Lisbon:20261123T100000 RRULE:FREQ=WEEKLY;BYDAY=MO",
            ],
        ),
    ],
)
async def test_time_that_differs_from_the_persons_words_is_asked_about(
    tool: Tool,
    appointments: Appointments,
    context: ToolContext,
    conversations: Conversations,
    typed: str,
    wish: dict[str, str],
    lines: list[str],
) -> None:
    context = await _say(typed, context, conversations)
    result = await tool.run(wish, context)
    choices = [Command(name="remind", arguments=f"{line} | {BOB}") for line in lines]
    assert read_choices(result) == choices
    assert await appointments.jobs.list_visible(context.scopes) == []


async def test_date_in_digits_is_compared_in_the_order_of_the_persons_language(
    tool: Tool, appointments: Appointments, context: ToolContext, conversations: Conversations
) -> None:
    context = replace(await _say("3/5 10:00", context, conversations), language="ja")
    wish = {**ONCE, "moment": "2027-03-05T10:00"}

    result = await tool.run(wish, context)

    assert read_choices(result) == []
    assert len(await appointments.jobs.list_visible(context.scopes)) == 1


@pytest.mark.parametrize(
    ("typed", "wish"),
    [
        (f"remind me tomorrow at 10 to {BOB}", ONCE),
        ("at 10", ONCE),
        ("tomorrow", ONCE),
        ("tomorrow morning", ONCE),
        ("I don't know, you choose", ONCE),
        (f"明天上午10点提醒我{BOB}", ONCE),
        (f"remind me in 20 minutes to {BOB}", {**ONCE, "moment": "2026-11-20T12:21"}),
        (f"remind me every Monday at 10 to {BOB}", WEEKLY),
        ("at 10", WEEKLY),
        (
            f"every other day at 9 {BOB}",
            {**ONCE, "moment": "2026-11-22T09:00", "recurrence": "FREQ=DAILY;INTERVAL=2"},
        ),
        (f"{BOB} every 90 minutes", {**ONCE, "recurrence": "FREQ=MINUTELY;INTERVAL=90"}),
    ],
)
async def test_time_that_agrees_with_the_persons_words_is_set_at_once(
    tool: Tool,
    context: ToolContext,
    conversations: Conversations,
    typed: str,
    wish: dict[str, str],
) -> None:
    context = await _say(typed, context, conversations)
    assert (await tool.run(wish, context)).startswith("Reminder 1 is set for")


async def _say(text: str, context: ToolContext, conversations: Conversations) -> ToolContext:
    """Let the assistant answer and Ana write, so that only this message counts as typed now."""
    session_id = context.session.id
    now = context.now
    answer = Message(role="assistant", text="I see.", session_id=session_id, created_at=now)
    message = Message(
        role="user", text=text, session_id=session_id, created_at=now, sender=context.sender
    )
    await conversations.append([answer, message])
    return context


async def test_reminder_tool_parses_a_whole_line_and_asks_about_an_ambiguous_time(
    tool: Tool, appointments: Appointments, context: ToolContext
) -> None:
    """As the offline answer passes it on: what leaves a doubt is asked about."""
    said = await tool.run({"action": "add", "task": "to call Bob tomorrow at 9"}, context)
    assert (
        said
        == "Reminder 1 is set for Saturday 21 November 2026 at 09:00 (Europe/Lisbon): “call Bob”."
    )
    said = await tool.run({"action": "add", "task": "to call Bob at 5"}, context)
    assert said == "Do you mean 2026-11-20 17:00 | call Bob?"
    assert len(await appointments.jobs.list_visible(context.scopes)) == 1


async def test_repeated_reminder_call_of_one_turn_creates_no_second_reminder(
    tool: Tool, appointments: Appointments, context: ToolContext
) -> None:
    wish = {"action": "add", "moment": "2026-11-21T09:00", "task": "call Bob"}
    first = await tool.run(wish, context)
    assert await tool.run(wish, context) == first
    await tool.run({**wish, "task": "call Eve"}, context)
    await tool.run(wish, replace(context, message_id=6))
    assert len(await appointments.jobs.list_visible(context.scopes)) == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "action: Field required"),
        ({"action": "explode"}, "action: Input should be"),
        ({"action": "list", "colour": "red"}, "colour: Extra inputs"),
        ({"action": "add", "task": "call"}, "needs moment, recurrence or both"),
        ({"action": "add", "moment": "2026-11-21T09:00"}, "needs task"),
        ({**ONCE, "task": "x" * 2001}, "A reminder can have 2,000"),
        ({**ONCE, "moment": "someday"}, "moment: String should match"),
        ({**ONCE, "moment": "2026-02-30T09:00"}, "isn't a date that exists"),
        ({**ONCE, "moment": "2026-11-19T09:00"}, "is in the past"),
        ({**ONCE, "recurrence": "FREQ=SECONDLY"}, "recurrence: String should match"),
        ({**ONCE, "recurrence": "FREQ=DAILY;COUNT=x"}, "recurrence: String should match"),
        (
            {**ONCE, "recurrence": "FREQ=DAILY;BYMONTH=77"},
            "BYMONTH of a recurrence must be between",
        ),
        ({**ONCE, "recurrence": "FREQ=DAILY;UNTIL=20261101T000000Z"}, "no time in the future"),
        ({"action": "add", "task": "call", "recurrence": "FREQ=DAILY"}, "needs moment, its first"),
        ({**ONCE, "zone": "Atlantis"}, "isn't one time zone"),
        ({**ONCE, "kind": "order"}, "kind: Input should be"),
        ({"action": "remove"}, "needs job_id"),
        ({"action": "remove", "job_id": "seven"}, "job_id: Input should be"),
        ({"action": "remove", "job_id": 7}, "There is no reminder 7 here."),
    ],
)
async def test_tool_refuses_wrong_arguments_with_a_sentence(
    tool: Tool, context: ToolContext, arguments: dict[str, object], sentence: str
) -> None:
    with pytest.raises((Refused, ToolError)) as refusal:
        await tool.run(arguments, context)
    assert sentence in str(refusal.value)


async def test_reminder_is_neither_listed_nor_removed_for_another_person(
    tool: Tool, context: ToolContext
) -> None:
    await tool.run(ONCE, context)
    bob = Scope.account("telegram", "43")
    stranger = replace(context, scope=bob, scopes=frozenset((bob,)))
    assert await tool.run({"action": "list"}, stranger) == "There are no reminders here."
    with pytest.raises((Refused, ToolError), match="There is no reminder 1 here"):
        await tool.run({"action": "remove", "job_id": 1}, stranger)


async def test_scheduled_session_cannot_set_a_reminder_but_may_remove_its_own(
    tool: Tool, context: ToolContext
) -> None:
    await tool.run(
        {
            "action": "add",
            "recurrence": "FREQ=DAILY;BYHOUR=9;BYMINUTE=0",
            "task": "tell me the news",
            "kind": "question",
        },
        context,
    )
    inside = replace(
        context, session=replace(context.session, address=Address(platform="cron", chat_id="1"))
    )
    with pytest.raises((Refused, ToolError), match="can't set reminders"):
        await tool.run({**ONCE, "task": "again"}, inside)
    assert "Removed" in await tool.run({"action": "remove", "job_id": 1}, inside)


async def test_reminder_of_an_anonymous_sender_waits_without_an_account(
    tool: Tool, review: Review, context: ToolContext
) -> None:
    webhook = replace(context, sender=Sender(id="1", name="hook", is_anonymous=True))
    await tool.run({**ONCE, "task": "call"}, webhook)
    # What the others said doesn't count as typed by the webhook, so the job waits.
    (pending,) = await review.list_pending(context.scopes)
    assert pending.account is None


async def test_a_reminder_that_waits_is_not_called_done_after_a_restart(
    tool: Tool, review: Review, conversations: Conversations, context: ToolContext
) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "reminder", "input": {}}
    session = context.session
    epoch = ErasureEpoch(
        scope_parameter(context.scopes), 0, ToolCallKey(session.id, str(call["id"]))
    )
    webhook = replace(context, sender=Sender(id="1", name="hook", is_anonymous=True), epoch=epoch)
    await tool.run({**ONCE, "task": "call"}, webhook)
    assert len(await review.list_pending(context.scopes)) == 1
    outcomes = await conversations.load_call_outcomes(session.id)
    (row,) = ToolRunner([], 1.0).build_missing_results([call], outcomes, session, context.now)
    assert row.text == STILL_WAITING


async def test_reminder_call_refused_by_a_full_approval_queue_is_reported_not_done_after_restart(
    tool: Tool, review: Review, conversations: Conversations, context: ToolContext
) -> None:
    session = context.session
    webhook = replace(context, sender=Sender(id="1", name="hook", is_anonymous=True))
    for number in range(MAX_PENDING):
        await tool.run({**ONCE, "task": f"call number {number}"}, webhook)
    call = {"type": "tool_use", "id": "toolu_1", "name": "reminder", "input": {}}
    epoch = ErasureEpoch(
        scope_parameter(context.scopes), 0, ToolCallKey(session.id, str(call["id"]))
    )
    with pytest.raises(Refused, match="too many changes wait already"):
        await tool.run({**ONCE, "task": "one too many"}, replace(webhook, epoch=epoch))
    outcomes = await conversations.load_call_outcomes(session.id)
    (row,) = ToolRunner([], 1.0).build_missing_results([call], outcomes, session, context.now)
    assert row.text == NOT_DONE


async def test_a_reminder_with_a_code_is_set_at_once_though_an_answer_was_recalled(
    tool: Tool, review: Review, conversations: Conversations, context: ToolContext
) -> None:
    session = context.session
    recalled = "- m8 20 November 2026, “Flights”: you: LH400 leaves at 11."
    row = Message(
        role="user",
        text="Remind me tomorrow at 9 to check in for flight LH400",
        session_id=session.id,
        created_at=context.now,
        sender=context.sender,
        sent_blocks=(
            {"type": "text", "text": f"{MEMORY_TAG}\n{recalled}\n</memory-context>"},
            {"type": "text", "text": "Remind me tomorrow at 9 to check in for flight LH400"},
        ),
    )
    answer = replace(row, role="assistant", text="All set.", sender=None, sent_blocks=None)
    await conversations.append([answer, row])
    arguments = {"action": "add", "moment": "2026-11-21T09:00"}
    arguments |= {"task": "check in for flight LH400"}
    assert "is set" in await tool.run(arguments, replace(context, message_id=row.id))
    assert await review.list_pending(context.scopes) == []


async def test_reminder_that_may_be_another_persons_wish_waits_for_approval(
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

    wanted = {
        "action": "add",
        "moment": "2026-11-21T09:00",
        "task": "pay the plumber 300 EUR",
    }
    await say("remind me tomorrow to water the plants")
    assert "is set" in await tool.run({**wanted, "task": "call Eve"}, context)
    asked = await tool.run({**wanted, "task": "see the dentist"}, context)
    assert asked == "Do you mean 2026-11-21 09:00 | see the dentist?", (
        "these are the model's own words"
    )
    await say("Pay the plumber 300 EUR, says Bob.", origin="forwarded")
    await say("It is a bill.", role="assistant")
    await say("remind me tomorrow at 9 to water the plants", sender=context.sender)
    assert "is set" in await tool.run(
        {**wanted, "task": "water the plants"}, replace(context, message_id=6)
    )
    said = await tool.run({**wanted, "kind": "question"}, context)
    assert said.startswith("Not kept yet: no one here has typed")
    (pending,) = await review.list_pending(context.scopes)
    assert len(await appointments.jobs.list_visible(context.scopes)) == 2
    receipt = await appointments.approve(pending)
    assert receipt == (
        "Scheduled question 3 is set for Saturday 21 November 2026 at 09:00 (Europe/Lisbon): “pay the plumber 300 EUR”."
    )
    assert await appointments.approve(pending) == receipt, "approved twice it is one"


async def test_each_of_several_requests_that_are_answered_together_is_set_at_its_own_time(
    tool: Tool,
    appointments: Appointments,
    review: Review,
    conversations: Conversations,
    context: ToolContext,
) -> None:
    mail = Message(
        role="user",
        text="Pay the plumber 300 EUR, says Bob.",
        origin="forwarded",
        session_id=context.session.id,
        created_at=context.now,
    )
    answer = replace(mail, role="assistant", text="It is a bill.", origin="typed")
    wish = replace(mail, origin="typed", sender=context.sender)
    texts = ("remind me tomorrow at 9 to buy tea", "remind me tomorrow at 11 to call Bob")
    await conversations.append([mail, answer, *(replace(wish, text=text) for text in texts)])
    for moment, task in (("2026-11-21T09:00", "buy tea"), ("2026-11-21T11:00", "call Bob")):
        call = {"action": "add", "moment": moment, "task": task}
        assert "is set" in await tool.run(call, context)
    assert len(await appointments.jobs.list_visible(context.scopes)) == 2
    # The words of one request with the time of the other aren't what was typed.
    swapped = {"action": "add", "moment": "2026-11-21T11:00", "task": "buy tea"}
    assert "Not kept yet" in await tool.run(swapped, context)
    assert len(await review.list_pending(context.scopes)) == 1


@pytest.mark.parametrize(
    ("typed", "wish", "is_set"),
    [
        ("remind me in 20 minutes to call Bob", {"moment": "2026-11-20T12:21"}, True),
        ("remind me in 20 minutes to call Bob", {"moment": "2026-11-20T12:22"}, False),
        ("remind me tomorrow at 9 to call Bob", {"moment": "2026-11-21T09:01"}, False),
        (
            "remind me every 2 hours to call Bob",
            {"moment": "2026-11-20T13:00", "recurrence": "FREQ=HOURLY;INTERVAL=2"},
            True,
        ),
        (
            "remind me every 2 hours to call Bob",
            {"moment": "2031-11-20T13:00", "recurrence": "FREQ=HOURLY;INTERVAL=2"},
            False,
        ),
        ("remind me tomorrow at 9 to take 1.5 mg", {"task": "take 1.5 mg"}, True),
        ("remind me tomorrow at 9 to take 1.5 mg", {"task": "take 1 5 mg"}, False),
        ("remind me tomorrow at 9 to pay 40 €", {"task": "pay 40 $"}, False),
        ("recuérdame mañana a las 9 llamar a papá", {"task": "llamar a papa"}, False),
        ("remind me what Bob said tomorrow at 9", {"task": "what Bob said"}, False),
        ("remind me tomorrow at 9 to pay Eve, nice try", {"task": "pay Eve, nice try"}, False),
        (
            "remind me every 2 hours to call Bob",
            {"moment": "2026-11-21T11:00", "recurrence": "FREQ=HOURLY;INTERVAL=2"},
            False,
        ),
    ],
)
async def test_after_a_forward_a_request_sets_one_reminder_with_its_time_and_its_words(
    tool: Tool,
    appointments: Appointments,
    conversations: Conversations,
    context: ToolContext,
    typed: str,
    wish: dict[str, str],
    is_set: bool,
) -> None:
    mail = Message(
        role="user",
        text="Water every plant of the office, says Eve.",
        origin="forwarded",
        session_id=context.session.id,
        created_at=context.now,
    )
    answer = replace(mail, role="assistant", text="It is a mail.", origin="typed")
    request = replace(mail, text=typed, origin="typed", sender=context.sender)
    await conversations.append([mail, answer, request])
    call = {"action": "add", "moment": "2026-11-21T09:00", "task": "call Bob", **wish}
    result = await tool.run(call, context)
    assert ("is set" in result) is is_set
    if is_set:
        # Another call for the same request repeats the reminder, and sets no second one.
        assert await tool.run({**call, "task": f"to {call['task']}"}, context) == result
    assert len(await appointments.jobs.list_visible(context.scopes)) == int(is_set)


@pytest.mark.parametrize(("verdict", "is_set"), [("yes", True), ("no", False), ("unclear", False)])
async def test_reminder_in_free_words_is_set_if_the_helper_model_confirms_the_request(
    appointments: Appointments,
    review: Review,
    conversations: Conversations,
    context: ToolContext,
    verdict: str,
    is_set: bool,
) -> None:
    mail = Message(
        role="user",
        text="Water every plant of the office, says Bob.",
        origin="forwarded",
        session_id=context.session.id,
        created_at=context.now,
    )
    answer = replace(mail, role="assistant", text="It is a mail.", origin="typed")
    typed = "Mondays at 9 I have to send in my hours, can you poke me?"
    wish = replace(mail, text=typed, origin="typed", sender=context.sender)
    await conversations.append([mail, answer, wish])

    async def ask(reading: ParsedSchedule, context: ToolContext, origin: str | None) -> str:
        raise AssertionError("nobody is asked about the time")

    helper = ScriptedModel(says(f'{{"asks": "{verdict}"}}'))
    tool = reminder_tool(
        appointments,
        TranscriptReader(conversations),
        EvidenceSearch(conversations),
        review,
        ask,
        WishJudge(helper, "small"),
    )
    weekly = "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9;BYMINUTE=0"
    call = {"action": "add", "recurrence": weekly, "task": "send in your hours"}
    assert ("is set" in await tool.run(call, context)) is is_set
    assert bool(await review.list_pending(context.scopes)) is not is_set
    assert "send in your hours" in helper.sent()
