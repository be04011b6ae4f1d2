"""The double of the Bot API refuses what the Bot API refuses."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fixtures.bot_api import BotApi
from tests.fixtures.bot_contract import BotContract

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


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

    async def upload(self, method: str, *files: str, **values: str) -> Any:
        """Call a method with a small file for each name in `files`."""
        form = aiohttp.FormData(values)
        content = b"OggS" if files == ("voice",) else b"\xff\xd8\xff"
        for name in files:
            form.add_field(name, content, filename=f"{name}.ogg")
        url = f"{self.api.url}/bot{self.api.token}/{method}"
        async with self.http.post(url, data=form) as response:
            answer = await response.json()
            assert response.status == 200, answer
            return answer["result"]

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


async def test_each_method_of_the_double_takes_and_returns_what_the_bot_api_describes(
    api: BotApi, client: Client
) -> None:
    needs_contract()
    api.server.add("f1", b"file")
    here = {"chat_id": 42}
    photo = {"type": "photo", "media": "attach://a"}
    await client.result("getMe")
    await client.result("setMyCommands", commands=[{"command": "help", "description": "Help"}])
    await client.result("setWebhook", url="https://example.org", secret_token="secret")
    await client.result("getWebhookInfo")
    await client.result("deleteWebhook")
    api.user_says(42, "hello")
    await client.result("getUpdates", timeout=0)
    await client.result("getChat", chat_id=-1007)
    await client.result("getChatMember", chat_id=-1007, user_id=42)
    await client.result("sendChatAction", action="typing", **here)
    await client.result("sendMessageDraft", draft_id=1, text="Hel", **here)
    keyboard = {"inline_keyboard": [[{"text": "Yes", "callback_data": "yes"}]]}
    posted = await client.result("sendMessage", text="Hello", reply_markup=keyboard, **here)
    number = {"message_id": posted["message_id"]}
    reaction = [{"type": "emoji", "emoji": "👀"}]
    await client.result("setMessageReaction", reaction=reaction, **number, **here)
    press = api.user_presses(42, posted["message_id"], "Yes")["callback_query"]["id"]
    await client.result("answerCallbackQuery", callback_query_id=press)
    await client.result("editMessageText", text="Goodbye", **number, **here)
    await client.result("deleteMessage", **number, **here)
    await client.result("sendRichMessage", rich_message={"html": "<p>Table</p>"}, **here)
    for kind in ("Document", "Photo", "Video", "Audio", "Voice"):
        posted = await client.upload(f"send{kind}", kind.lower(), chat_id="42", caption="x")
    edited = {"message_id": posted["message_id"], "caption": "y"}
    assert "not modified" in await client.refusal("editMessageCaption", **edited, **here)
    album = json.dumps([photo, {**photo, "media": "attach://b"}])
    await client.upload("sendMediaGroup", "a", "b", chat_id="42", media=album)
    await client.result("getFile", file_id="f1")
    assert api.violations == []
    assert {method for method, _ in api.calls} == api.methods


def test_double_has_each_method_that_the_adapter_calls() -> None:
    needs_contract()
    described = BotContract.load().methods
    calls = set()
    for path in (ROOT / "adapters" / "telegram").glob("*.py"):
        source = path.read_text("utf-8")
        names = set(re.findall(r'"([a-z]+[A-Z][A-Za-z]+)"', source))
        names |= {to_camel_case(name) for name in re.findall(r"_bot\.([a-z_]+)\(", source)}
        calls |= names & described
    assert calls
    assert calls <= BotApi().methods


def to_camel_case(name: str) -> str:
    first, *words = name.split("_")
    return first + "".join(word.title() for word in words)


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
