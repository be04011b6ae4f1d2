"""Telegram sends updates to our server: only with the secret token, each once, and none is lost."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from urllib.parse import urlsplit

import aiohttp
import pytest

from adapters.telegram.adapter import UPDATE_KINDS, Telegram
from config.settings import TelegramOptions
from core.errors import ConfigError, StoreError
from core.ports import Reply
from core.store.sqlite.database import Database
from core.types import Address, Inbound, Scope, Sender
from tests.adapters.telegram.test_adapter import COMMANDS, House
from tests.fixtures.bot_api import BotApi
from tests.fixtures.clock import SteadyClock
from tests.fixtures.echo_router import EchoRouter

GROUP = -5

pytestmark = pytest.mark.slow


def find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


class WebhookHouse(House):
    """A process that listens for updates at a free port."""

    def __init__(self, api: BotApi, database: Database, clock: SteadyClock) -> None:
        super().__init__(api, database, clock)
        self.port = find_free_port()

    def adapter(self, inbox: object = None) -> Telegram:
        options = TelegramOptions(
            enabled="auto",
            webhook_url=f"http://127.0.0.1:{self.port}/telegram",
            webhook_listen=f"127.0.0.1:{self.port}",
        )
        adapter = Telegram(
            token=self.api.token,
            api_url=self.api.url,
            inbox=self.inbox,
            clock=self.clock,
            webhook=options,
        )
        adapter.poll_timeout_s, adapter.pause_s = 1, 0.01
        return adapter


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi() as running:
        running.person(42, "Ana", "ana")
        running.group(GROUP)
        yield running
        assert running.violations == []


@pytest.fixture
def house(api: BotApi, database: Database, clock: SteadyClock) -> WebhookHouse:
    return WebhookHouse(api, database, clock)


async def is_set(api: BotApi) -> None:
    await api.wait_for(lambda: api.webhook_url)


async def test_update_that_telegram_sends_is_stored_confirmed_and_answered(
    api: BotApi, house: WebhookHouse
) -> None:
    async with house.running() as adapter:
        await is_set(api)
        api.user_says(42, "hello")
        api.user_says(42, "and again")
        assert await api.push_updates() == [200, 200]
        assert api.updates == []
        await api.wait_for(lambda: len(api.texts(42)) == 2)
        assert adapter.problem == ""
    [call] = api.called("setWebhook")
    assert call["allowed_updates"] == list(UPDATE_KINDS)
    assert call["max_connections"] == 1
    assert len(call["secret_token"]) > 30
    assert api.called("getUpdates") == []
    assert [inbound.text for inbound in house.desk.admitted] == ["hello", "and again"]


async def test_request_without_the_secret_token_is_refused(
    api: BotApi, house: WebhookHouse, caplog: pytest.LogCaptureFixture
) -> None:
    async with house.running():
        await is_set(api)
        api.user_says(42, "hello")
        assert await api.push_updates(secret="wrong") == [403]
        async with (
            aiohttp.ClientSession() as session,
            session.post(api.webhook_url, json=api.updates[0]) as answer,
        ):
            assert answer.status == 403
        assert house.desk.admitted == []
        assert await api.push_updates() == [200]
        assert api.webhook_secret not in caplog.text


async def test_malformed_secret_token_and_body_are_refused_with_their_status(
    api: BotApi, house: WebhookHouse
) -> None:
    async with house.running():
        await is_set(api)
        address = urlsplit(api.webhook_url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        head = f"POST {address.path or '/'} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
        writer.write(head.encode() + b"X-Telegram-Bot-Api-Secret-Token: \xff\r\n\r\n{}")
        assert b" 403 " in await reader.readline()
        writer.close()
        headers = {"X-Telegram-Bot-Api-Secret-Token": api.webhook_secret}
        async with aiohttp.ClientSession(headers=headers) as session:
            for body in ('{"update_id": Infinity}', "[" * 100_000, '{"update_id": null}'):
                async with session.post(api.webhook_url, data=body) as answer:
                    assert answer.status == 400, body[:30]
        assert house.desk.admitted == []


async def test_update_that_is_sent_twice_is_admitted_once(api: BotApi, house: WebhookHouse) -> None:
    async with house.running():
        await is_set(api)
        api.is_repeating = True
        api.user_says(42, "hello")
        assert await api.push_updates() == [200]
        assert await api.push_updates() == [200]
        await api.wait_for(lambda: api.texts(42))
    assert [inbound.text for inbound in house.desk.admitted] == ["hello"]
    # A new process doesn't know the ids, but the inbox knows the message.
    async with house.running():
        await api.wait_for(lambda: len(api.called("setWebhook")) == 2)
        assert await api.push_updates() == [200]
    assert [inbound.text for inbound in house.desk.admitted] == ["hello"]


async def test_telegram_webhook_secret_token_differs_in_each_process(
    api: BotApi, house: WebhookHouse
) -> None:
    for _ in range(2):
        api.webhook_url = ""
        async with house.running():
            await is_set(api)
    first, second = (call["secret_token"] for call in api.called("setWebhook"))
    assert first != second


async def test_update_that_cannot_be_stored_is_asked_for_again_in_order(
    api: BotApi, house: WebhookHouse
) -> None:
    class Full(EchoRouter):
        is_full = True

        async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
            if self.is_full:
                raise StoreError("database or disk is full")
            return await super().admit(inbound, reply)

    full = house.desk = Full(house.inbox, house.clock)
    async with house.running():
        await is_set(api)
        api.user_says(42, "one")
        api.user_says(42, "two")
        assert await api.push_updates() == [503]
        full.is_full = False
        assert await api.push_updates() == [200, 200]
    assert [inbound.text for inbound in full.admitted] == ["one", "two"]


async def test_webhook_refuses_a_body_that_is_no_update(api: BotApi, house: WebhookHouse) -> None:
    async with house.running():
        await is_set(api)
        headers = {"X-Telegram-Bot-Api-Secret-Token": api.webhook_secret}
        async with aiohttp.ClientSession() as session:
            for body in (b"", b"[]", b'{"update_id": "x"}'):
                async with session.post(api.webhook_url, data=body, headers=headers) as answer:
                    assert answer.status == 400
    assert house.desk.admitted == []


async def test_webhook_that_somebody_removes_is_set_again(api: BotApi, house: WebhookHouse) -> None:
    async with house.running():
        await is_set(api)
        api.webhook_url = ""
        await is_set(api)
    assert len(api.called("setWebhook")) == 2


async def test_telegram_webhook_is_set_again_after_a_server_failure(
    api: BotApi, house: WebhookHouse
) -> None:
    api.fail(502, "Bad Gateway", method="setWebhook", times=2)
    async with house.running() as adapter:
        await is_set(api)
        await api.wait_for(lambda: not adapter.problem)


async def test_telegram_webhook_port_in_use_fails_with_an_error_naming_the_setting(
    api: BotApi, house: WebhookHouse
) -> None:
    with socket.create_server(("127.0.0.1", house.port)):
        adapter = house.adapter()
        await adapter.open()
        with pytest.raises(ConfigError, match=r"telegram\.webhook_listen"):
            await adapter.listen(house.desk, COMMANDS)
        await adapter.close()


async def test_telegram_adapter_asks_the_server_whether_a_member_is_admin(
    api: BotApi, house: WebhookHouse
) -> None:
    api.admins[GROUP] = {42}
    asked = Inbound(
        kind="message",
        address=Address(platform="telegram", chat_id=str(GROUP)),
        scope=Scope.group("telegram", str(GROUP)),
        sender=Sender(id="42", name="Ana"),
        text="/setup",
        message_id="1",
        sent_at=house.clock.now(),
        is_direct=False,
    )
    async with house.running() as adapter:
        assert await adapter.is_admin(asked)
        api.admins[GROUP] = set()
        assert not await adapter.is_admin(asked)
        anonymous = Sender(id=str(GROUP), name="The group", is_anonymous=True)
        assert await adapter.is_admin(replace(asked, sender=anonymous))
