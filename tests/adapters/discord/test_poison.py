"""Nothing that one event does makes Discord deaf: tried three times, set aside, and the next one is
answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from core.errors import StoreError
from core.ports import Reply
from core.store.engine import Connection
from core.store.mailbox import Inbox
from core.store.rows import ensure_address
from core.store.sqlite.database import Database
from core.types import Address, Inbound
from tests.fixtures.clock import SteadyClock
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.discord_setup import checked, listening, make
from tests.fixtures.echo_router import EchoRouter
from tests.fixtures.fake_router import FakeRouter

pytestmark = pytest.mark.slow


@pytest.fixture
async def api() -> AsyncIterator[DiscordApi]:
    async with checked(DiscordApi()) as double:
        yield double


class FailingRouter(FakeRouter):
    """`failure` is raised for what it says, `times` times, before anything is admitted."""

    def __init__(self, failure: Exception, text: str, times: int) -> None:
        super().__init__()
        self.failure = failure
        self.text = text
        self.left = times
        self.tries = 0

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        if self.text in inbound.text and self.left:
            self.left -= 1
            self.tries += 1
            raise self.failure
        return await super().admit(inbound, reply)


async def set_aside(database: Database) -> list[tuple[str, str]]:
    found = await database.fetch_all(
        "SELECT raw, error FROM raw_updates WHERE platform = 'discord'"
    )
    return [(json.loads(row["raw"]).get("content", ""), row["error"]) for row in found]


@pytest.mark.parametrize("failure", [ValueError("odd"), RuntimeError("odd"), OSError("odd")])
async def test_discord_event_that_fails_three_times_is_set_aside_and_the_next_is_served(
    api: DiscordApi, inbox: Inbox, database: Database, failure: Exception
) -> None:
    router = FailingRouter(failure, "poison", 99)
    ana = api.user("Ana")
    channel = api.dm(ana)
    async with listening(make(api, inbox), router, api):
        message_id = await api.user_says(channel, "poison", ana)
        await api.user_says(channel, "bread", ana)
        await api.wait_for(lambda: router.seen)
        assert [inbound.text for inbound in router.seen] == ["bread"]
        assert router.tries == 3
        assert await set_aside(database) == [("poison", f"{type(failure).__name__}: odd")]
        (row,) = await database.fetch_all("SELECT update_id FROM raw_updates")
        assert row["update_id"] == int(message_id)


async def test_dead_letter_is_not_tried_again_by_the_next_process(
    api: DiscordApi, inbox: Inbox, clock: SteadyClock, database: Database
) -> None:
    class Poisoned(EchoRouter):
        tries = 0

        async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
            if inbound.text == "poison":
                self.tries += 1
                raise ValueError("odd")
            return await super().admit(inbound, reply)

    ana = api.user("Ana")
    channel = api.dm(ana)
    router = Poisoned(inbox, clock)
    async with listening(make(api, inbox), router, api):
        await api.user_says(channel, "before", ana)
        await api.wait_for(lambda: router.is_idle.is_set() and router.texts)
        await api.user_says(channel, "poison", ana)
        await api.wait_for(lambda: router.tries == 3)
        await until(api, lambda: _count(database), 1)
    await api.user_says(channel, "missed", ana, is_told=False)
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: router.texts == ["before", "missed"])
        assert router.tries == 3


async def _count(database: Database) -> int:
    return len(await database.fetch_all("SELECT 1 FROM raw_updates"))


async def test_event_that_fails_twice_is_served_the_third_time(
    api: DiscordApi, inbox: Inbox, database: Database
) -> None:
    router = FailingRouter(ValueError("odd"), "hello", 2)
    ana = api.user("Ana")
    async with listening(make(api, inbox), router, api):
        await api.user_says(api.dm(ana), "hello", ana)
        await api.wait_for(lambda: router.served)
        assert await set_aside(database) == []


async def test_discord_command_that_always_fails_is_stored_as_failed_and_dismissed(
    api: DiscordApi, inbox: Inbox, database: Database
) -> None:
    router = FailingRouter(KeyError("odd"), "/help", 99)
    ana = api.user("Ana")
    channel = await api.channel("general")
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: api.commands)
        call = await api.slash(channel, ana, "help")
        await api.wait_for(lambda: api.sent("DELETE", "/messages/@original"))
        (row,) = await database.fetch_all("SELECT update_id, raw FROM raw_updates")
        assert (row["update_id"], json.loads(row["raw"])["data"]["name"]) == (int(call), "help")


async def test_failed_discord_event_of_an_incognito_chat_is_stored_without_its_content(
    api: DiscordApi, database: Database, clock: SteadyClock
) -> None:
    router = FailingRouter(ValueError("odd"), "quetzal", 99)
    ana = api.user("Ana")
    channel = api.dm(ana)
    address = Address(platform="discord", chat_id=channel)

    def begin_incognito(connection: Connection) -> None:
        values = {"address": ensure_address(connection, address)}
        statement = "INSERT INTO incognito_addresses (address_id, at) VALUES (:address, 0)"
        connection.execute(statement, values)

    await database.write(begin_incognito)
    async with listening(make(api, Inbox(database, clock)), router, api):
        await api.user_says(channel, "quetzal", ana)
        await api.user_says(channel, "bread", ana)
        await api.wait_for(lambda: router.seen)
        (row,) = await database.fetch_all("SELECT raw FROM raw_updates")
        assert row["raw"] == "{}"


async def test_event_that_the_library_cannot_read_becomes_a_dead_letter(
    api: DiscordApi, inbox: Inbox, database: Database
) -> None:
    router = FakeRouter()
    ana = api.user("Ana")
    async with listening(make(api, inbox), router, api):
        await api.malformed("MESSAGE_CREATE", {"id": "77", "content": "of a new kind"})
        await api.malformed("MESSAGE_CREATE", ["of", "no", "kind"])
        await api.user_says(api.dm(ana), "hello", ana)
        await api.wait_for(lambda: router.seen)
        await until(api, lambda: _count(database), 2)
        (row,) = await database.fetch_all("SELECT raw FROM raw_updates WHERE update_id = 77")
        assert json.loads(row["raw"])["content"] == "of a new kind"


async def test_discord_events_wait_in_order_while_the_database_refuses_writes(
    api: DiscordApi, inbox: Inbox, database: Database
) -> None:
    router = FailingRouter(StoreError("the disk is full"), "", 99)
    ana = api.user("Ana")
    channel = api.dm(ana)
    async with listening(make(api, inbox), router, api):
        for text in ("one", "two"):
            await api.user_says(channel, text, ana)
        await api.wait_for(lambda: router.tries > 5)
        assert router.seen == []
        router.left = 0
        await api.wait_for(lambda: len(router.served) == 2)
        assert [inbound.text for inbound in router.seen] == ["one", "two"]
        assert await set_aside(database) == []


async def test_event_that_the_full_disk_refused_is_fetched_once_there_is_room(
    api: DiscordApi, inbox: Inbox, clock: SteadyClock
) -> None:
    class FullRouter(EchoRouter):
        is_full = False

        async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
            if self.is_full:
                raise StoreError("the disk is full")
            return await super().admit(inbound, reply)

    adapter = make(api, inbox)
    adapter.events.max_pending_events = 4
    ana = api.user("Ana")
    channel = api.dm(ana)
    router = FullRouter(inbox, clock)
    texts = [f"message {number}" for number in range(12)]
    async with listening(adapter, router, api):
        await api.user_says(channel, "before", ana)
        await api.wait_for(lambda: router.is_idle.is_set())
        router.is_full = True
        for text in texts:
            await api.user_says(channel, text, ana)
        router.is_full = False
        await api.wait_for(lambda: len(router.admitted) == 13)
        assert router.texts == ["before", *texts]
        await api.wait_for(lambda: router.is_idle.is_set())


async def until(api: DiscordApi, ask: Callable[[], Awaitable[int]], wanted: int) -> None:
    """Asks on and on, for eight seconds at most."""
    async with asyncio.timeout(8):
        while await ask() != wanted:
            pass
