"""A photo of a contract, a question about it, a voice note; a week and a restart later: where did I
read about the boiler? On the doubles of both platforms, with a model behind the strict double of
its API, and without one."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from gateway.app import run_gateway
from tests.end_to_end.test_media import kept_files
from tests.end_to_end.test_prefix_cache import prefix
from tests.fixtures.bot_api import BotApi
from tests.fixtures.clock import MovableClock
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.media_samples import make_pdf, make_photo
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.transcription_service import TranscriptionService

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

KEY = "sk-ant-media"
SEGMENTS = [(0.0, "Hello."), (42.0, "The plumber says the boiler leaks.")]
NOTE = b"OggS" + bytes(300)
QUESTION = "Where did I read about the boiler?"
GERMAN_QUESTION = "Wo habe ich etwas über den Boiler gelesen?"
IMAGE = '"type": "image"'
PERSON = 42
WAIT_S = 90.0
WEEK = timedelta(days=7)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MovableClock:
    """The clock of every gateway in the test."""
    clock = MovableClock()
    monkeypatch.setattr("gateway.services.WallClock", lambda: clock)
    return clock


def name_model(model: MessagesApi, *, has_model: bool) -> Mapping[str, str]:
    """Return the variables of the model, or none if there is no model."""
    return {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": model.url} if has_model else {}


def answer_with_tools(body: dict[str, Any]) -> ModelReply | str:
    """Answer the question with the files that the tools find, and offer the document again."""
    if not body.get("tools"):
        return "[]"
    blocks = body["messages"][-1]["content"]
    if is_question(blocks):
        return ModelReply.call(("find_files", {"words": "boiler"}))
    results = list_tool_results(body)
    if blocks[0]["type"] != "tool_result":
        return "I see."
    files = json.loads(results[0])["files"]
    if len(results) == 1:
        (document,) = [file for file in files if file["name"] == "contract.pdf"]
        return ModelReply.call(("send_file", {"file_id": document["file_id"]}))
    return "; ".join(f"{file['name']}, {file['place']}: {file['passage']}" for file in files)


def is_question(blocks: Sequence[dict[str, Any]]) -> bool:
    """Return whether a message asks about the boiler."""
    texts = [block.get("text", "") for block in blocks]
    return any(question in text for question in (QUESTION, GERMAN_QUESTION) for text in texts)


def list_tool_results(body: dict[str, Any]) -> list[str]:
    """Return the results of the tools since the last question."""
    results: list[str] = []
    for message in body["messages"]:
        if is_question(message["content"]):
            results = []
        results += [
            block["content"] for block in message["content"] if block["type"] == "tool_result"
        ]
    return results


@contextlib.asynccontextmanager
async def running(
    home: Path, owner: str, speech: TranscriptionService, variables: Mapping[str, str]
) -> AsyncIterator[None]:
    """A gateway for the owner, stopped at the end."""
    (home / "mneme.toml").write_text(
        f"[owner]\n{owner}\n[memory]\nfacts = false\n"
        f'[media.transcriber]\nurl = "{speech.url}"\nmodel = "whisper"\n'
    )
    settings = Settings.load({"MNEME_HOME": str(home), **variables})
    task = asyncio.create_task(run_gateway(settings, chat_only=False, has_terminal=False))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class TelegramPerson:
    """A person on Telegram, who waits for each answer."""

    def __init__(self, api: BotApi) -> None:
        self.api = api

    async def say(self, text: str, **fields: Any) -> str:
        known = len(self.api.messages(PERSON))
        self.api.user_says(PERSON, text, **fields)
        await self.api.wait_for(
            lambda: any(self.api.texts(PERSON)[known:]) and self._is_done(known), WAIT_S
        )
        return self.api.texts(PERSON)[-1]

    def _is_done(self, known: int) -> bool:
        return self.api.texts(PERSON)[known:][-1] not in ("", "…")

    def upload(self, name: str, content: bytes, **more: Any) -> dict[str, Any]:
        self.api.server.add(name, content)
        size = {"file_id": name, "file_unique_id": name, "file_size": len(content)}
        return {**size, **more}


@pytest.mark.parametrize("has_model", [True, False], ids=["with a model", "without a model"])
async def test_question_about_files_is_answered_a_week_later_on_telegram_with_an_unchanged_prefix(
    home: Path, has_model: bool, clock: MovableClock
) -> None:
    async with (
        BotApi() as api,
        MessagesApi(answer_with_tools, key=KEY) as model,
        TranscriptionService(SEGMENTS) as speech,
    ):
        variables = {
            "TELEGRAM_BOT_TOKEN": api.token,
            "MNEME_TELEGRAM_API_URL": api.url,
            **name_model(model, has_model=has_model),
        }
        ana = TelegramPerson(api)
        owner = f"telegram = [{PERSON}]"
        async with running(home, owner, speech, variables):
            photo = ana.upload("P1", make_photo(), width=640, height=480)
            await ana.say("My contract", photo=[photo])
            await ana.say("What is on it?")
            contract = ana.upload("D1", make_pdf(), file_name="contract.pdf")
            await ana.say("The rest of it", document=contract)
            voice = ana.upload("V1", NOTE, duration=47, mime_type="audio/ogg")
            answer = await ana.say("", voice=voice)
            assert "You said: “Hello. The plumber says the boiler leaks.”" in answer
        clock.distance = WEEK
        async with running(home, owner, speech, variables):
            await ana.say("Thank you, and the rent?")
            await ana.say("/new")
            found = await ana.say("/recall boiler")
            assert "contract.pdf, page 7" in found
            assert "voice note, 0:42" in found
            recalled = shown = api.messages(PERSON)[-1]
            answer = await ana.say(QUESTION)
            assert "contract.pdf, page 7: " in answer
            assert "The boiler must be serviced" in answer
            assert "0:42: " in answer
            if has_model:
                await api.wait_for(lambda: "reply_markup" in api.messages(PERSON)[-1], WAIT_S)
                shown = api.messages(PERSON)[-1]
            api.user_presses(PERSON, shown["message_id"], "Send contract.pdf")
            await api.wait_for(lambda: "contract.pdf" in api.files, WAIT_S)
            assert api.files["contract.pdf"] == make_pdf()
            api.user_presses(PERSON, recalled["message_id"], "Send voice.ogg")
            await api.wait_for(lambda: NOTE in api.files.values(), WAIT_S)
            await ana.say("/language de")
            answer = await ana.say(GERMAN_QUESTION)
            assert f"contract.pdf, {'page' if has_model else 'Seite'} 7: " in answer
            assert has_model or "Sprachnachricht, 0:42: " in answer
            await ana.say("/language en")
            await ana.say("/forget boiler")
            receipt = await ana.say("yes")
            assert "Forgotten" in receipt
            names = [name for name in kept_files(home) if not name.endswith(".view")]
            assert len(names) == 1, "only the photo is left"
        assert model.refusals == []
        assert api.violations == []
        bodies = [body for body in model.requests if body.get("tools")]
        assert len(bodies) == (11 if has_model else 0)
        for conversation in (bodies[:5], bodies[5:]):
            for earlier, later in pairwise(conversation):
                before = prefix(earlier)
                assert prefix(later)[: len(before)] == before
        pictures = [line for body in bodies[4:5] for line in prefix(body) if IMAGE in line]
        assert len(pictures) == has_model


@pytest.mark.parametrize("has_model", [True, False], ids=["with a model", "without a model"])
async def test_question_about_files_is_answered_a_week_later_on_discord(
    home: Path, has_model: bool, clock: MovableClock
) -> None:
    async with (
        DiscordApi() as api,
        MessagesApi(answer_with_tools, key=KEY) as model,
        TranscriptionService(SEGMENTS) as speech,
    ):
        ana = api.user("Ana")
        channel = api.dm(ana)
        variables = {
            "DISCORD_BOT_TOKEN": api.token,
            "MNEME_DISCORD_API_URL": api.rest_url,
            "MNEME_DISCORD_GATEWAY_URL": api.gateway_url.rstrip("/"),
            **name_model(model, has_model=has_model),
        }

        async def say(text: str, **fields: Any) -> str:
            known = len(api.said(channel))
            await api.user_says(channel, text, ana, **fields)
            await api.wait_for(lambda: len(api.said(channel)) > known)
            return api.said(channel)[-1]

        async with running(home, f"discord = [{ana}]", speech, variables):
            await api.wait_connected()
            photo = api.attach(make_photo(), "photo.jpg", "image/jpeg", channel)
            contract = api.attach(make_pdf(), "contract.pdf", "application/pdf", channel)
            await say("My contract", attachments=[photo, contract])
            await say("What does it say about the rent?")
            voice = api.attach(NOTE, "voice.ogg", "audio/ogg", channel)
            voice |= {"duration_secs": 47.0, "waveform": "AAAA"}
            heard = await say("", attachments=[voice], flags=8192)
            assert "The plumber says the boiler leaks." in heard
            assert "not its attachment" not in heard
        clock.distance = WEEK
        api.world.now = clock.now
        async with running(home, f"discord = [{ana}]", speech, variables):
            await api.wait_connected()
            await say("/new")
            await say("/recall boiler")
            found = str(api.messages(channel)[-1]["embeds"])
            assert "contract.pdf, page 7" in found
            assert "voice note, 0:42" in found
            recalled = shown = api.messages(channel)[-1]
            answer = await say(QUESTION)
            if has_model:
                await api.wait_for(lambda: api.messages(channel)[-1]["components"], WAIT_S)
                shown = api.messages(channel)[-1]
                answer = shown["content"]
            assert "contract.pdf, page 7: " in answer
            assert "0:42: " in answer
            number = await api.press(channel, ana, shown["id"], "Send contract.pdf")
            # On a busy machine, an empty answer comes first.
            found_files = await api.wait_for(
                lambda: [file for each in api.answers(number) for file in each["attachments"]]
            )
            [sent] = found_files
            assert sent["filename"] == "contract.pdf"
            assert sent["size"] == len(make_pdf())
            number = await api.press(channel, ana, recalled["id"], "Send voice.ogg")
            [note] = await api.wait_for(
                lambda: [file for each in api.answers(number) for file in each["attachments"]]
            )
            assert note["size"] == len(NOTE)
            await say("/language de")
            answer = await say(GERMAN_QUESTION)
            assert f"contract.pdf, {'page' if has_model else 'Seite'} 7: " in answer
            await say("/language en")
            await say("/forget boiler")
            assert "Forgotten" in await say("yes")
            names = [name for name in kept_files(home) if not name.endswith(".view")]
            assert len(names) == 1, "only the photo is left"
        assert model.refusals == []
        bodies = [body for body in model.requests if body.get("tools")]
        assert len(bodies) == (9 if has_model else 0)
        pictures = [line for body in bodies[2:3] for line in prefix(body) if IMAGE in line]
        assert len(pictures) == has_model
