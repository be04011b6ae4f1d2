"""The double of the Bot API refuses what the Bot API refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.fixtures.bot_api import BotApi
from tests.fixtures.bot_contract import BotContract

pytestmark = pytest.mark.slow


class Client:
    """A client that sends whatever a test wants."""

    def __init__(self, api: BotApi, http: aiohttp.ClientSession) -> None:
        self.api = api
        self.http = http

    async def call(self, method: str, **values: Any) -> Any:
        """(status, result or description)."""
        async with self.http.post(
            f"{self.api.url}/bot{self.api.token}/{method}", json=values
        ) as response:
            answer = await response.json()
            assert answer["ok"] == (response.status == 200)
            return response.status, answer.get("result", answer.get("description"))

    async def result(self, method: str, **values: Any) -> Any:
        status, result = await self.call(method, **values)
        assert status == 200, result
        return result

    async def refusal(self, method: str, **values: Any) -> str:
        status, description = await self.call(method, **values)
        assert status != 200
        return f"{status} {description}"


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi() as running:
        running.person(42)
        running.group(-1007, "Flat", is_forum=True)
        yield running


@pytest.fixture
async def client(api: BotApi) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as http:
        yield Client(api, http)


def needs_contract() -> None:
    if not BotContract.load().is_present:
        pytest.skip("the description of the Bot API is not here: set MNEME_SPECS to its folder")


async def test_double_refuses_requests_that_break_the_contract(api: BotApi, client: Client) -> None:
    needs_contract()
    assert "no such field" in await client.refusal(
        "sendMessage", chat_id=42, text="x", colour="red"
    )
    assert "is missing" in await client.refusal("sendMessage", chat_id=42)
    assert "Integer is expected" in await client.refusal(
        "deleteMessage", chat_id=42, message_id="one"
    )
    entity = [{"type": "bold", "offset": 0}]
    assert "length: is missing" in await client.refusal(
        "sendMessage", chat_id=42, text="x", entities=entity
    )
    assert len(api.violations) == 4
    assert api.messages(42) == []


async def test_double_refuses_edits_that_change_nothing_or_belong_to_others(
    api: BotApi, client: Client
) -> None:
    message = await client.result("sendMessage", chat_id=42, text="one")
    where = {"chat_id": 42, "message_id": message["message_id"]}
    assert "message is not modified" in await client.refusal("editMessageText", text="one", **where)
    await client.result("editMessageText", text="two", **where)
    assert api.texts(42) == ["two"]
    theirs = api.user_says(42, "mine")["message"]["message_id"]
    assert "can't be edited" in await client.refusal(
        "editMessageText", text="x", chat_id=42, message_id=theirs
    )
    await client.result("deleteMessage", **where)
    assert api.texts(42) == []
    assert "message to edit not found" in await client.refusal(
        "editMessageText", text="two", **where
    )
    assert "message to delete not found" in await client.refusal("deleteMessage", **where)
