"""What stands in the key of an outbox item to a memory, and what the store has for it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from core.memory.sync import turns_of
from core.store.notes import NoteChange, Notes
from core.store.sqlite.database import Database
from core.store.sync import SyncSource, SyncTask
from core.types import Address, Message, Role
from tests.fixtures.annals import ANA, Annals
from tests.fixtures.clock import SteadyClock

AT = SteadyClock().now()


def test_a_key_says_everything_and_is_read_back() -> None:
    task = SyncTask(provider="jotter", session="12", turn="3-9", hook="sync_turn")
    assert task.key == "memory:jotter:12:3-9:sync_turn"
    assert SyncTask.parse(task.key) == task
    assert task.address == Address(platform="memory", chat_id="jotter", thread_id="12")
    assert Address.parse(task.address.key) == task.address


@pytest.mark.parametrize("key", ["", "turn:telegram:1:message:2", "memory:a:1:2:prefetch", "memory:a:1:2"])
def test_what_is_no_errand(key: str) -> None:
    assert SyncTask.parse(key) is None


def rows(said: str) -> list[Message]:
    """A letter a row: u a person, c a call of a tool, t its result, a an answer."""
    roles: dict[str, Role] = {"u": "user", "c": "assistant", "t": "tool", "a": "assistant"}
    return [
        Message(
            role=roles[sign], text=sign, session_id=1, created_at=AT, id=number, tool_name="x" if sign in "ct" else None
        )
        for number, sign in enumerate(said, 1)
    ]


@pytest.mark.parametrize(
    ("said", "turns"),
    [
        ("", []),
        ("u", []),
        ("ua", ["ua"]),
        ("uaua", ["ua", "ua"]),
        ("uuactau", ["uuacta"]),
        ("uauct", ["ua"]),
        ("uctaua", ["ucta", "ua"]),
        ("aua", ["ua"]),
    ],
)
def test_turns_are_what_was_answered(said: str, turns: list[str]) -> None:
    assert ["".join(row.text for row in turn) for turn in turns_of(rows(said))] == turns


async def test_the_store_tells_what_was_said_lately_and_nothing_imported(database: Database) -> None:
    annals, turns = Annals(database), SyncSource(database)
    old, *_ = await annals.session(["an old hat", "yes"])
    imported, *_ = await annals.session(["from a file", "yes"])
    await annals.execute("UPDATE sessions SET end_reason = 'import' WHERE id = :id", id=imported)
    fresh, first, second = await annals.session(["a new hat", "yes"])
    session = await turns.session(fresh)
    assert session is not None
    assert session.last_at is not None
    since: datetime = session.last_at - timedelta(seconds=90)
    assert [one.id for one in await turns.recent_sessions(since)] == [fresh]
    assert old not in [one.id for one in await turns.recent_sessions(since)]
    assert [row.id for row in await turns.rows(fresh)] == [first, second]
    await annals.execute("UPDATE messages SET kind = 'command', text = '' WHERE id = :id", id=first)
    assert [row.id for row in await turns.rows(fresh)] == [second]
    assert await turns.session(10**9) is None


async def test_a_change_of_notes_comes_with_the_session_it_was_made_in(database: Database) -> None:
    annals, notes, turns = Annals(database), Notes(database), SyncSource(database)
    session_id, message_id, _ = await annals.session(["note that", "done"])
    change = NoteChange(scope=ANA, target="user", action="add", before=None, after="tea", at=AT, message_id=message_id)
    await notes.log(change)
    await notes.log(NoteChange(scope=ANA, target="user", action="remove", before="tea", after=None, at=AT))
    ids = await turns.changes(AT, 0)
    found = [await turns.change(change_id) for change_id in ids]
    assert [None if one is None else (one[0].action, one[1] and one[1].id) for one in found] == [
        ("add", session_id),
        ("remove", None),
    ]
    assert await turns.changes(AT + timedelta(seconds=1), 0) == []
    assert await turns.change(10**9) is None
