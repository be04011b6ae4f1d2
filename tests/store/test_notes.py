"""The contract of Notes: every version is kept, newest first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from core.store.notes import NoteChange, Notes
from core.store.sqlite.database import Database
from core.types import Account
from tests.fixtures.samples import ANA, BOB, NOON


async def test_versions_come_back_as_they_were_logged(database: Database) -> None:
    notes = Notes(database)
    first = NoteChange(scope=ANA, target="memory", action="add", before=None, after="§ a\ud800", at=NOON)
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
    await notes.log(first)
    await notes.log(second)
    latest, earlier = await notes.changes(frozenset((ANA, BOB)))
    assert latest == replace(second, id=latest.id)
    assert earlier == replace(first, id=earlier.id, after="§ a\ufffd")
    assert await notes.changes(frozenset((ANA,))) == [earlier]
    assert await notes.changes(frozenset((ANA, BOB)), limit=1) == [latest]
    assert await notes.changes(frozenset((ANA, BOB)), limit=-1) == []
