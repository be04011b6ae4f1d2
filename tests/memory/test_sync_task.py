"""What stands in the key of an outbox item to a memory, and what the store has for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.store.notes import NoteChange, Notes
from core.store.sqlite.database import Database
from core.store.sync import HOOKS, SyncQueue, SyncTask
from tests.fixtures.clock import SteadyClock
from tests.fixtures.stored_history import ANA, StoredHistory
from tests.fixtures.tables import each_row

AT = SteadyClock().now()


@pytest.fixture
def queue(database: Database) -> SyncQueue:
    return SyncQueue(database, SteadyClock(), hooks={"jotter": HOOKS})


async def queued(stored: StoredHistory, hook: str) -> Sequence[str]:
    """The third and fourth part of the keys of these tasks, in order."""
    found = await stored.execute(
        "SELECT key FROM outbox WHERE key LIKE :hook ORDER BY id", hook=f"%:{hook}"
    )
    return [":".join(str(key).split(":")[2:4]) for (key,) in found]


async def arguments(queue: SyncQueue, task: SyncTask) -> tuple[Any, ...]:
    found = await queue.load_arguments(task)
    assert found is not None
    return found


def test_sync_task_key_contains_all_fields_and_is_parsed_back() -> None:
    task = SyncTask(
        provider="jotter", session="12", turn="3", hook="sync_turn", conversation_key="5"
    )
    assert task.key == "memory:jotter:12:3:sync_turn"
    assert SyncTask.parse(task.key) == task


async def test_turn_queued_for_a_memory_service_by_an_earlier_version_is_still_sent(
    database: Database, queue: SyncQueue
) -> None:
    session, first, second, *_ = await StoredHistory(database).session(
        ["a hat", "yes", "a coat", "no"]
    )
    for turn in (f"{first}", f"{first}-{second}", f"{first}-{second}.3f09"):
        task = SyncTask.parse(f"memory:jotter:{session}:{turn}:sync_turn")
        assert task is not None
        _, told, key = await arguments(queue, task)
        assert ([row.id for row in told], key) == ([first, second], task.key)


@each_row("key", ["", "turn:telegram:1:message:2", "memory:a:1:2:prefetch", "memory:a:1:2"])
def test_sync_task_of_a_foreign_key_is_none(key: str) -> None:
    assert SyncTask.parse(key) is None


@pytest.mark.parametrize(
    ("said", "turns"),
    [
        ("u", []),
        ("ua", [1]),
        ("uaua", [1, 3]),
        ("uuactau", [1]),
        ("uauct", [1]),
        ("uctaua", [1, 5]),
        ("auaa", [2]),
        ("ucj", []),
        ("uajua", [1, 4]),
    ],
)
async def test_turn_is_queued_for_a_memory_service_only_once_it_has_an_answer(
    database: Database, queue: SyncQueue, said: str, turns: list[int]
) -> None:
    """A letter a row: u a person, c a call of a tool, t its result, a an answer, j what a job
    delivered."""
    stored = StoredHistory(database)
    roles = {"u": "user", "c": "assistant", "t": "tool", "a": "assistant", "j": "assistant"}
    session, *ids = await stored.session([(roles[sign], sign) for sign in said])
    await stored.execute("UPDATE messages SET tool_name = 'x' WHERE text IN ('c', 't')")
    await stored.execute("UPDATE messages SET origin = 'job' WHERE text = 'j'")
    assert await queue.queue_turns(session) == bool(turns)
    firsts = [ids[turn - 1] for turn in turns]
    assert await queued(stored, "sync_turn") == [f"{session}:{first}" for first in firsts]


async def test_turns_are_queued_in_batches_for_a_memory_service_with_a_batch_size(
    database: Database,
) -> None:
    stored = StoredHistory(database)
    queue = SyncQueue(database, SteadyClock(), hooks={"jotter": HOOKS}, batch_sizes={"jotter": 2})
    session, *ids = await stored.session(["a hat", "yes", "a coat", "no", "a boat", "yes"])
    assert await queue.queue_turns(session)
    assert await queued(stored, "sync_turn") == [f"{session}:{ids[0]}-{ids[3]}"]
    task = SyncTask(
        provider="jotter", session=str(session), turn=f"{ids[0]}-{ids[3]}", hook="sync_turn"
    )
    assert [row.id for row in (await arguments(queue, task))[1]] == ids[:4]
    assert not await queue.queue_turns(session)
    # The rest is told by a start, and by whoever ends the session at the same moment.
    await stored.execute("UPDATE sessions SET ended_at = last_at, end_reason = 'new'")
    await asyncio.gather(queue.catch_up(), queue.queue_turns(session))
    assert await queued(stored, "sync_turn") == [
        f"{session}:{ids[0]}-{ids[3]}",
        f"{session}:{ids[4]}",
    ]


async def test_turn_queued_by_another_process_is_not_queued_in_another_batch(
    database: Database,
) -> None:
    stored = StoredHistory(database)
    queue = SyncQueue(database, SteadyClock(), hooks={"jotter": HOOKS}, batch_sizes={"jotter": 3})
    session, *ids = await stored.session(["a hat", "yes", "a coat", "no"])
    tasks = [
        SyncTask(provider="jotter", session=str(session), turn=turn, hook="sync_turn", last_id=last)
        for turn, last in (
            (f"{ids[0]}-{ids[3]}", ids[3]),
            (f"{ids[2]}", ids[3]),
            (f"{ids[0]}-{ids[1]}", ids[1]),
        )
    ]
    await queue._store_tasks(tasks)
    assert await queued(stored, "sync_turn") == [f"{session}:{ids[0]}-{ids[3]}"]


async def test_service_gets_sessions_of_the_last_day_and_imported_ones_only_on_request(
    database: Database, queue: SyncQueue
) -> None:
    stored = StoredHistory(database)
    old, *_ = await stored.session(["an old hat", "yes"])
    imported, *_ = await stored.session(["from a file", "yes"])
    await stored.execute("UPDATE sessions SET end_reason = 'import' WHERE id = :id", id=imported)
    fresh, first, second = await stored.session(["a new hat", "yes"])
    end = SyncTask(provider="jotter", session=str(fresh), turn="0", hook="on_session_end")
    session, rows = await arguments(queue, end)
    lately = session.last_at - timedelta(seconds=90)
    assert await queue.queue_turns(since=lately) == 1
    assert await queued(stored, "sync_turn") == [f"{fresh}:{first}"]
    assert await queue.queue_turns(since=lately) == 0, "it is told"
    assert await queue.queue_turns(has_imported=True) == 2
    assert [key.split(":")[0] for key in await queued(stored, "sync_turn")] == [
        str(fresh),
        str(old),
        str(imported),
    ]
    assert [row.id for row in rows] == [first, second]
    await stored.execute("UPDATE messages SET kind = 'command', text = '' WHERE id = :id", id=first)
    _, rows = await arguments(queue, end)
    assert [row.id for row in rows] == [second]
    assert await queue.load_arguments(replace(end, session=str(10**9))) is None


async def test_session_end_is_sent_to_a_service_once_and_again_if_the_session_continued(
    database: Database, queue: SyncQueue
) -> None:
    stored = StoredHistory(database)
    session, _, last = await stored.session(["a hat", "yes"])
    await stored.execute("UPDATE sessions SET ended_at = NULL")
    await queue.queue_turns(session)
    assert await queued(stored, "on_session_end") == []
    await stored.execute("UPDATE sessions SET ended_at = last_at")
    for _ in range(2):
        await queue.queue_turns(session)
    assert await queued(stored, "on_session_end") == [f"{session}:{last}"]


async def test_note_change_is_sent_to_a_memory_service_once(
    database: Database, queue: SyncQueue
) -> None:
    stored, notes = StoredHistory(database), Notes(database)
    _, message_id, _ = await stored.session(["note that", "done"])
    change = NoteChange(
        scope=ANA,
        target="user",
        action="add",
        before=None,
        after="tea",
        at=AT,
        message_id=message_id,
    )
    await notes.log_changes(change)
    await queue.queue_notes(AT)
    await notes.log_changes(
        NoteChange(scope=ANA, target="user", action="remove", before="tea", after=None, at=AT)
    )
    for _ in range(2):
        await queue.queue_notes(AT + timedelta(seconds=1))
    ids = [int(key.split(":")[1]) for key in await queued(stored, "on_memory_write")]
    told = SyncTask(provider="jotter", session="notes", turn="0", hook="on_memory_write")
    found = [await arguments(queue, replace(told, turn=str(change_id))) for change_id in ids]
    assert [change.action for (change,) in found] == ["add", "remove"]
    assert await queue.load_arguments(replace(told, turn=str(10**9))) is None


async def test_new_memory_service_gets_all_current_notes_whatever_their_age(
    database: Database, queue: SyncQueue
) -> None:
    stored, notes = StoredHistory(database), Notes(database)
    steps = (
        ("user", "add", None, "tea"),
        ("user", "replace", "tea", "mate"),
        ("user", "right", "mate", "mate"),
        ("memory", "add", None, "tea"),
        ("user", "add", None, "rum"),
        ("user", "remove", "rum", None),
        ("user", "add", None, "rum"),
        ("skill:tidy:SKILL.md", "add", None, "a skill"),
    )
    for target, action, before, after in steps:
        await notes.log_changes(
            NoteChange(scope=ANA, target=target, action=action, before=before, after=after, at=AT)
        )

    async def list_texts() -> list[tuple[str, str | None]]:
        await queue.queue_notes(AT + timedelta(seconds=1))
        keys = await queued(stored, "on_memory_write")
        task = SyncTask(provider="jotter", session="notes", turn="0", hook="on_memory_write")
        rows = [await arguments(queue, replace(task, turn=key.split(":")[1])) for key in keys]
        return [(change.target, change.after) for (change,) in rows]

    expected = [("user", "mate"), ("memory", "tea"), ("user", "rum")]
    assert await list_texts() == expected
    await notes.log_changes(
        NoteChange(scope=ANA, target="user", action="add", before=None, after="gin", at=AT)
    )
    assert await list_texts() == [*expected, ("user", "gin")]
