"""The contract of Inbox: accepted once, waiting until closed, and nothing of it left afterwards but its id."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.store.inbox import Inbox, InboxEntry
from core.store.outbox import Outbox
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.types import Address, Attachment, Command, RawUpdate
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import NOON, inbound, message, opened

ELSEWHERE = Address(platform="telegram", chat_id="42", thread_id="7")


@pytest.fixture
def inbox(database: Database, clock: SteadyClock) -> Inbox:
    return Inbox(database, clock)


async def _dump(database: Database) -> str:
    def work(connection: Any) -> str:
        return "\n".join(connection.iterdump())

    return await database.read(work)


async def test_an_event_waits_as_it_came(inbox: Inbox) -> None:
    event = inbound(
        text="/recall ferry \U0001f600",
        command=Command(name="recall", arguments="ferry"),
        attachments=(Attachment(kind="photo", name="", size_bytes=0),),
        is_interaction=True,
    )
    first = await inbox.accept(event, NOON + timedelta(seconds=1))
    second = await inbox.accept(inbound("0"), NOON)
    assert first is not None
    assert second is not None
    assert await inbox.waiting() == [
        InboxEntry(id=first, inbound=event, received_at=NOON + timedelta(seconds=1)),
        InboxEntry(id=second, inbound=inbound("0"), received_at=NOON),
    ]


async def test_an_event_is_accepted_once(inbox: Inbox) -> None:
    accepted = await asyncio.gather(*(inbox.accept(inbound(str(n % 5)), NOON) for n in range(20)))
    assert len([entry for entry in accepted if entry is not None]) == 5
    assert await inbox.accept(inbound("1", address=ELSEWHERE), NOON) is not None


async def test_an_answered_message_is_known(inbox: Inbox, database: Database, clock: SteadyClock) -> None:
    conversations = Conversations(database, clock)
    made = await opened(conversations)
    entry = await inbox.accept(inbound("5"), NOON)
    assert entry is not None
    await conversations.append([message(made.id, external_id="5")], [entry])
    assert await inbox.waiting() == []
    assert await inbox.accept(inbound("5"), NOON) is None
    assert await inbox.accept(inbound("5", address=ELSEWHERE), NOON) is not None


async def test_edits_deletions_and_presses_do_not_collide_with_messages(inbox: Inbox) -> None:
    later = NOON + timedelta(seconds=1)
    events = [
        inbound("5"),
        inbound("5", kind="edit"),
        inbound("5", kind="edit", sent_at=later),
        inbound("5", kind="delete"),
        inbound("5", kind="action"),
    ]
    entries = [await inbox.accept(event, NOON) for event in events]
    assert None not in entries
    assert [await inbox.accept(event, NOON) for event in events] == [None] * 5
    assert [entry.inbound for entry in await inbox.waiting()] == events


async def test_what_was_closed_without_a_message_is_not_taken_again(
    inbox: Inbox, clock: SteadyClock, database: Database
) -> None:
    press = inbound("9", kind="action", text="button-secret")
    entry = await inbox.accept(press, NOON)
    assert entry is not None
    await inbox.close([entry])
    await inbox.close([entry])
    assert await inbox.waiting() == []
    assert await inbox.accept(press, NOON) is None
    assert "button-secret" not in await _dump(database)
    clock.advance(days=31)
    other = await inbox.accept(inbound("10", kind="action"), clock.now())
    assert other is not None
    await inbox.close([other])
    assert await inbox.accept(press, NOON) is not None


async def test_the_arguments_of_a_closed_command_are_gone(inbox: Inbox, database: Database) -> None:
    entry = await inbox.accept(
        inbound(text="/approve K7WX2MAA", command=Command(name="approve", arguments="K7WX2MAA")), NOON
    )
    assert entry is not None
    assert "K7WX2MAA" in await _dump(database)
    await inbox.close([entry])
    assert "K7WX2MAA" not in await _dump(database)


async def test_text_that_is_no_unicode_is_accepted(inbox: Inbox) -> None:
    event = inbound("\ud800", text="\udfff\0", sender=replace(inbound().sender, name="\ud83d"))
    assert await inbox.accept(event, NOON) is not None
    assert await inbox.accept(event, NOON) is None
    (entry,) = await inbox.waiting()
    assert entry.inbound.text == "\ufffd\0"


async def test_what_an_older_version_left_is_given_until_it_is_handled(inbox: Inbox, database: Database) -> None:
    def update(number: int) -> RawUpdate:
        return RawUpdate(platform="telegram", update_id=number, raw=f'{{"update_id": {number}}}')

    for number in (12, 10, 11):
        values = {"id": number, "raw": update(number).raw}
        insert = "INSERT INTO raw_updates (platform, update_id, raw) VALUES ('telegram', :id, :raw)"
        await database.execute(insert, values)
    assert await inbox.left_raw("telegram") == [update(10), update(11), update(12)]
    assert await inbox.left_raw("discord") == []
    await inbox.remove_raw("telegram", 11)
    await inbox.set_aside(update(10), "no such kind")
    await inbox.remove_raw("telegram", 10)
    assert await inbox.left_raw("telegram") == [update(12)]
    assert "no such kind" in await _dump(database)


async def test_an_update_that_cannot_be_parsed_is_not_kept_for_ever(
    inbox: Inbox, database: Database, clock: SteadyClock
) -> None:
    """It may be a stranger's."""

    def update(number: int) -> RawUpdate:
        return RawUpdate(platform="telegram", update_id=number, raw=f"the secret of {number}")

    await inbox.set_aside(update(1), "no such kind")
    clock.advance(days=29)
    await inbox.set_aside(update(2), "no such kind")
    assert "the secret of 1" in await _dump(database)
    clock.advance(days=2)
    await inbox.set_aside(update(3), "no such kind\ud800")
    left = await _dump(database)
    assert [f"the secret of {number}" in left for number in range(1, 4)] == [False, True, True]
    clock.advance(days=31)
    await Outbox(database, clock).recover(clock.now())
    assert "the secret of" not in await _dump(database)
