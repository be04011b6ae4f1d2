"""The contract of Conversations: what is written once is read back exactly, by those it belongs to;
where nothing is to be written down, the marks in state.db and what adapters keep of their own."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.errors import StoreError
from core.store import rows
from core.store.engine import Database
from core.store.incognito import IncognitoRegistry
from core.store.mailbox import Inbox, Outbox, OutboxItem
from core.store.messages import HistoryCache
from core.store.sessions import Conversations
from core.types import (
    Address,
    Answer,
    Attachment,
    CarryOver,
    Command,
    Message,
    Quote,
    Scope,
    Sender,
    SessionEnd,
    SessionPrompt,
    Usage,
)
from tests.fixtures.clock import SteadyClock
from tests.fixtures.delivery_record import hold
from tests.fixtures.samples import ANA, BOB, CHAT, NOON, inbound, message, opened, session
from tests.store.conftest import OpenStore

MINE = frozenset((ANA,))
ELSEWHERE = Address(platform="discord", chat_id="9")
LATER = NOON + timedelta(hours=1)
LATE = timedelta(hours=20)
"""What waits on a platform while we are not there is heard after it was said."""


@pytest.fixture
def conversations(database: Database, clock: SteadyClock) -> Conversations:
    return Conversations(database, clock)


async def ask(database: Database, statement: str) -> list[tuple[Any, ...]]:
    """What an outsider reads in the file."""
    return await database.read(
        lambda connection: [tuple(row) for row in connection.execute(statement)]
    )


def texts(messages: list[Message]) -> list[str]:
    return [row.text for row in messages]


async def test_stored_session_is_loaded_unchanged(conversations: Conversations) -> None:
    wanted = session(
        prompt=SessionPrompt(text="You are."), model="m", title="Ferry \ud83d", external_id="x1"
    )
    made = await conversations.create(wanted)
    assert made == replace(wanted, id=made.id, root_id=made.id, last_at=NOON, title="Ferry \ufffd")
    assert await conversations.find_open(CHAT) == made
    assert await conversations.find(made.id, MINE) == made
    assert await conversations.find_open(ELSEWHERE) is None


async def test_new_session_ends_only_the_open_session_of_its_own_address(
    conversations: Conversations,
) -> None:
    first = await opened(conversations, "one")
    thread = await conversations.create(
        session(address=Address(platform="telegram", chat_id="42", thread_id="7"))
    )
    second = await conversations.create(session(started_at=LATER))
    ended = await conversations.find(first.id, MINE)
    assert ended is not None
    assert ended.end == SessionEnd(at=LATER, reason="new")
    assert await conversations.find_open(CHAT) == second
    assert await conversations.find_open(thread.address) == thread


async def test_ended_session_keeps_the_reason_of_its_first_end(
    conversations: Conversations,
) -> None:
    made = await opened(conversations)
    await conversations.end(made.id, "compression", LATER)
    await conversations.end(made.id, "cron", LATER + timedelta(hours=1))
    await conversations.create(session())
    ended = await conversations.find(made.id, MINE)
    assert ended is not None
    assert ended.end == SessionEnd(at=LATER, reason="compression")


async def test_a_delegated_session_is_in_no_list_and_a_lineage_of_its_own(
    conversations: Conversations,
) -> None:
    current = await opened(conversations, "one")
    made = await conversations.create(
        session(parent_id=current.id, end=SessionEnd(at=NOON), is_delegated=True)
    )
    await conversations.append([message(made.id, "Compare the ferries")])
    assert (made.is_delegated, made.parent_id, made.root_id) == (True, current.id, made.id)
    assert await conversations.find_open(CHAT) == current
    assert [one.id for one in await conversations.list_recent(MINE, 9)] == [current.id]
    assert texts(await conversations.load_history(made, MINE)) == ["Compare the ferries"]


async def test_imported_session_does_not_replace_the_open_session_of_its_chat(
    conversations: Conversations,
) -> None:
    current = await opened(conversations)
    past = session(
        end=SessionEnd(at=NOON, reason="import"),
        external_id="old-1",
        started_at=NOON - timedelta(days=9),
    )
    imported = await conversations.create(past)
    assert await conversations.find_open(CHAT) == current
    assert (await conversations.create(replace(past, scope=BOB))).id != imported.id


async def test_reopened_session_continues_with_its_stored_prompt_and_ends_the_open_session(
    conversations: Conversations,
) -> None:
    first = await opened(conversations, "one", prompt=SessionPrompt(text="as it was"))
    second = await opened(conversations)
    again = await conversations.reopen(first.id, LATER)
    assert again == replace(first, end=None)
    assert await conversations.find_open(CHAT) == again
    other = await conversations.find(second.id, MINE)
    assert other is not None
    assert other.end == SessionEnd(at=LATER, reason="resumed")
    assert await conversations.reopen(first.id, LATER) == again
    with pytest.raises(StoreError, match="no session 99"):
        await conversations.reopen(99, LATER)


async def test_stored_prompt_of_a_session_is_never_replaced_but_its_title_is(
    conversations: Conversations,
) -> None:
    made = await opened(conversations)
    await conversations.retitle(made.id, "Ferry")
    assert (await conversations.store_prompt(made.id, "first")).prompt.text == "first"
    kept = await conversations.store_prompt(made.id, "second")
    assert (kept.prompt.text, kept.title) == ("first", "Ferry")


async def test_sessions_of_one_lineage_share_a_root(conversations: Conversations) -> None:
    first = await opened(conversations, "one")
    child = await conversations.create(session(parent_id=first.id))
    grandchild = await conversations.create(session(parent_id=child.id))
    assert (first.root_id, child.root_id, grandchild.root_id) == (first.id, first.id, first.id)
    with pytest.raises(StoreError):
        await conversations.create(session(parent_id=99))
    assert await conversations.find_open(CHAT) == grandchild


async def test_stored_message_is_loaded_unchanged(conversations: Conversations) -> None:
    made = await opened(conversations)
    said = message(
        made.id,
        "Grüße из 東京 \U0001f600",
        blocks=({"type": "text", "text": "other"}, {"type": "image", "source": {"data": "AA=="}}),
        sent_blocks=({"type": "text", "text": "Friday"},),
        external_id="5",
        sender=Sender(id="-100", name="", is_anonymous=True),
        tool_name="session_search",
        tools="",
        kind="quote",
        usage=Usage(input=1, output=2, cache_read=3, cache_write=4),
    )
    bare = message(made.id, "", blocks=(), sender=None, role="assistant")
    stored = await conversations.append([said, bare])
    assert stored == [replace(said, id=stored[0].id), replace(bare, id=stored[1].id)]
    assert await conversations.load_history(made, MINE) == stored


async def test_only_blocks_that_differ_from_the_text_are_stored(
    conversations: Conversations, database: Database
) -> None:
    made = await opened(conversations)
    plain = ({"type": "text", "text": "hello"},)
    picture = ({"type": "image", "source": {}}, {"type": "text", "text": "hello"})
    stored = await conversations.append(
        [message(made.id, blocks=plain), message(made.id, blocks=picture, sent_blocks=picture)]
    )
    assert [(row.blocks, row.sent_blocks) for row in stored] == [(None, None), (picture, picture)]
    await conversations.append((), sent_blocks=[(stored[0].id, (*plain, *plain)), (99, plain)])
    assert [row.sent_blocks for row in await conversations.load_history(made, MINE)] == [
        (*plain, *plain),
        picture,
    ]
    await conversations.end(made.id, "new", LATER)
    assert await ask(database, "SELECT COUNT(*) FROM messages WHERE sent IS NOT NULL") == [(2,)], (
        "it may be resumed"
    )


async def test_sent_form_of_a_message_erased_meanwhile_is_not_stored(
    conversations: Conversations, database: Database
) -> None:
    made = await opened(conversations)
    (said,) = await conversations.append([message(made.id, "the vault code", external_id="5")])
    await conversations.amend(CHAT, "5", None)
    await conversations.append(
        (), sent_blocks=[(said.id, ({"type": "text", "text": "[now] the vault code"},))]
    )
    assert await ask(database, "SELECT COUNT(*) FROM messages WHERE sent IS NOT NULL") == [(0,)]


async def test_session_counts_its_messages_and_tokens(conversations: Conversations) -> None:
    made = await opened(conversations)
    await conversations.append(
        [
            message(made.id, external_id="1"),
            message(made.id, role="assistant", created_at=LATER),
            message(made.id, "/help", kind="command"),
        ]
    )
    await conversations.append([message(made.id, external_id="1"), message(made.id)])
    found = await conversations.find(made.id, MINE)
    assert found is not None
    assert (found.messages, found.last_at) == (3, LATER)


async def test_a_session_began_with_its_oldest_message(conversations: Conversations) -> None:
    made = await opened(conversations)
    await conversations.append(
        [message(made.id, created_at=LATER), message(made.id, created_at=NOON - LATE)]
    )
    found = await conversations.find(made.id, MINE)
    assert found is not None
    assert (found.started_at, found.last_at) == (NOON - LATE, LATER)


async def test_redelivered_message_is_returned_as_stored(conversations: Conversations) -> None:
    first = await opened(conversations)
    (stored,) = await conversations.append([message(first.id, "first", external_id="5")])
    second = await conversations.create(session())
    thread = await conversations.create(session(address=ELSEWHERE))
    again = await conversations.append(
        [
            message(second.id, "again", external_id="5"),
            message(thread.id, "other chat", external_id="5"),
        ]
    )
    assert again[0] == stored
    assert again[1].id != stored.id
    assert await conversations.load_history(second, MINE) == []


async def test_answer_its_inbox_entries_and_its_delivery_are_stored_in_one_transaction(
    conversations: Conversations, database: Database, clock: SteadyClock
) -> None:
    inbox, outbox = Inbox(database, clock), Outbox(database, clock)
    made = await opened(conversations)
    entries = [await inbox.accept(inbound(number), NOON) for number in ("1", "2")]
    assert None not in entries
    held = await hold(outbox, OutboxItem(key="turn:1", kind="answer", address=CHAT, reply_to="1"))
    await outbox.set_posted("turn:1", ["501"])
    outbox_item = replace(held, answer=Answer(text="done"), next_at=NOON)
    with pytest.raises(StoreError, match="no session 99"):
        await conversations.append(
            [message(made.id), message(99)], [e for e in entries if e], outbox_item
        )
    assert await conversations.load_history(made, MINE) == []
    assert len(await inbox.list_waiting()) == 2
    assert await outbox.list_due(NOON) == []
    await conversations.append([message(made.id)], [e for e in entries if e], outbox_item)
    assert await inbox.list_waiting() == []
    assert await outbox.list_due(NOON) == [replace(outbox_item, posted=("501",))]
    await outbox.mark_done("turn:1")
    await conversations.append([], (), outbox_item)
    assert await outbox.list_due(NOON) == []


async def test_delivery_that_was_not_held_before_is_created_with_its_message(
    conversations: Conversations, outbox: Outbox
) -> None:
    outbox_item = OutboxItem(
        key="late", kind="notice", address=CHAT, answer=Answer(text="x"), next_at=NOON
    )
    await conversations.append([], (), outbox_item)
    (due,) = await outbox.list_due(NOON)
    assert due == replace(outbox_item, id=due.id)


@pytest.fixture
def outbox(database: Database, clock: SteadyClock) -> Outbox:
    return Outbox(database, clock)


async def test_session_history_contains_chat_and_quotes_but_no_commands_or_notices(
    conversations: Conversations,
) -> None:
    made = await opened(conversations)
    kinds = ("chat", "command", "quote", "notice")
    await conversations.append([message(made.id, kind, kind=kind) for kind in kinds])
    assert texts(await conversations.load_history(made, MINE)) == ["chat", "quote"]


async def test_history_of_a_child_session_begins_with_the_messages_it_carries_over(
    conversations: Conversations,
) -> None:
    sent = ({"type": "text", "text": "as sent"},)
    first = await opened(conversations)
    a, b, c = await conversations.append(
        [message(first.id, text, sent_blocks=sent) for text in "abc"]
    )
    child = await conversations.create(
        session(parent_id=first.id, carry_over=CarryOver(parent_from=b.id))
    )
    await conversations.append([message(child.id, text, sent_blocks=sent) for text in "de"])
    rows = await conversations.load_history(child, MINE)
    assert texts(rows) == list("bcde")
    assert [row.sent_blocks for row in rows] == [sent] * 4
    grandchild = await conversations.create(
        session(parent_id=child.id, carry_over=CarryOver(parent_from=c.id))
    )
    await conversations.append([message(grandchild.id, "f")])
    assert texts(await conversations.load_history(grandchild, MINE)) == list("cdef")
    orphan = await conversations.create(session(parent_id=first.id))
    await conversations.append([message(orphan.id, "g")])
    below = await conversations.create(
        session(parent_id=orphan.id, carry_over=CarryOver(parent_from=a.id))
    )
    assert texts(await conversations.load_history(below, MINE)) == ["g"]


async def test_memory_block_of_a_wider_view_is_not_carried_into_the_child(
    conversations: Conversations,
) -> None:
    parent = await opened(conversations)
    await conversations.store_prompt(parent.id, "prompt", frozenset((*MINE, BOB)))
    sent = tuple(
        {"type": "text", "text": text} for text in ("[now]", "[answers]", "a", "<memory-context>\n")
    )
    (said,) = await conversations.append([message(parent.id, "a", sent_blocks=sent)])
    child = await conversations.create(
        session(parent_id=parent.id, carry_over=CarryOver(parent_from=said.id), address=ELSEWHERE)
    )
    (row,) = await conversations.load_history(child, MINE)
    assert row.sent_blocks == sent[:3]
    (row,) = await conversations.load_history(child, frozenset((*MINE, BOB)))
    assert row.sent_blocks == sent


async def test_later_message_of_a_parent_does_not_enter_the_prefix_of_its_child(
    conversations: Conversations,
) -> None:
    parent = await opened(conversations, "a", "b")
    parent_from = (await conversations.load_history(parent, MINE))[0].id
    child = await conversations.create(
        session(
            parent_id=parent.id, carry_over=CarryOver(parent_from=parent_from), address=ELSEWHERE
        )
    )
    await conversations.append([message(child.id, "c")])
    await conversations.append([message(parent.id, "said meanwhile")])
    await conversations.append([message(child.id, "d")])
    assert texts(await conversations.load_history(child, MINE)) == list("abcd")


async def test_session_history_omits_ancestors_outside_of_the_given_scopes(
    conversations: Conversations,
) -> None:
    theirs = await opened(conversations, "secret", scope=BOB, address=ELSEWHERE)
    (parent_from,) = [row.id for row in await conversations.load_history(theirs, frozenset((BOB,)))]
    child = await conversations.create(
        session(parent_id=theirs.id, carry_over=CarryOver(parent_from=parent_from))
    )
    await conversations.append([message(child.id, "mine")])
    assert texts(await conversations.load_history(child, MINE)) == ["mine"]
    assert texts(await conversations.load_history(child, frozenset((ANA, BOB)))) == [
        "secret",
        "mine",
    ]
    assert await conversations.load_history(child, frozenset((BOB,))) == []


async def test_edited_message_leaves_none_of_its_old_words_in_the_database(
    conversations: Conversations, database: Database
) -> None:
    made = await opened(conversations)
    blocks = ({"type": "text", "text": "look"}, {"type": "text", "text": "4711"})
    await conversations.append(
        [
            message(
                made.id,
                "my pin is 4711",
                external_id="5",
                sent_blocks=({"type": "text", "text": "at noon 4711"},),
            ),
            message(made.id, "look 4711", external_id="6", blocks=blocks),
        ]
    )
    assert await conversations.amend(CHAT, "5", "my pin is secret")
    assert await conversations.amend(CHAT, "6", "look \ud800")
    assert not await conversations.amend(CHAT, "7", "unknown")
    assert not await conversations.amend(ELSEWHERE, "5", "another chat")
    first, second = await conversations.load_history(made, MINE)
    assert (first.text, first.blocks, first.sent_blocks) == ("my pin is secret", None, None)
    assert (second.text, second.blocks) == ("look \ufffd", None)
    assert "4711" not in str(await ask(database, "SELECT * FROM messages"))


async def test_session_title_made_from_a_message_is_dropped_when_that_message_is_edited(
    conversations: Conversations,
) -> None:
    async def retold(title: str, text: str | None, *typed: str) -> str | None:
        made = await opened(conversations)
        await conversations.append(
            [message(made.id, "/help", kind="command", external_id=f"{title} before")]
        )
        await conversations.append([message(made.id, f"the pin for {title}", external_id=title)])
        await conversations.append([message(made.id, one, kind="command") for one in typed])
        await conversations.append([message(made.id, "more", external_id=f"{title} later")])
        await conversations.retitle(made.id, title)
        assert await conversations.amend(CHAT, f"{title} later", "less")
        assert await conversations.amend(CHAT, f"{title} before", None)
        assert await conversations.amend(CHAT, title, text)
        found = await conversations.find(made.id, MINE)
        await conversations.end(made.id, "new", NOON)
        return None if found is None else found.title

    assert await retold("Banks", "the tea") is None
    assert await retold("Doors", None) is None
    assert await retold("Ships", "the tea", "/title Ships") == "Ships", "the person gave it"
    assert await retold("Trees", "the pin for Trees") == "Trees", "nothing was changed"


async def test_message_edit_without_a_change_leaves_the_prompt_prefix_unchanged(
    conversations: Conversations,
) -> None:
    made = await opened(conversations)
    sent = ({"type": "text", "text": "at noon: hello"},)
    await conversations.append([message(made.id, "hello", external_id="5", sent_blocks=sent)])
    assert await conversations.amend(CHAT, "5", "hello")
    assert (await conversations.load_history(made, MINE))[0].sent_blocks == sent


async def test_an_erased_message_is_gone_and_never_taken_again(
    conversations: Conversations, database: Database, clock: SteadyClock
) -> None:
    made = await opened(conversations)
    await conversations.append(
        [message(made.id, "forget this", external_id="5"), message(made.id, "stays")]
    )
    for _ in range(2):
        assert await conversations.amend(CHAT, "5", None)
    assert await conversations.amend(CHAT, "5", "an edit that arrives too late")
    assert texts(await conversations.load_history(made, MINE)) == ["stays"]
    found = await conversations.find(made.id, MINE)
    assert found is not None
    assert found.messages == 1
    assert "forget this" not in str(await ask(database, "SELECT * FROM messages"))
    assert await Inbox(database, clock).accept(inbound("5"), NOON) is None


async def test_the_arguments_of_an_edited_command_are_not_kept(
    conversations: Conversations, database: Database
) -> None:
    made = await opened(conversations)
    await conversations.append([message(made.id, "/approve", external_id="5", kind="command")])
    assert await conversations.amend(CHAT, "5", "/approve K7WX2MAA")
    assert await ask(database, "SELECT text FROM messages") == [("/approve",)]


async def test_session_of_another_scope_is_answered_like_a_missing_session(
    conversations: Conversations,
) -> None:
    made = await opened(conversations, "hello")
    for scopes in (frozenset[Any](), frozenset((BOB,))):
        assert await conversations.find(made.id, scopes) is None
        assert await conversations.load_history(made, scopes) == []
    assert await conversations.find(10**30, MINE) is None


async def test_concurrent_appends_store_each_external_id_once(conversations: Conversations) -> None:
    made = await opened(conversations)
    stored = await asyncio.gather(
        *(
            conversations.append([message(made.id, str(n), external_id=str(n % 40))])
            for n in range(50)
        )
    )
    rows = await conversations.load_history(made, MINE)
    assert len(rows) == 40
    assert {batch[0].id for batch in stored} == {row.id for row in rows}
    found = await conversations.find(made.id, MINE)
    assert found is not None
    assert found.messages == 40


async def test_a_cancelled_append_is_whole_or_nothing(conversations: Conversations) -> None:
    made = await opened(conversations)
    tasks = [
        asyncio.create_task(conversations.append([message(made.id, text) for text in "abc"]))
        for _ in range(20)
    ]
    await tasks[3]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    rows = texts(await conversations.load_history(made, MINE))
    assert rows == list("abc") * (len(rows) // 3)
    assert len(rows) >= 12


async def test_a_second_process_reads_what_the_first_has_written(
    conversations: Conversations, open_store: OpenStore, clock: SteadyClock
) -> None:
    made = await opened(conversations, "from the gateway")
    async with open_store() as other:
        beside = Conversations(other, clock)
        assert texts(await beside.load_history(made, MINE)) == ["from the gateway"]
        await beside.append([message(made.id, "from the command line")])
    assert texts(await conversations.load_history(made, MINE)) == [
        "from the gateway",
        "from the command line",
    ]


OTHER = Address(platform="telegram", chat_id="7", thread_id="3")


async def test_incognito_mark_of_a_chat_survives_a_restart_until_it_is_removed(
    database: Database, clock: SteadyClock
) -> None:
    conversations = Conversations(database, clock, IncognitoRegistry())
    for address in (CHAT, CHAT, OTHER):
        await conversations.begin_incognito(address)
    assert await Conversations(database, clock, IncognitoRegistry()).recover_incognito() == [
        CHAT,
        OTHER,
    ]
    await conversations.unmark_incognito(CHAT)
    await conversations.unmark_incognito(Address(platform="telegram", chat_id="nobody"))
    assert await conversations.recover_incognito() == [OTHER]


async def test_only_the_id_of_a_waiting_incognito_message_is_stored(
    database: Database, clock: SteadyClock
) -> None:
    registry = IncognitoRegistry()
    inbox, conversations = (
        Inbox(database, clock, registry),
        Conversations(database, clock, registry),
    )
    await inbox.accept(
        inbound("1", text="secret", command=Command(name="recall", arguments="secret")), NOON
    )
    await conversations.begin_incognito(CHAT)
    photo = Attachment(kind="photo", name="secret.jpg")
    entry_id = await inbox.accept(
        inbound("2", text="secret", attachments=(photo,), reply_to="secret"), NOON
    )
    assert entry_id is not None
    first, second = await inbox.list_waiting()
    assert "secret" not in f"{first} {second}"
    await inbox.update(
        type(second)(id=second.id, inbound=inbound("2", text="secret again"), received_at=NOON)
    )
    assert "secret" not in str(await inbox.list_waiting())
    await inbox.accept(inbound("3", text="open", address=OTHER), NOON)
    assert [entry.inbound.text for entry in await inbox.list_waiting()][-1] == "open"

    assert await conversations.recover_incognito() == [CHAT]
    assert [entry.inbound.text for entry in await inbox.list_waiting()] == ["open"]
    assert await inbox.accept(inbound("2", text="secret"), NOON) is None, "it is known by its id"


async def test_appending_a_message_does_not_change_the_data_version_seen_by_its_own_process(
    conversations: Conversations, database: Database
) -> None:
    talk = await opened(conversations, "one")
    before = await database.data_version()
    for _ in range(20):
        await conversations.append([message(talk.id)])
    assert await database.data_version() == before


@pytest.mark.parametrize(
    ("answers", "given", "expected"),
    [
        ("7", None, ("the ferry", "Ana", False)),
        ("p1", None, ("At nine. And ten.", "", True)),
        ("p2", "And ten.", ("And ten.", "", True)),
        ("c1", "the code is 123", ("kept: ***", "", True)),
        ("8", "what was said there", ("what was said there", "", False)),
        ("theirs", None, None),
        ("gone", "what was there", ("", "", False)),
        ("99", "unknown", ("unknown", "", False)),
        (None, None, None),
    ],
)
async def test_quoted_message_is_looked_up_among_visible_ones_of_its_chat(
    conversations: Conversations,
    outbox: Outbox,
    answers: str | None,
    given: str | None,
    expected: object,
) -> None:
    first, theirs = (
        await opened(conversations),
        await opened(conversations, scope=BOB, address=ELSEWHERE),
    )
    await conversations.append(
        [message(first.id, "the ferry", external_id="7", sender=Sender(id="1", name="Ana"))]
    )
    for key, text, kind in (("one", "At nine. And ten.", "chat"), ("two", "kept: ***", "command")):
        said = message(first.id, text, role="assistant", kind=kind, sender=None)
        made = OutboxItem(
            key=key, kind="answer", address=first.address, answer=Answer(text="…"), next_at=NOON
        )
        await conversations.append([said], (), made)
        await outbox.mark_done(key, ("p1", "p2") if key == "one" else ("c1",))
    await conversations.append([message(theirs.id, "a secret", external_id="8")])
    parted = await conversations.create(session(scope=BOB))
    await conversations.append([message(parted.id, "another secret", external_id="theirs")])
    mine = await conversations.create(session())
    await conversations.append([message(mine.id, "forgotten", external_id="gone")])
    await conversations.amend(CHAT, "gone", None)
    quoted = None if given is None else Quote(kind="reply", text=given)
    asked = replace(inbound("x"), reply_to=answers, quote=quoted)
    found = await conversations.resolve_quote(asked, MINE)
    assert (found and (found.text, found.name, found.is_ours)) == expected


async def test_at_most_500_characters_are_quoted(conversations: Conversations) -> None:
    made = await opened(conversations)
    await conversations.append([message(made.id, "x" * 501, external_id="7")])
    found = await conversations.resolve_quote(replace(inbound("x"), reply_to="7"), MINE)
    assert found is not None
    assert found.text == "x" * 498 + " …"


async def read_open(conversations: Conversations, scopes: frozenset[Scope] = MINE) -> list[Message]:
    loaded = await conversations.load_open(CHAT, scopes)
    assert loaded is not None
    return loaded[1]


async def test_cached_session_history_equals_the_stored_history_after_every_kind_of_change(
    database: Database, clock: SteadyClock, conversations: Conversations
) -> None:
    async def check(*expected: str) -> None:
        fresh = Conversations(database, clock)
        history = await read_open(conversations)
        assert history == await read_open(fresh)
        assert texts(history) == list(expected)

    made = await opened(conversations, "one")
    await check("one")
    await conversations.append([message(made.id, "two", external_id="2")])
    await check("one", "two")
    other_process = Conversations(database, clock)
    await other_process.append([message(made.id, "three", external_id="3")])
    await check("one", "two", "three")
    await other_process.amend(CHAT, "2", "2, edited")
    await check("one", "2, edited", "three")
    [*_, last] = await read_open(conversations)
    await other_process.append((), sent_blocks=[(last.id, ({"type": "text", "text": "sent"},))])
    assert (await read_open(conversations))[-1].sent_blocks is not None
    await other_process.amend(CHAT, "3", None)
    await check("one", "2, edited")
    await database.execute("DELETE FROM messages WHERE text = 'one'")
    await check("2, edited")
    # The id of the last message is used again.
    await database.execute("DELETE FROM messages WHERE session_id = :id", {"id": made.id})
    await other_process.append([message(made.id, "four")])
    await check("four")
    child = await conversations.create(
        session(parent_id=made.id, carry_over=CarryOver(parent_from=1)),
        "compression",
        summary=message(0, "so far", kind="summary"),
    )
    await check("so far", "four")
    await conversations.append([message(child.id, "five")])
    await check("so far", "four", "five")
    await other_process.append([message(child.id, "six")])
    await database.execute("UPDATE messages SET text = 'for' WHERE text = 'four'")
    await check("so far", "for", "five", "six")


async def test_cached_session_history_is_used_only_for_the_scopes_it_was_loaded_for(
    conversations: Conversations,
) -> None:
    parent = await conversations.create(session(address=ELSEWHERE, scope=BOB))
    [first, second] = await conversations.append(
        [message(parent.id, "theirs"), message(parent.id, "theirs, too")]
    )
    head = CarryOver(parent_from=second.id, head_from=first.id, head_until=first.id)
    child = await conversations.create(session(parent_id=parent.id, carry_over=head))
    await conversations.append([message(child.id, "mine")])
    both = MINE | {BOB}
    assert texts(await read_open(conversations, both)) == ["theirs", "theirs, too", "mine"]
    assert texts(await read_open(conversations)) == ["mine"]
    assert texts(await read_open(conversations, frozenset((BOB,)))) == ["theirs"]
    await conversations.append([message(child.id, "mine, too")])
    assert texts(await read_open(conversations, frozenset((BOB,)))) == ["theirs"]
    assert texts(await read_open(conversations)) == ["mine", "mine, too"]


async def test_cached_session_histories_are_bounded_in_number_and_length(
    database: Database,
) -> None:
    conversations = Conversations(database, SteadyClock())
    cache = HistoryCache(max_messages=10, max_chars=10_000)

    async def load(chat: int) -> list[Message]:
        address = Address(platform="telegram", chat_id=str(chat))
        made = await conversations.find_open(address)
        if made is None:
            made = await conversations.create(session(address=address))
            await conversations.append([message(made.id, f"{chat} " + "x" * chat * 10)] * 3)
        kept = made
        return await database.read(lambda connection: cache.load_and_keep(connection, kept, MINE))

    first = (await load(1))[0]
    assert (await load(1))[0] is first
    for chat in range(2, 6):
        await load(chat)
        assert cache.message_count <= 9
    assert (await load(1))[0] is not first
    for chat in range(100, 120):
        assert len(await load(chat)) == 3
        assert cache.char_count <= 10_000
    assert cache.message_count <= 9
    # A history beyond the bound isn't kept, but it's loaded.
    assert len(await load(1_000)) == 3
    cache.clear()
    assert cache.char_count == cache.message_count == 0


def test_last_turn_is_the_last_of_all_turns() -> None:
    kinds = {"u": ("user", "chat"), "a": ("assistant", "chat"), "s": ("user", "summary")}
    for length in range(7):
        for letters in itertools.product("uas", repeat=length):
            messages = []
            for number, letter in enumerate(letters):
                role, kind = kinds[letter]
                messages.append(message(1, "x", id=number, role=role, kind=kind))
            turns = rows.split_turns(messages)
            last_turn = rows.find_last_turn(messages)
            assert last_turn == (turns[-1] if turns else []), letters
            assert rows.is_first_turn(messages, last_turn) == (len(turns) <= 1), letters


async def test_value_folded_over_a_session_history_is_updated_only_with_added_messages(
    conversations: Conversations,
) -> None:
    added: list[str] = []

    def add(value: str, row: Message) -> str:
        added.append(row.text)
        return f"{value} {row.text}"

    made = await opened(conversations, "one")
    assert rows.fold(await read_open(conversations), add, "") == " one"
    await conversations.append([message(made.id, "two"), message(made.id, "three")])
    history = await read_open(conversations)
    history += [message(made.id, "not stored")]
    assert rows.fold(history, add, "") == " one two three not stored"
    await conversations.append([message(made.id, "four")])
    assert rows.fold(await read_open(conversations), add, "") == " one two three four"
    assert added == ["one", "two", "three", "not stored", "four"]
    await conversations.amend(CHAT, "1", None)
    await conversations.append([message(made.id, "five", external_id="5")])
    await conversations.amend(CHAT, "5", "5")
    assert rows.fold(await read_open(conversations), add, "") == " one two three four 5"
