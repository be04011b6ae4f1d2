"""The double of the Bot API is as strict as the real one: what it refuses, how it redelivers, what
a person sees."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.fixtures.bot_api import BotApi
from tests.fixtures.bot_contract import BotContract


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


async def test_token_and_method_are_checked(api: BotApi, client: Client) -> None:
    assert (await client.result("getMe"))["username"] == "mneme_bot"
    assert await client.refusal("getSomething") == "404 Not Found"
    api.token = "1:wrong"
    me = f"{api.url}/bot2:other/getMe"
    async with client.http.get(me) as response:
        assert response.status == 401


async def test_requests_are_held_against_the_contract(api: BotApi, client: Client) -> None:
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


async def test_forms_and_queries_are_typed(api: BotApi, client: Client) -> None:
    form = {
        "chat_id": "42",
        "text": "12",
        "entities": json.dumps([{"type": "bold", "offset": 0, "length": 2}]),
    }
    async with client.http.post(f"{api.url}/bot{api.token}/sendMessage", data=form) as response:
        assert response.status == 200
    assert api.called("sendMessage")[0]["chat_id"] == 42
    assert api.texts(42) == ["12"]


async def test_a_value_of_another_type_is_refused(api: BotApi, client: Client) -> None:
    async with client.http.get(f"{api.url}/bot{api.token}/getUpdates?limit=many") as response:
        assert response.status == 400


async def test_updates_stay_until_confirmed(api: BotApi, client: Client) -> None:
    first = api.user_says(42, "one")
    api.user_says(42, "two")
    assert [u["message"]["text"] for u in await client.result("getUpdates")] == ["one", "two"]
    assert len(await client.result("getUpdates")) == 2
    assert len(await client.result("getUpdates", limit=1)) == 1
    rest = await client.result("getUpdates", offset=first["update_id"] + 1)
    assert [u["message"]["text"] for u in rest] == ["two"]
    assert len(api.updates) == 1
    assert api.violations == []


async def test_a_poll_waits_for_the_next_update(api: BotApi, client: Client) -> None:
    poll = asyncio.create_task(client.result("getUpdates", timeout=5))
    await api.wait_for(lambda: api.called("getUpdates"))
    api.user_says(42, "late")
    assert (await poll)[0]["message"]["text"] == "late"


async def test_unwanted_kinds_are_lost(api: BotApi, client: Client) -> None:
    await client.result("getUpdates", allowed_updates=["message"])
    api.user_says(42, "x")
    api.user_edits(42, 1, "y")
    assert [sorted(update) for update in api.updates] == [["message", "update_id"]]


async def test_a_second_poll_ends_the_first(api: BotApi, client: Client) -> None:
    first = asyncio.create_task(client.call("getUpdates", timeout=5))
    await api.wait_for(lambda: api.called("getUpdates"))
    second = asyncio.create_task(client.call("getUpdates", timeout=5))
    status, description = await first
    assert status == 409
    assert "other getUpdates" in description
    api.user_says(42, "x")
    assert (await second)[0] == 200
    api.webhook_url = "https://elsewhere.example"
    assert "deleteWebhook" in await client.refusal("getUpdates")
    await client.result("deleteWebhook")
    await client.result("getUpdates")


async def test_texts_are_limited_in_utf16_units(api: BotApi, client: Client) -> None:
    await client.result("sendMessage", chat_id=42, text="🦉" * 2048)
    assert "message is too long" in await client.refusal(
        "sendMessage", chat_id=42, text="🦉" * 2048 + "x"
    )
    assert "message text is empty" in await client.refusal("sendMessage", chat_id=42, text=" \n")
    await client.result(
        "sendMessage",
        chat_id=42,
        text="  x  ",
        entities=[{"type": "bold", "offset": 2, "length": 1}],
    )
    assert api.messages(42)[-1]["text"] == "x"
    assert api.messages(42)[-1]["entities"] == [{"type": "bold", "offset": 0, "length": 1}]


@pytest.mark.parametrize(("offset", "length"), [(0, 9), (9, 1), (-1, 1), (1, 1), (0, 1)])
async def test_entities_must_lie_in_the_text(client: Client, offset: int, length: int) -> None:
    entities = [{"type": "bold", "offset": offset, "length": length}]
    assert "entity" in await client.refusal(
        "sendMessage", chat_id=42, text="🦉 ab", entities=entities
    )


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


async def test_double_refuses_too_long_data_of_buttons_and_delivers_presses(
    api: BotApi, client: Client
) -> None:
    def keyboard(data: str) -> dict[str, Any]:
        return {"inline_keyboard": [[{"text": "More", "callback_data": data}]]}

    assert "BUTTON_DATA_INVALID" in await client.refusal(
        "sendMessage", chat_id=42, text="x", reply_markup=keyboard("ж" * 33)
    )
    message = await client.result(
        "sendMessage", chat_id=42, text="x", reply_markup=keyboard("ж" * 32)
    )
    query = api.user_presses(42, message["message_id"], "More")["callback_query"]
    assert query["data"] == "ж" * 32
    await client.result("answerCallbackQuery", callback_query_id=query["id"])
    assert "query is too old" in await client.refusal(
        "answerCallbackQuery", callback_query_id=query["id"]
    )
    assert api.violations == []


async def test_places_that_cannot_be_written_to(api: BotApi, client: Client) -> None:
    assert (
        await client.refusal("sendMessage", chat_id=43, text="x")
        == "400 Bad Request: chat not found"
    )
    assert "thread not found" in await client.refusal(
        "sendMessage", chat_id=-1007, text="x", message_thread_id=9
    )
    topic = api.topic(-1007)
    await client.result("sendMessage", chat_id=-1007, text="x", message_thread_id=topic)
    assert api.texts(-1007, topic) == ["x"]
    reply = {"message_id": 99}
    assert "not found" in await client.refusal(
        "sendMessage", chat_id=42, text="x", reply_parameters=reply
    )
    reply["allow_sending_without_reply"] = True
    await client.result("sendMessage", chat_id=42, text="x", reply_parameters=reply)
    api.user_blocks(42)
    assert await client.refusal("sendChatAction", chat_id=42, action="typing") == (
        "403 Forbidden: bot was blocked by the user"
    )
    api.group(-5)
    api.migrate(-5, -1009)
    assert "upgraded" in await client.refusal("sendMessage", chat_id=-5, text="x")
    assert api.violations == []


async def test_double_stores_the_documents_that_are_sent(api: BotApi, client: Client) -> None:
    form = aiohttp.FormData({"chat_id": "42"})
    form.add_field("document", b"a,b\n", filename="jobs.csv", content_type="text/csv")
    async with client.http.post(f"{api.url}/bot{api.token}/sendDocument", data=form) as response:
        assert response.status == 200
    assert api.messages(42)[0]["document"]["file_name"] == "jobs.csv"
    assert api.files["jobs.csv"] == b"a,b\n"
    assert api.violations == []


async def test_double_refuses_commands_with_wrong_names_or_descriptions(
    api: BotApi, client: Client
) -> None:
    await client.result(
        "setMyCommands", commands=[{"command": "help", "description": "What I can do"}]
    )
    assert api.commands[0]["command"] == "help"
    for name, description in (("Help", "x"), ("help", "")):
        commands = [{"command": name, "description": description}]
        assert "400" in await client.refusal("setMyCommands", commands=commands)
