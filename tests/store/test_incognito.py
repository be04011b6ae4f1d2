"""Where nothing is to be written down: the marks in state.db, and the adapters that keep something of their own."""

from __future__ import annotations

from core.store.inbox import Inbox
from core.store.incognito import IncognitoConversations, IncognitoRegistry
from core.store.sqlite.database import Database
from core.types import Address, Attachment, Command
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import CHAT, NOON, inbound

OTHER = Address(platform="telegram", chat_id="7", thread_id="3")


async def test_a_mark_outlives_the_process_until_it_is_lifted(database: Database, clock: SteadyClock) -> None:
    conversations = IncognitoConversations(database, clock, IncognitoRegistry())
    for address in (CHAT, CHAT, OTHER):
        await conversations.begin(address)
    assert await IncognitoConversations(database, clock, IncognitoRegistry()).left_over() == [CHAT, OTHER]
    await conversations.unmark(CHAT)
    await conversations.unmark(Address(platform="telegram", chat_id="nobody"))
    assert await conversations.left_over() == [OTHER]


async def test_only_the_id_of_what_waits_there_stays(database: Database, clock: SteadyClock) -> None:
    registry = IncognitoRegistry()
    inbox, conversations = Inbox(database, clock, registry), IncognitoConversations(database, clock, registry)
    await inbox.accept(inbound("1", text="secret", command=Command(name="recall", arguments="secret")), NOON)
    await conversations.begin(CHAT)
    photo = Attachment(kind="photo", name="secret.jpg")
    entry_id = await inbox.accept(inbound("2", text="secret", attachments=(photo,), reply_to="secret"), NOON)
    assert entry_id is not None
    first, second = await inbox.waiting()
    assert "secret" not in f"{first} {second}"
    await inbox.update(type(second)(id=second.id, inbound=inbound("2", text="secret again"), received_at=NOON))
    assert "secret" not in str(await inbox.waiting())
    await inbox.accept(inbound("3", text="open", address=OTHER), NOON)
    assert [entry.inbound.text for entry in await inbox.waiting()][-1] == "open"

    assert await conversations.left_over() == [CHAT]
    assert [entry.inbound.text for entry in await inbox.waiting()] == ["open"]
    assert await inbox.accept(inbound("2", text="secret"), NOON) is None, "it is known by its id"
