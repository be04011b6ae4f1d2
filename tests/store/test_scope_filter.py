"""The one scope predicate, and every reading method of the nouns tried by the wrong person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from core.dates.schedule import Schedule
from core.store.engine import Database
from core.store.incognito import IncognitoRegistry
from core.store.jobs import Job, JobMessages, Jobs
from core.store.mailbox import Outbox, OutboxItem
from core.store.messages import load_answer_seconds
from core.store.notes import Author, NoteChange, Notes, Operation, PendingNote
from core.store.ownership.people import People
from core.store.sessions import Conversations
from core.store.usage_limits import ModelCall, UsageLog
from core.store.visibility import scope_parameter, visible
from core.types import Address, Answer, BillingScope, Message, Scope, Session, Usage
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import ANA, BOB, CHAT, NOON, inbound, message, opened

Scopes = frozenset[Scope]

YESTERDAY = NOON - timedelta(days=1)
WRONG: dict[str, Scopes] = {
    "nobody": frozenset(),
    "another account": frozenset((BOB,)),
    "the same number on another platform": frozenset((Scope.account("discord", "42"),)),
    "a room of the same number": frozenset((Scope.group("telegram", "42"),)),
    "a prefix": frozenset((Scope(key="account:telegram:4"),)),
    "a longer key": frozenset(
        (Scope(key="account:telegram:421"), Scope(key="account:telegram:42 "))
    ),
    "a NUL behind the key": frozenset(
        (Scope(key="account:telegram:42\0"), Scope(key="account:telegram:42\0x"))
    ),
    "another case": frozenset((Scope(key="Account:Telegram:42"),)),
    "patterns": frozenset((Scope(key="%"), Scope(key="*"), Scope(key="account:telegram:__"))),
    "SQL and JSON": frozenset(
        (Scope(key="') OR 1=1 --"), Scope(key='"]'), Scope(key='","account:telegram:42","'))
    ),
    "no Unicode": frozenset((Scope(key="account:telegram:42\ud800"),)),
    "nothing": frozenset((Scope(key=""),)),
    "everybody else": frozenset(Scope.account("telegram", str(n)) for n in range(1000) if n != 42),
}


@dataclass(frozen=True)
class KeptRows:
    """What is in the store, and by which ids."""

    session: Session
    job_id: int
    readers: dict[str, Callable[[int, int, Scopes], Awaitable[Any]]]


@pytest.fixture
async def kept(database: Database, clock: SteadyClock) -> KeptRows:
    """One of everything, all of it Ana's; and something of Bob's, so that the wrong scopes exist
    too."""
    conversations = Conversations(database, clock)
    jobs, notes = Jobs(database), Notes(database)
    session = await opened(conversations, "secret", title="secret title")
    (more,) = await conversations.append(
        [message(session.id, "more", usage=Usage(input=1), external_id="70")]
    )
    await conversations.append(
        [message(session.id, "an answer", role="assistant", usage=Usage(input=1))]
    )
    message_ids = {session.id: more.id}
    calls = UsageLog(database)
    used, payer = Usage(input=1, cache_write=1), BillingScope(session_id=session.id)
    await calls.log(ModelCall(kind="chat", model="m", usage=used, at=NOON, billing=payer))
    schedule = Schedule(zone="UTC", at=NOON)
    job = await jobs.add(
        Job(schedule=schedule, text="x", target=CHAT, scope=ANA, created_at=NOON, next_at=NOON)
    )
    ended = await jobs.add(replace(job, id=0))
    await jobs.finish(ended, NOON, next_at=None)
    delivered = JobMessages(clock=clock, incognito=IncognitoRegistry(), model="m")
    outbox, told = Outbox(database, clock, delivered.store_delivery), Answer(text="secret reminder")
    await outbox.put(
        OutboxItem(key=f"job:{job.id}:now", kind="reminder", address=CHAT, answer=told)
    )
    await outbox.mark_done(f"job:{job.id}:now")
    for scope in (ANA, BOB):
        change = NoteChange(
            scope=scope, target="user", action="add", before=None, after="x", at=NOON
        )
        await notes.log_changes(
            replace(change, is_insisted=True, message_id=1, address=CHAT, external_id="7")
        )
        aside = PendingNote(
            scope=scope, target="user", operations=(Operation(action="add"),), reason="x", at=NOON
        )
        assert await notes.add_pending(aside)
    await database.write(
        lambda connection: connection.execute("DELETE FROM note_changes WHERE id = 2").rowcount
    )
    await notes.drop(2)
    merged = replace(change, scope=ANA, action="consolidate")
    await notes.log_changes(merged)
    verdict = NoteChange(scope=ANA, target="user", action="wrong", before=None, after="y", at=NOON)
    await notes.log_changes(verdict)
    await notes.update_skill(ANA, "knots", used_at=NOON)

    async def history(session_id: int, _: int, scopes: Scopes) -> Any:
        found = await conversations.find(session_id, frozenset((ANA,)))
        return await conversations.load_history(
            found or Session(id=session_id, address=CHAT, scope=ANA, started_at=NOON), scopes
        )

    return KeptRows(
        session=session,
        job_id=job.id,
        readers={
            "find": lambda session_id, _, scopes: conversations.find(session_id, scopes),
            "find by message": lambda session_id, _, scopes: conversations.find_by_message(
                message_ids.get(session_id, session_id), scopes
            ),
            "history": history,
            "history of the open session": lambda _, __, scopes: _open_history(
                conversations, scopes
            ),
            "results of a job": lambda _, job_id, scopes: conversations.list_job_results(
                Address(platform="cron", chat_id=str(job_id)), scopes, 3
            ),
            "transcript": lambda session_id, _, scopes: conversations.load_transcript(
                session_id, scopes
            ),
            "recent": lambda _, __, scopes: conversations.list_recent(scopes, 10),
            "relatives": lambda session_id, _, scopes: conversations.list_relatives(
                replace(session, id=session_id), scopes
            ),
            "transcript, earlier": lambda session_id, _, scopes: conversations.load_transcript_page(
                session_id, scopes, 2**62, 5, is_later=False
            ),
            "transcript, later": lambda session_id, _, scopes: conversations.load_transcript_page(
                session_id, scopes, 0, 5, is_later=True
            ),
            "quoted": lambda _, __, scopes: conversations.resolve_quote(
                inbound("x", reply_to="70"), scopes
            ),
            "private places": lambda _, __, scopes: People(database).list_private_chats(
                min(scopes, default=Scope(key=""))
            ),
            "tip": lambda session_id, _, scopes: conversations.find_tip(session_id, scopes),
            "recent by text": lambda _, __, scopes: conversations.list_recent(scopes, 10, "secret"),
            "sums of calls": lambda session_id, _, scopes: _sums(calls, scopes, session_id),
            "months with calls": lambda _, __, scopes: calls.list_months(scopes),
            "calls of this month": lambda _, __, scopes: _month_sums(calls, scopes),
            "accounts with calls": lambda _, __, scopes: _list_accounts(calls, scopes),
            "seconds of answers": lambda _, __, scopes: load_answer_seconds(
                database, scopes, YESTERDAY
            ),
            "jobs of": lambda _, __, scopes: jobs.list_visible(scopes),
            "ended jobs": lambda _, __, scopes: jobs.list_ended(scopes),
            "latest from outside": lambda _, __, scopes: conversations.list_latest_from_outside(
                scopes, 10
            ),
            "messages by id": lambda session_id, _, scopes: conversations.load_messages(
                [message_ids.get(session_id, session_id)], scopes
            ),
            "last delivered": lambda _, __, scopes: jobs.find_last_delivered(CHAT, scopes),
            "deliveries of a job": lambda _, job_id, scopes: jobs.list_deliveries(
                replace(job, id=job_id), scopes, 3
            ),
            "find a job": lambda _, job_id, scopes: jobs.find(job_id, scopes),
            "changes": lambda _, __, scopes: notes.list_changes(scopes),
            "changes since": lambda session_id, __, scopes: notes.list_changes_since(
                scopes, session_id, NOON
            ),
            "find a change": lambda _, __, scopes: notes.find(scopes, 1),
            "what can be undone": lambda _, __, scopes: notes.list_undoable(scopes),
            "sources of changes": lambda _, __, scopes: _sources(notes, scopes),
            "made by a command": lambda _, __, scopes: notes.list_changes_by(
                scopes, Author(address=CHAT, external_id="7")
            ),
            "put aside": lambda _, __, scopes: notes.list_pending(scopes),
            "where a note is from": lambda _, __, scopes: notes.find_origin(scopes, "x"),
            "what notes say": lambda _, __, scopes: _current(notes, scopes),
            "what was one change": lambda _, __, scopes: notes.list_group(scopes, merged),
            "what the curator looks at": lambda _, __, scopes: notes.find_unreviewed_mark(
                scopes, NOON
            ),
            "what can be pinned": lambda _, __, scopes: _pinned(notes, scopes),
            "verdicts": lambda _, __, scopes: notes.list_verdicts(scopes),
            "what is kept of skills": lambda _, __, scopes: _skills(notes, scopes),
        },
    )


async def _skills(notes: Notes, scopes: Scopes) -> list[object]:
    return [*await notes.load_skill_uses(scopes)]


async def _open_history(conversations: Conversations, scopes: Scopes) -> list[Message]:
    found = await conversations.load_open(CHAT, scopes)
    return found[1] if found else []


async def _sums(calls: UsageLog, scopes: Scopes, session_id: int) -> object:
    return (await calls.load_spending(scopes, session_id=session_id)).sums


async def _month_sums(calls: UsageLog, scopes: Scopes) -> object:
    spending, _ = await calls.load_month(scopes, NOON)
    return spending.sums


async def _list_accounts(calls: UsageLog, scopes: Scopes) -> list[str]:
    return list(await calls.list_accounts(scopes, YESTERDAY))


async def _current(notes: Notes, scopes: Scopes) -> list[str]:
    return list(await notes.load_versions(scopes, "user"))


async def _pinned(notes: Notes, scopes: Scopes) -> list[str]:
    """What is pinned of Ana's when somebody pins it."""
    await notes.pin(scopes, "user", "x", is_pinned=True)
    found = [
        text
        for text, one in (await notes.load_versions(frozenset((ANA,)), "user")).items()
        if one.is_pinned
    ]
    await notes.pin(frozenset((ANA,)), "user", "x", is_pinned=False)
    return found


async def _sources(notes: Notes, scopes: Scopes) -> list[str]:
    """What is told of the messages that notes came from."""
    return [change.source_text for change in await notes.list_changes(scopes) if change.source_text]


async def test_every_store_reader_returns_rows_to_their_own_person(kept: KeptRows) -> None:
    for name, read in kept.readers.items():
        assert await read(kept.session.id, kept.job_id, frozenset((ANA, BOB))) not in (
            None,
            [],
            Usage(),
        ), name


@pytest.mark.parametrize("who", WRONG)
async def test_every_store_reader_answers_for_a_foreign_row_as_for_a_missing_row(
    kept: KeptRows, who: str
) -> None:
    for name, read in kept.readers.items():
        refused = await read(kept.session.id, kept.job_id, WRONG[who])
        absent = await read(987_654, 987_654, WRONG[who])
        assert refused == absent, name
        assert refused in (None, [], Usage()), name


async def test_every_reading_method_that_takes_scopes_is_in_the_matrix(kept: KeptRows) -> None:
    taking = {
        f"{noun.__name__}.{name}"
        for noun in (UsageLog, Conversations, Jobs, Notes)
        for name, method in vars(noun).items()
        if "scopes" in getattr(method, "__annotations__", {}) and not name.startswith("_")
    }
    assert taking == {
        "Conversations.find",
        "Conversations.find_by_message",
        "Conversations.resolve_quote",
        "Conversations.load_history",
        "Conversations.load_open",
        "Conversations.find_tip",
        "Conversations.list_relatives",
        "Conversations.load_transcript_page",
        "Conversations.load_transcript",
        "Conversations.load_messages",
        "Conversations.list_job_results",
        "Conversations.list_latest_from_outside",
        "Conversations.list_recent",
        "UsageLog.list_accounts",
        "UsageLog.load_spending",
        "UsageLog.list_months",
        "UsageLog.load_month",
        "Jobs.list_visible",
        "Jobs.list_ended",
        "Jobs.find",
        "Jobs.find_last_delivered",
        "Jobs.list_deliveries",
        "Notes.list_changes",
        "Notes.list_changes_since",
        "Notes.find",
        "Notes.list_undoable",
        "Notes.list_changes_by",
        "Notes.list_pending",
        "Notes.list_verdicts",
        "Notes.find_origin",
        "Notes.load_versions",
        "Notes.list_group",
        "Notes.find_unreviewed_mark",
        "Notes.load_skill_uses",
        "Notes.pin",
    }


def test_scope_filter_sql_contains_only_constants_and_bound_parameters() -> None:
    assert visible() == (
        "sessions.scope_id IN (SELECT id FROM scopes WHERE key IN (SELECT value FROM json_each(:scopes)))"
    )
    assert visible("jobs.scope_id").startswith("jobs.scope_id IN (")


def test_scope_filter_parameter_is_a_sorted_json_list_of_scope_keys() -> None:
    assert scope_parameter(frozenset()) == "[]"
    assert scope_parameter(frozenset((BOB, ANA))) == '["account:telegram:42", "account:telegram:7"]'


@pytest.mark.parametrize("open_store", ["sqlite"], indirect=True)
async def test_scope_filter_of_sessions_uses_the_scope_index_in_the_query_plan(
    database: Database,
) -> None:
    def work(connection: Any) -> str:
        plan = connection.execute(
            f"EXPLAIN QUERY PLAN SELECT id FROM sessions WHERE {visible()} AND last_at > 0",
            {"scopes": scope_parameter(frozenset((ANA,)))},
        )
        return "\n".join(row["detail"] for row in plan)

    plan = await database.read(work)
    assert "sessions_by_scope (scope_id=? AND last_at>?)" in plan
    assert "SCAN sessions" not in plan
