"""Files that people send on Telegram are fetched from its file server, and failures are told apart."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.telegram.adapter import Telegram
from core.errors import FileError
from core.store.mailbox import Inbox
from core.store.sqlite.database import Database
from core.types import Address, Attachment
from tests.fixtures.bot_api import BotApi
from tests.fixtures.clock import SteadyClock

pytestmark = pytest.mark.slow

CONTENT = bytes(range(256)) * 2_000
CHAT = Address(platform="telegram", chat_id="42")


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi() as api:
        yield api
        assert api.violations == []


@pytest.fixture
async def telegram(api: BotApi, database: Database) -> AsyncIterator[Telegram]:
    clock = SteadyClock()
    inbox = Inbox(database, clock)
    adapter = Telegram(token=api.token, api_url=api.url, inbox=inbox, clock=clock)
    await adapter.open()
    yield adapter
    await adapter.close()


def attachment(size: int | None = len(CONTENT)) -> Attachment:
    return Attachment(kind="document", name="a.bin", size_bytes=size, reference="F1")


async def fetch(telegram: Telegram, size: int | None = len(CONTENT), limit: int = 10**7) -> bytes:
    return await telegram.fetch_file(attachment(size), CHAT, "1", limit)


async def test_telegram_file_is_downloaded_by_its_id(api: BotApi, telegram: Telegram) -> None:
    api.server.add("F1", CONTENT)
    assert await fetch(telegram) == CONTENT


async def test_file_beyond_the_limit_is_cut_one_byte_after_it(
    api: BotApi, telegram: Telegram
) -> None:
    api.server.add("F1", CONTENT)
    assert len(await fetch(telegram, None, 1_000)) == 1_001


async def test_file_that_telegram_does_not_know_is_gone(telegram: Telegram) -> None:
    with pytest.raises(FileError) as caught:
        await fetch(telegram)
    assert caught.value.is_permanent


@pytest.mark.parametrize(("status", "is_permanent"), [(404, True), (500, False)])
async def test_file_server_refusal_is_classified_as_permanent_or_temporary_by_its_status(
    api: BotApi, telegram: Telegram, status: int, is_permanent: bool
) -> None:
    api.server.add("F1", CONTENT).status = status
    with pytest.raises(FileError) as caught:
        await fetch(telegram)
    assert caught.value.is_permanent is is_permanent
    assert api.token not in str(caught.value)


async def test_interrupted_file_download_is_a_temporary_error(
    api: BotApi, telegram: Telegram
) -> None:
    api.server.add("F1", CONTENT).breaks_after = 1_000
    with pytest.raises(FileError) as caught:
        await fetch(telegram)
    assert not caught.value.is_permanent
    assert api.token not in str(caught.value)
