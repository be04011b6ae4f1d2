"""The contracts of Inbox and Outbox: accepted once, waiting until closed, nothing left afterwards
but its id; each item leaves once, in the order of its address, also across a crash."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from core.search.recall import Recall
from core.store.engine import Database
from core.store.mailbox import INTENT_MARK, Inbox, InboxEntry, Outbox, OutboxCounts, OutboxItem
from core.store.sessions import Conversations
from core.types import Address, Answer, Attachment, Button, Command, File
from tests.fixtures.clock import SteadyClock
from tests.fixtures.delivery_record import hold
from tests.fixtures.forgetting import dump_rows
from tests.fixtures.samples import ANA, CHAT, NOON, inbound, message, opened
from tests.fixtures.search_queries import search_query

ELSEWHERE = Address(platform="telegram", chat_id="42", thread_id="7")


@pytest.fixture
def inbox(database: Database, clock: SteadyClock) -> Inbox:
    return Inbox(database, clock)


async def test_accepted_event_is_loaded_from_the_inbox_unchanged(inbox: Inbox) -> None:
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
    assert await inbox.list_waiting() == [
        InboxEntry(id=first, inbound=event, received_at=NOON + timedelta(seconds=1)),
        InboxEntry(id=second, inbound=inbound("0"), received_at=NOON),
    ]


async def test_newest_id_of_a_chat_is_that_of_its_newest_message(
    database: Database, inbox: Inbox, clock: SteadyClock
) -> None:
    """Its number may have fewer digits, as in a group that has a new chat id."""
    conversations = Conversations(database, clock)
    made = await opened(conversations)
    ids = ("999", "1000", "job:7@2026-11-20T09:00:00+00:00")
    await conversations.append([message(made.id, external_id=id_) for id_ in ids])
    imported = await opened(conversations, address=Address(platform="telegram", chat_id="43"))
    await conversations.append([message(imported.id, external_id="5000")])
    end = {"at": NOON, "id": imported.id}
    statement = "UPDATE sessions SET end_reason = 'import', ended_at = :at WHERE id = :id"
    await database.execute(statement, end)
    assert await inbox.chat_messages.load_newest_ids("telegram") == {CHAT.chat_id: 1000}
    await conversations.append([message(made.id, external_id="12")])
    assert await inbox.chat_messages.load_newest_ids("telegram") == {CHAT.chat_id: 12}


async def test_an_event_is_accepted_once(inbox: Inbox) -> None:
    accepted = await asyncio.gather(*(inbox.accept(inbound(str(n % 5)), NOON) for n in range(20)))
    assert len([entry for entry in accepted if entry is not None]) == 5
    assert await inbox.accept(inbound("1", address=ELSEWHERE), NOON) is not None


async def test_message_that_was_already_answered_is_not_accepted_again(
    inbox: Inbox, database: Database, clock: SteadyClock
) -> None:
    conversations = Conversations(database, clock)
    made = await opened(conversations)
    entry = await inbox.accept(inbound("5"), NOON)
    assert entry is not None
    await conversations.append([message(made.id, external_id="5")], [entry])
    assert await inbox.list_waiting() == []
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
    assert [entry.inbound for entry in await inbox.list_waiting()] == events


async def test_event_closed_without_a_message_is_not_accepted_again(
    inbox: Inbox, clock: SteadyClock, database: Database
) -> None:
    press = inbound("9", kind="action", text="button-secret")
    entry = await inbox.accept(press, NOON)
    assert entry is not None
    await inbox.close([entry])
    await inbox.close([entry])
    assert await inbox.list_waiting() == []
    assert await inbox.accept(press, NOON) is None
    assert "button-secret" not in await dump_rows(database)
    clock.advance(days=31)
    other = await inbox.accept(inbound("10", kind="action"), clock.now())
    assert other is not None
    await inbox.close([other])
    assert await inbox.accept(press, NOON) is not None


async def test_the_arguments_of_a_closed_command_are_gone(inbox: Inbox, database: Database) -> None:
    entry = await inbox.accept(
        inbound(text="/approve K7WX2MAA", command=Command(name="approve", arguments="K7WX2MAA")),
        NOON,
    )
    assert entry is not None
    assert "K7WX2MAA" in await dump_rows(database)
    await inbox.close([entry])
    assert "K7WX2MAA" not in await dump_rows(database)


async def test_text_that_is_not_unicode_is_accepted(inbox: Inbox) -> None:
    event = inbound("\ud800", text="\udfff\0", sender=replace(inbound().sender, name="\ud83d"))
    assert await inbox.accept(event, NOON) is not None
    assert await inbox.accept(event, NOON) is None
    (entry,) = await inbox.list_waiting()
    assert entry.inbound.text == "\ufffd\0"


async def test_an_update_that_cannot_be_parsed_is_not_kept_for_ever(
    inbox: Inbox, database: Database, clock: SteadyClock
) -> None:
    """It may be a stranger's."""
    await inbox.store_dead_letter("telegram", 1, "the secret of 1", "no such kind")
    clock.advance(days=29)
    await inbox.store_dead_letter("telegram", 2, "the secret of 2", "no such kind")
    assert "the secret of 1" in await dump_rows(database)
    clock.advance(days=2)
    await inbox.store_dead_letter("telegram", 3, "the secret of 3", "no such kind\ud800")
    left = await dump_rows(database)
    assert [f"the secret of {number}" in left for number in range(1, 4)] == [False, True, True]
    clock.advance(days=31)
    await Outbox(database, clock).recover(clock.now())
    assert "the secret of" not in await dump_rows(database)


OTHER = Address(platform="discord", chat_id="9", thread_id="8")
ANSWER = Answer(
    text="done",
    buttons=(Button(label="Next", command=Command(name="recall", arguments="x"), id="b1"),),
    files=(File(name="a.bin", content=b"\0\xff"),),
    is_private=True,
)
LATER = NOON + timedelta(minutes=1)


@pytest.fixture
def outbox(database: Database, clock: SteadyClock) -> Outbox:
    return Outbox(database, clock)


def outbox_item(key: str, address: Address = CHAT) -> OutboxItem:
    return OutboxItem(key=key, kind="answer", address=address)


def answered(key: str, address: Address = CHAT, next_at: datetime | None = NOON) -> OutboxItem:
    return replace(outbox_item(key, address), answer=ANSWER, next_at=next_at)


async def filled(outbox: Outbox, *keys: str, address: Address = CHAT) -> None:
    for key in keys:
        assert await outbox.put(answered(key, address))


async def due(outbox: Outbox, *platforms: str) -> list[str]:
    return [found.key for found in await outbox.list_due(NOON, platforms or None)]


async def test_held_delivery_is_not_due_until_it_has_an_answer(outbox: Outbox) -> None:
    wanted = replace(outbox_item("a", OTHER), reply_to="", kind="reminder")
    held = await hold(outbox, replace(wanted, next_at=NOON))
    assert held == replace(wanted, id=held.id)
    assert await outbox.list_due(NOON) == []
    assert await outbox.find_next_due() is None
    assert await outbox.put(replace(wanted, answer=ANSWER, next_at=NOON))
    assert await outbox.list_due(NOON - timedelta(microseconds=1)) == []
    assert await outbox.list_due(NOON) == [replace(held, answer=ANSWER, next_at=NOON)]
    assert not await outbox.put(replace(wanted, answer=Answer(text="again"), next_at=LATER))
    assert await outbox.list_due(NOON) == [replace(held, answer=ANSWER, next_at=NOON)]


async def test_posted_ids_of_an_item_are_read_by_the_next_process(outbox: Outbox) -> None:
    await hold(outbox, outbox_item("a"))
    await outbox.set_posted("a", ["501", "0501", INTENT_MARK])
    assert (await hold(outbox, outbox_item("a"))).posted == ("501", "0501", INTENT_MARK)


async def test_items_of_an_address_leave_one_at_a_time_in_order(outbox: Outbox) -> None:
    await filled(outbox, "a1", "a2")
    await filled(outbox, "b1", "b2", address=OTHER)
    assert await due(outbox) == ["a1", "b1"]
    assert [found.key for found in await outbox.list_due(NOON, limit=1)] == ["a1"]
    await outbox.mark_done("a1")
    assert await due(outbox) == ["a2", "b1"]
    await outbox.claim("b1")
    assert await due(outbox) == ["a2"]
    await outbox.record_failure("b1", "gone")
    assert await due(outbox) == ["a2", "b2"]


async def test_answer_still_in_progress_does_not_delay_other_due_deliveries(outbox: Outbox) -> None:
    await hold(outbox, outbox_item("working"))
    await filled(outbox, "reminder")
    assert await due(outbox) == ["reminder"]
    await outbox.put(answered("working"))
    assert await due(outbox) == ["working"]


async def test_deliveries_for_unconnected_platforms_do_not_fill_the_list_of_due_deliveries(
    outbox: Outbox,
) -> None:
    for number in range(60):
        await filled(outbox, f"d{number}", address=Address(platform="discord", chat_id=str(number)))
    await filled(outbox, "t")
    await outbox.put(answered("later", Address(platform="terminal", chat_id="local"), LATER))
    assert await due(outbox, "telegram") == ["t"]
    assert await due(outbox, "telegram", "terminal") == ["t"]
    assert len(await due(outbox, "telegram", "discord")) == 50
    assert len(await due(outbox)) == 50
    assert await outbox.list_due(NOON, ()) == []
    assert await due(outbox, "tele", "disco%") == []
    assert await outbox.find_next_due(("terminal",)) == LATER
    assert await outbox.find_next_due(("terminal", "telegram")) == NOON
    assert await outbox.find_next_due(("cron",)) is None
    assert await outbox.find_next_due(()) is None
    assert await outbox.find_next_due() == NOON


async def test_an_answer_is_behind_older_ones_of_its_address_that_have_yet_to_leave(
    outbox: Outbox,
) -> None:
    await hold(outbox, outbox_item("working"))
    await filled(outbox, "a1", "a2")
    await filled(outbox, "b", address=OTHER)
    assert [
        await outbox.has_older_item(key) for key in ("working", "a1", "a2", "b", "unknown")
    ] == [
        False,
        False,
        True,
        False,
        False,
    ]
    await outbox.claim("a1")
    assert await outbox.has_older_item("a2")
    await outbox.record_failure("a1", "429", LATER)
    assert await outbox.has_older_item("a2")
    await outbox.mark_done("a1")
    assert not await outbox.has_older_item("a2")
    await outbox.put(answered("working", next_at=None))
    assert await outbox.has_older_item("a2")
    await outbox.record_failure("working", "gone")
    assert not await outbox.has_older_item("a2")


async def test_failed_delivery_is_due_again_at_its_retry_time_with_a_counted_attempt(
    outbox: Outbox,
) -> None:
    await filled(outbox, "a1", "a2")
    await outbox.record_failure("a1", "429", LATER)
    assert await outbox.list_due(NOON) == []
    assert await outbox.find_next_due() == LATER
    (found,) = await outbox.list_due(LATER)
    assert (found.key, found.attempts, found.answer) == ("a1", 1, ANSWER)


async def test_outbox_item_that_is_done_never_leaves_again(
    outbox: Outbox, database: Database
) -> None:
    await filled(outbox, "a")
    await outbox.mark_done("a")
    again = await hold(outbox, outbox_item("a"))
    assert again.is_over
    assert again.answer is None
    await outbox.put(answered("a"))
    await outbox.record_failure("a", "late", NOON)
    await outbox.recover(NOON)
    assert await outbox.list_due(NOON) == []
    payloads = await database.read(
        lambda connection: connection.execute("SELECT payload FROM outbox").fetchall()
    )
    assert [tuple(row) for row in payloads] == [(None,)]


async def test_undeliverable_item_is_kept_for_the_owner(outbox: Outbox) -> None:
    await filled(outbox, "a")
    await outbox.record_failure("a", "the bot was blocked")
    assert await outbox.list_due(NOON) == []
    dead = await hold(outbox, outbox_item("a"))
    assert dead.is_over
    assert dead.answer == ANSWER


async def test_deliveries_claimed_by_a_dead_process_are_due_again(outbox: Outbox) -> None:
    await filled(outbox, "claimed", "postponed")
    await outbox.claim("claimed")
    await outbox.record_failure("postponed", "429", LATER)
    await hold(outbox, replace(outbox_item("turn", OTHER), kind="reminder"))
    assert await outbox.list_due(LATER) == []
    await outbox.recover(NOON)
    assert await due(outbox) == ["claimed"]
    await outbox.mark_done("claimed")
    assert await outbox.find_next_due() == LATER
    assert await outbox.count_items() == OutboxCounts(held=1, due=1, dead=0)


async def test_an_answer_that_nothing_works_on_any_more_is_buried(
    outbox: Outbox, database: Database, clock: SteadyClock
) -> None:
    """An interaction's entry is closed before its answer leaves, and the answer is kept nowhere."""
    inbox = Inbox(database, clock)
    waiting = Address(platform="telegram", chat_id="42", thread_id="7")
    assert await inbox.accept(inbound("1", address=waiting), NOON) is not None
    await hold(outbox, outbox_item("turn:telegram:42/7:message:1", waiting))
    await hold(outbox, outbox_item("turn:discord:9/8:message:77", OTHER))
    await hold(outbox, outbox_item("turn:telegram:42:message:2"))
    await hold(outbox, replace(outbox_item("job:1:x"), kind="reminder"))
    await filled(outbox, "filled")
    await outbox.recover(NOON)
    assert await outbox.count_items() == OutboxCounts(held=2, due=1, dead=2)
    dead = await database.read(
        lambda connection: [
            tuple(row)
            for row in connection.execute(
                "SELECT key, error FROM outbox WHERE dead_at IS NOT NULL ORDER BY key"
            )
        ]
    )
    assert dead == [
        ("turn:discord:9/8:message:77", "expired: the process ended before it was answered"),
        ("turn:telegram:42:message:2", "expired: the process ended before it was answered"),
    ]
    await inbox.close([entry.id for entry in await inbox.list_waiting()])
    await outbox.recover(NOON)
    assert await outbox.count_items() == OutboxCounts(held=1, due=1, dead=3)


async def test_keys_of_delivered_items_are_deleted_after_a_month(
    outbox: Outbox, clock: SteadyClock
) -> None:
    await filled(outbox, "a", "b")
    await outbox.mark_done("a")
    await outbox.record_failure("b", "gone")
    clock.advance(days=29)
    await outbox.recover(clock.now())
    assert (await hold(outbox, outbox_item("a"))).is_over
    clock.advance(days=2)
    await outbox.recover(clock.now())
    assert not (await hold(outbox, outbox_item("a"))).is_over
    assert await outbox.count_items() == OutboxCounts(held=1, due=0, dead=1)


async def test_dead_items_whose_content_was_erased_are_deleted_after_a_month(
    database: Database, outbox: Outbox, clock: SteadyClock
) -> None:
    await filled(outbox, "erased", "kept")
    for key in ("erased", "kept"):
        await outbox.record_failure(key, "gone")
    await database.execute("UPDATE outbox SET payload = NULL WHERE key = 'erased'")
    clock.advance(days=29)
    await outbox.recover(clock.now())
    assert (await outbox.count_items()).dead == 2
    clock.advance(days=2)
    await outbox.recover(clock.now())
    assert (await outbox.count_items()).dead == 1
    assert [dead_item.item.key for dead_item in await outbox.list_dead()] == ["kept"]


async def test_changes_of_an_empty_outbox_do_nothing(outbox: Outbox) -> None:
    assert await outbox.count_items() == OutboxCounts(held=0, due=0, dead=0)
    assert await outbox.find_next_due() is None
    for change in (
        outbox.mark_done("x"),
        outbox.claim("x"),
        outbox.record_failure("x", ""),
        outbox.set_posted("x", ["1"]),
    ):
        await change
    assert await outbox.list_due(NOON) == []


async def test_an_answer_that_has_left_can_be_opened_on_its_platform(
    database: Database, clock: SteadyClock
) -> None:
    outbox, inbox, recall = Outbox(database, clock), Inbox(database, clock), Recall(database, clock)
    conversations = Conversations(database, clock)
    base = "https://discord.com/channels/5/9/"
    await inbox.accept(inbound("700", link_base=base), NOON)
    opened_session = await opened(conversations)
    asked = message(opened_session.id, "when does the ferry leave?", external_id="700")
    answer = message(opened_session.id, "the ferry leaves at nine", role="assistant", sender=None)
    await conversations.append(
        [asked, answer], outbox_item=replace(outbox_item("a"), answer=ANSWER)
    )
    query = search_query(scopes=frozenset({ANA}), text="ferry", messages=2)

    async def links() -> set[str | None]:
        return {hit.link for hit in (await recall.recall(query)).messages}

    assert await links() == {f"{base}700", None}
    await outbox.set_posted("a", ["701", "702"])
    await outbox.mark_done("a")
    assert await links() == {f"{base}700", f"{base}701"}
    ids = {hit.external_id for hit in (await recall.recall(query)).messages}
    assert ids == {"700", None}, "what an import goes by stays as it is"
    (window,) = [
        found.window for found in (await recall.recall(replace(query, text="in:1"))).sessions
    ]
    assert [item.link for item in window] == [f"{base}700", f"{base}701"]
