"""Conversations with models of several servers: another family, fallbacks, and the way back.

The gateway runs in this process, with its real Telegram adapter, and both vendors' clients.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from gateway.app import run_gateway
from tests.fixtures.bot_api import BotApi
from tests.fixtures.chat_api import ChatApi
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

pytestmark = pytest.mark.slow

PERSON = 4242
KEY = "sk-ant-servers"
OTHER_KEY = "sk-other-servers"


def answer_chat(body: dict[str, Any]) -> ModelReply:
    """Call the memory tool for each message that says "look", and then answer."""
    last = body["messages"][-1]
    if not body.get("tools"):
        return ModelReply.say("[]")
    if last["role"] == "tool":
        return ModelReply.say("I have looked.")
    text = last["content"]
    if "look" in text.partition("<memory-context>")[0]:
        return ModelReply.call(("recall", {"query": "ferry"}), text="Let me see.")
    return ModelReply.say("Noted by the other model.")


class Chat:
    """A person in a direct chat on Telegram."""

    def __init__(self, api: BotApi) -> None:
        self._api = api

    async def say(self, text: str) -> str:
        """Send a message, and return the last text of its answer."""
        before = len(self._api.messages(PERSON))
        self._api.user_says(PERSON, text)
        await self._api.wait_for(
            lambda: len(self._api.messages(PERSON)) > before and self._is_quiet(), 90.0
        )
        return str(self._api.messages(PERSON)[-1]["text"])

    async def wait_for_texts(self, part: str, count: int) -> list[str]:
        """Wait until so many answers contain `part`, and return all answers and notices."""

        def texts() -> list[str]:
            return [str(message["text"]) for message in self._api.messages(PERSON)]

        await self._api.wait_for(lambda: sum(part in text for text in texts()) >= count, 90.0)
        return texts()

    def _is_quiet(self) -> bool:
        """Return True if the answer is complete: a streamed answer ends with its last edit."""
        text = str(self._api.messages(PERSON)[-1]["text"])
        return any(
            end in text
            for end in (
                *("Claude.", "looked.", "other model.", "out of reach", "key", "lists one."),
                "To change that",
            )
        )


@asynccontextmanager
async def talking(
    home: Path, model_options: str, variables: Mapping[str, str], telegram_api: BotApi | None = None
) -> AsyncIterator[Chat]:
    """Run a gateway in `home` with these options of [model] and these environment variables.

    A test that starts it twice passes the same `telegram_api`.
    """
    async with AsyncExitStack() as stack:
        api = telegram_api
        if api is None:
            api = await stack.enter_async_context(BotApi())
        (home / "mneme.toml").write_text(
            f'[owner]\ntelegram = [{PERSON}]\n[general]\nzone = "Europe/Lisbon"\n{model_options}'
        )
        telegram = {"TELEGRAM_BOT_TOKEN": api.token, "MNEME_TELEGRAM_API_URL": api.url}
        settings = Settings.load({"MNEME_HOME": str(home), **telegram, **variables})
        running = asyncio.create_task(run_gateway(settings, chat_only=False, has_terminal=False))
        try:
            await api.wait_for(lambda: bool(api.called("getUpdates")) or running.done(), 90.0)
            yield Chat(api)
        finally:
            running.cancel()
            await asyncio.wait([running])


def own_server(url: str) -> str:
    return f'[model.servers.other]\napi = "chat-completions"\nurl = "{url}"\nkey = "OTHER_KEY"\n'


@pytest.mark.sweep
async def test_fifty_turns_with_tools_on_the_other_family_are_never_refused(home: Path) -> None:
    async with ChatApi(answer_chat, key=OTHER_KEY) as other:
        options = f'[model]\nchat = "other/gpt-6-astra"\n{own_server(other.url)}'
        async with talking(home, options, {"OTHER_KEY": OTHER_KEY}) as chat:
            for number in range(25):
                assert "other model" in await chat.say(f"The ferry leaves at {number} sharp.")
                assert "looked" in await chat.say(f"Please look up ferry number {number}.")
    assert other.refusals == []
    prompts = [
        json.dumps(body["messages"], ensure_ascii=False)[:-1]
        for body in other.requests
        if body.get("tools")
    ]
    assert len(prompts) == 75
    assert all(after.startswith(before) for before, after in pairwise(prompts))
    assert {body["model"] for body in other.requests} == {"gpt-6-astra"}


async def test_second_model_answers_with_a_notice_during_an_outage_and_the_first_returns_after_it(
    home: Path,
) -> None:
    is_down = True

    def answer_claude(body: dict[str, Any]) -> ModelReply:
        if is_down:
            return ModelReply.fail(402, "pay")
        return ModelReply.say("This is Claude." if body.get("tools") else "[]")

    async with MessagesApi(answer_claude, key=KEY) as first, ChatApi(answer_chat) as other:
        options = (
            f'[model]\nchat = ["claude-sonnet-5-5", "other/gpt-6-astra"]\n{own_server(other.url)}'
        )
        variables = {
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": first.url,
            "OTHER_KEY": OTHER_KEY,
        }
        async with talking(home, options, variables) as chat:
            answer = await chat.say("The ferry leaves at nine.")
            assert answer.startswith(
                "claude-sonnet-5-5 is out of reach, so other/gpt-6-astra answers."
            )
            assert "other model" in answer
            assert "out of reach" not in await chat.say("Please look up the ferry.")
            shown = await chat.say("/model")
            assert "The account behind the model's key cannot pay for this." in shown
            assert "other/gpt-6-astra answered instead." in shown
            is_down = False
            async with asyncio.timeout(120.0):
                while await chat.say("And now?") != "This is Claude.":
                    pass
    assert [refusal for refusal in first.refusals if "402" not in refusal] == []
    assert other.refusals == []


async def test_outage_is_told_in_the_language_of_the_person(home: Path) -> None:
    async with (
        MessagesApi(lambda body: ModelReply.fail(402, "pay"), key=KEY) as first,
        ChatApi(answer_chat, lacks=["tools"]) as other,
        BotApi() as api,
    ):
        options = (
            f'[model]\nchat = ["claude-sonnet-5-5", "other/gpt-6-astra"]\n{own_server(other.url)}'
        )
        variables = {
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": first.url,
            "OTHER_KEY": OTHER_KEY,
        }
        async with talking(home, options, variables, api) as chat:
            api.user_says(PERSON, "/language de")
            await chat.wait_for_texts("Deutsch", 1)
            api.user_says(PERSON, "Die Fähre fährt um neun.")
            texts = await chat.wait_for_texts("[]", 1)
            assert texts[-1].startswith(
                "claude-sonnet-5-5 ist nicht erreichbar, deshalb antwortet other/gpt-6-astra."
            )
            assert "other/gpt-6-astra kann keine Werkzeuge benutzen" in texts[-1]
            api.user_says(PERSON, "/model")
            texts = await chat.wait_for_texts("geantwortet", 1)
            assert "kann das nicht bezahlen. Sieh dort nach Guthaben" in texts[-1]


async def test_retired_model_is_told_to_the_owner_once_while_a_fallback_answers(home: Path) -> None:
    def answer_claude(body: dict[str, Any]) -> ModelReply:
        return ModelReply.fail(404, f"model: {body['model']}")

    async with (
        MessagesApi(answer_claude, key=KEY) as first,
        ChatApi(answer_chat) as other,
        BotApi() as api,
    ):
        options = (
            f'[model]\nchat = ["claude-sonnet-4-5", "other/gpt-6-astra"]\n{own_server(other.url)}'
        )
        variables = {
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": first.url,
            "OTHER_KEY": OTHER_KEY,
        }
        texts: list[str] = []
        for count in (0, 2):
            async with talking(home, options, variables, api) as chat:
                # The notice may come before the answer. A message that comes between them is
                # answered together with the first one.
                await chat.say("The ferry leaves at nine.")
                await chat.wait_for_texts("other model.", count + 1)
                await chat.say("And another at ten.")
                texts = await chat.wait_for_texts("other model.", count + 2)
    notices = [text for text in texts if "claude-sonnet-4-5 is gone" in text]
    assert len(notices) == 1
    assert "Its successor is claude-sonnet-5-5" in notices[0]
    assert notices[0].endswith("Until then, other/gpt-6-astra answers.")
    assert sum("other model" in text for text in texts) == 4


async def test_small_model_without_tools_answers_and_remembers_what_it_lacks(home: Path) -> None:
    def answer(body: dict[str, Any]) -> str:
        is_chat = "ferry" in str(body["messages"][-1]["content"])
        return "Noted by the other model." if is_chat else "[]"

    async with ChatApi(answer, key=OTHER_KEY, lacks=["tools"]) as other, BotApi() as api:
        options = f'[model]\nchat = "other/gpt-6-astra"\n{own_server(other.url)}'
        answers: list[str] = []
        for _ in range(2):
            async with talking(home, options, {"OTHER_KEY": OTHER_KEY}, api) as chat:
                answers += [await chat.say("The ferry leaves at nine.") for _ in range(2)]
    sentence = "other/gpt-6-astra can't use tools, so this answer comes without them."
    # A restarted process says it once more.
    assert [answer.startswith(sentence) for answer in answers] == [True, False, True, False]
    assert len(other.refusals) == 1


async def test_conversation_too_long_for_a_model_is_compressed_and_asked_again(home: Path) -> None:
    async with ChatApi(answer_chat, key=OTHER_KEY, window_tokens=20_000) as other:
        options = f'[model]\nchat = "other/gpt-6-astra"\n{own_server(other.url)}'
        async with talking(home, options, {"OTHER_KEY": OTHER_KEY}) as chat:
            for number in range(6):
                words = f"The ferry number {number} leaves at nine. " * 500
                assert "other model" in await chat.say(words)
    # The server reports its window in its list of models, so nothing is refused.
    assert other.refusals == []


async def test_server_without_its_key_is_named_and_skipped(home: Path) -> None:
    async with MessagesApi(
        lambda body: "This is Claude." if body.get("tools") else "[]", key=KEY
    ) as first:
        options = '[model]\nchat = ["openai/gpt-6-astra", "claude-sonnet-5-5"]\nhelper = "claude-haiku-5-5"\n'
        variables = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": first.url}
        async with talking(home, options, variables) as chat:
            answer = await chat.say("Hello there.")
    assert answer.startswith("openai/gpt-6-astra is out of reach, so claude-sonnet-5-5 answers.")
    assert answer.endswith("This is Claude.")
