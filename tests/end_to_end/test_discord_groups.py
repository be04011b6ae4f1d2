"""Servers and turns on Discord, with the vendor's client and a double of Discord."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from core.agent import tool_runner
from core.ports import Model
from gateway.texts.catalog import ENGLISH as texts
from tests.end_to_end.test_media import pictures_of, texts_of
from tests.end_to_end.test_telegram_native import PATIENT_S, slow_down
from tests.end_to_end.test_voice import NOTE, SEGMENTS, options_for
from tests.fixtures.discord_scene import DiscordScene, open_scene
from tests.fixtures.media_samples import make_pdf
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.skill_folders import skill_text
from tests.fixtures.transcription_service import TranscriptionService
from tests.gateway.test_bursts import SilentModel

pytestmark = pytest.mark.slow


@contextlib.asynccontextmanager
async def open_server(
    home: Path, model: Model | None = None, options: str = "", **settings: Any
) -> AsyncIterator[DiscordScene]:
    """Run a gateway whose outbox is delivered. `settings` are options of the adapter."""
    async with open_scene(home, model, options, **settings) as scene:
        delivery = scene.harness.delivery
        delivery.add_platform("discord", scene.harness.path.adapters["discord"].reply)
        delivering = asyncio.create_task(delivery.run())
        try:
            yield scene
        finally:
            delivering.cancel()
            await asyncio.wait([delivering])


async def test_document_and_voice_message_reach_the_model(home: Path) -> None:
    document = make_pdf(["The ferry is blue."])
    model = ScriptedModel(says("Answer 1."), says("Answer 2."))
    async with (
        TranscriptionService(SEGMENTS) as service,
        open_server(home, model, options_for(service)) as scene,
    ):
        api, direct = scene.api, scene.direct
        pdf = api.attach(document, "plan.pdf", "application/pdf", direct)
        await api.user_says(direct, "And this?", scene.ana, attachments=[pdf])
        await scene.said(direct, "Answer 1.")
        voice = {
            **api.attach(NOTE, "voice-message.ogg", "audio/ogg", direct),
            "duration_secs": 50.0,
            "waveform": "AAAA",
        }
        await api.user_says(direct, "", scene.ana, attachments=[voice], flags=1 << 13)
        await scene.said(direct, "Answer 2.")
        assert "The ferry is blue." in texts_of(model.requests[0])
        assert "The plumber says the boiler leaks." in texts_of(model.requests[1])
        assert [len(pictures_of(request)) for request in model.requests] == [0, 0]


async def test_skills_are_suggested_by_their_names(home: Path) -> None:
    folder = home / "skills" / "tidy-inbox"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill_text("tidy-inbox"))
    async with open_scene(home) as scene:
        call = await scene.api.types(scene.direct, scene.ana, "skill", "name", "tidy")
        assert "tidy-inbox" in await scene.read_choices(call)


async def test_tool_at_work_is_named_below_the_unfinished_answer(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_runner, "SLOW_TOOLS_S", 0.0)
    may_end = asyncio.Event()
    search = calls(("session_search", {"query": "ferry"}), text="Let me look.")
    async with open_server(home, ScriptedModel(search, says("At nine."))) as scene:
        slow_down(scene.harness, "session_search", may_end)
        await scene.api.user_says(scene.direct, "When does the ferry leave?", scene.ana)
        await scene.said(scene.direct, "At work:* `session_search`")
        may_end.set()
        assert "At work" not in await scene.said(scene.direct, "At nine.")


async def test_thumb_on_an_answer_counts_as_a_rating(home: Path) -> None:
    async with open_server(home, ScriptedModel(says("Seagull."))) as scene:
        api, direct = scene.api, scene.direct
        await api.user_says(direct, "What is my boat called?", scene.ana)
        await scene.said(direct, "Seagull.")
        await scene.harness.turns.drain(60)
        await api.react(direct, api.messages(direct)[-1]["id"], "👍", scene.ana)
        database = scene.harness.services.database
        while not await database.fetch_all("SELECT * FROM thumbs"):  # noqa: ASYNC110  The store has no signal.
            await asyncio.sleep(0.01)
        await api.user_says(direct, "/usage", scene.ana)
        assert "1 up, 0 down" in await scene.said(direct, "1 up")


async def test_server_rules_are_set_by_those_who_manage_it(home: Path) -> None:
    model = ScriptedModel(*[says(f"Answer {number}.") for number in range(3)])
    async with open_server(home, model, has_message_content=True) as scene:
        api, channel, bo = scene.api, scene.channel, scene.bo
        cleo = api.user("Cleo")
        api.world.managers = {cleo}
        refused = await api.slash(channel, bo, "setup", what="listen", value="always")
        assert await scene.read_text(refused) == texts.ADMINS_ONLY
        changed = await api.slash(channel, cleo, "setup", what="listen", value="always")
        assert texts.SETUP_CHANGED in await scene.read_text(changed)
        await api.user_says(channel, "anyone?", bo)
        await scene.said(channel, "Answer 0.")
        stored = await api.slash(channel, cleo, "setup", what="store", value="all")
        assert texts.SETUP_CHANGED in await scene.read_text(stored)
        await scene.said(channel, texts.INTRODUCTION_ALL)
        changed = await api.slash(channel, cleo, "setup", what="listen", value="commands")
        await scene.read_text(changed)
        await api.user_says(channel, f"{api.mention()} anyone?", bo)
        help_text = await api.slash(channel, bo, "help")
        await scene.read(help_text)
        await scene.harness.turns.drain(60)
        assert not any("Answer 1." in text for text in api.said(channel))


async def test_each_stranger_of_a_server_is_told_once_in_all_its_channels(home: Path) -> None:
    async with open_server(home) as scene:
        api = scene.api
        cleo, dan = api.user("Cleo"), api.user("Dan")
        one, two = [await api.channel(name) for name in ("one", "two")]
        for person in (cleo, dan):
            for channel in (one, two, one):
                await api.user_says(channel, f"{api.mention()} hello", person)
        await api.wait_for(lambda: len(api.said(one)) + len(api.said(two)) >= 2)
        await api.user_says(scene.channel, f"{api.mention()} hello", scene.bo)
        await scene.said(scene.channel, "ok")
        assert api.said(one) + api.said(two) == [texts.STRANGER_IN_GROUP] * 2


async def test_parts_sent_a_fifth_of_a_second_apart_are_one_turn(home: Path) -> None:
    model = ScriptedModel(says("One answer."), says("Another one."))
    async with open_server(home, model, "[turn]\ngather_s = 0.3\n") as scene:
        scene.harness.queues._gather_s = PATIENT_S
        for part in ("the first part", "the second part", "the third part"):
            await scene.api.user_says(scene.direct, part, scene.ana)
            await asyncio.sleep(0.2)
        await scene.said(scene.direct, "One answer.")
        await scene.harness.turns.drain(60)
        assert len(model.requests) == 1
        assert "the third part" in texts_of(model.requests[0])


async def test_message_interrupts_an_answer_if_the_settings_say_so(home: Path) -> None:
    options = '[turn]\ngather_s = 0.0\nwhile_answering = "interrupt"\n'
    model = SilentModel("The beginning")
    async with open_server(home, model, options) as scene:
        await scene.api.user_says(scene.direct, "one", scene.ana)
        await model.began.wait()
        await scene.api.user_says(scene.direct, "two", scene.ana)
        await scene.said(scene.direct, "answer 2")
        assert any(text.startswith("The beginning") for text in scene.api.said(scene.direct))


@pytest.mark.parametrize(("where", "is_told"), [("direct", [True, False]), ("never", [False] * 2)])
async def test_failure_is_told_only_where_the_settings_allow(
    home: Path, where: str, is_told: list[bool]
) -> None:
    options = f'[turn]\ngather_s = 0.0\nerror_replies = "{where}"\n'
    broken = RuntimeError("a defect")
    model = ScriptedModel(broken, broken, says("Answer."))
    async with open_server(home, model, options) as scene:
        api, channel, direct = scene.api, scene.channel, scene.direct
        await api.user_says(direct, "hello", scene.ana)
        await api.wait_for(lambda: len(model.requests) == 1)
        await api.user_says(channel, f"{api.mention()} hello", scene.bo)
        await api.wait_for(lambda: len(model.requests) == 2)
        await scene.said(channel, texts.INTRODUCTION)
        await scene.harness.turns.drain(60)
        shown = [bool(api.said(direct)), len(api.said(channel)) > 1]
        assert shown == is_told
