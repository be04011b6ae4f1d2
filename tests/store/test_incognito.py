"""Where nothing is to be written down: the marks in state.db, and the adapters that keep something of their own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from adapters.telegram.adapter import Telegram
from core.store.inbox import Inbox
from core.store.incognito import IncognitoMarks, IncognitoRegistry
from core.store.sqlite.database import Database
from core.types import Address, Attachment, Command, RawUpdate
from tests.fixtures.bot_api import BotApi
from tests.fixtures.clock import SteadyClock
from tests.fixtures.echo_desk import EchoDesk
from tests.fixtures.samples import CHAT, NOON, inbound

OTHER = Address(platform="telegram", chat_id="7", thread_id="3")


async def test_a_mark_outlives_the_process_until_it_is_lifted(database: Database, clock: SteadyClock) -> None:
    marks = IncognitoMarks(database, clock)
    await marks.add(CHAT)
    await marks.add(CHAT)
    await marks.add(OTHER)
    assert await IncognitoMarks(database, clock).left_over() == [CHAT, OTHER]
    await marks.remove(CHAT)
    await marks.remove(Address(platform="telegram", chat_id="nobody"))
    assert await marks.left_over() == [OTHER]


async def test_only_the_id_of_what_waits_there_stays(database: Database, clock: SteadyClock) -> None:
    registry = IncognitoRegistry()
    inbox, marks = Inbox(database, clock, registry), IncognitoMarks(database, clock)
    await inbox.accept(inbound("1", text="secret", command=Command(name="recall", arguments="secret")), NOON)
    await marks.add(CHAT)
    registry.add(CHAT)
    photo = Attachment(kind="photo", name="secret.jpg")
    entry_id = await inbox.accept(inbound("2", text="secret", attachments=(photo,), reply_to="secret"), NOON)
    assert entry_id is not None
    first, second = await inbox.waiting()
    assert "secret" not in f"{first} {second}"
    await inbox.update(type(second)(id=second.id, inbound=inbound("2", text="secret again"), received_at=NOON))
    assert "secret" not in str(await inbox.waiting())
    await inbox.accept(inbound("3", text="open", address=OTHER), NOON)
    assert [entry.inbound.text for entry in await inbox.waiting()][-1] == "open"

    assert await marks.left_over() == [CHAT]
    assert [entry.inbound.text for entry in await inbox.waiting()] == ["open"]
    assert await inbox.accept(inbound("2", text="secret"), NOON) is None, "it is known by its id"


async def test_an_update_of_telegram_is_not_kept_as_it_came(database: Database, clock: SteadyClock) -> None:
    registry, kept = IncognitoRegistry(), list[str]()

    class Watched(Inbox):
        async def add_raw(self, updates: Sequence[RawUpdate]) -> None:
            kept.extend(update.raw for update in updates)
            await super().add_raw(updates)

    inbox = Watched(database, clock, registry)
    registry.add(CHAT)
    async with BotApi() as api:
        api.person(42, "Ana", "ana")
        api.person(7, "Bob", "bob")
        adapter = Telegram(token=api.token, api_url=api.url, inbox=inbox, clock=clock, poll_timeout_s=5, backoff_s=0.01)
        await adapter.open()
        desk = EchoDesk(inbox, clock)
        listening = asyncio.create_task(adapter.listen(desk, ()))
        try:
            api.user_says(42, "the quetzal is mine")
            api.user_says(7, "an open word")
            await api.wait_for(lambda: api.texts(42) and api.texts(7))
        finally:
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening
            await adapter.close()
        assert sorted(desk.texts) == ["an open word", "the quetzal is mine"]
    assert "an open word" in str(kept)
    assert "quetzal" not in str(kept)
