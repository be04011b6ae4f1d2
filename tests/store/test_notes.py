"""The contract of Notes: every version is kept, newest first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from core.store.engine import Database
from core.store.notes import NoteChange, Notes
from core.store.sessions import Conversations
from core.types import Account
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import ANA, BOB, NOON, message, opened


async def test_logged_note_changes_are_loaded_unchanged(database: Database) -> None:
    notes = Notes(database)
    first = NoteChange(
        scope=ANA, target="memory", action="add", before=None, after="§ a\ud800", at=NOON
    )
    second = NoteChange(
        scope=BOB,
        target="user",
        action="remove",
        before="",
        after=None,
        at=NOON + timedelta(microseconds=1),
        account=Account(platform="discord", user_id="7"),
        message_id=12,
    )
    await notes.log_changes(first)
    await notes.log_changes(second)
    latest, earlier = await notes.list_changes(frozenset((ANA, BOB)))
    assert latest == replace(second, id=latest.id)
    assert earlier == replace(first, id=earlier.id, after="§ a\ufffd")
    assert await notes.list_changes(frozenset((ANA,))) == [earlier]
    assert await notes.list_changes(frozenset((ANA, BOB)), limit=1) == [latest]
    assert await notes.list_changes(frozenset((ANA, BOB)), limit=-1) == []


async def test_note_history_shows_the_source_message_only_to_scopes_that_can_read_it(
    database: Database, clock: SteadyClock
) -> None:
    conversations, notes = Conversations(database, clock), Notes(database)
    session = await opened(conversations)
    (said,) = await conversations.append([message(session.id, "The code is 4711")])
    noted = NoteChange(
        scope=BOB, target="user", action="add", before=None, after="x", at=NOON, message_id=said.id
    )
    await notes.log_changes(noted)
    assert [change.source_text for change in await notes.list_changes(frozenset((BOB,)))] == [""]
    assert [change.source_text for change in await notes.list_changes(frozenset((ANA, BOB)))] == [
        "The code is 4711"
    ]
