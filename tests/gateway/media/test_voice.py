"""/voice on: answers are spoken, too, by a server or a local program, and sent through the outbox."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from core.store.mailbox import OutboxItem
from core.types import Address, Scope
from gateway.media.voice import MAX_SPOKEN_CHARS, VoiceCommands, select_speech
from tests.end_to_end.test_erased import forget
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.fixtures.speech_service import SpeechService

pytestmark = pytest.mark.slow

# A program that "speaks": it writes a WAV file of silence as long as the text.
PROGRAM = """
import sys, wave
text = sys.stdin.read()
with wave.open(sys.argv[1], "wb") as sound:
    sound.setnchannels(1); sound.setsampwidth(2); sound.setframerate(22050)
    sound.writeframes(bytes(2 * 2205 * len(text)))
"""


def options_for(service: SpeechService) -> str:
    return f'[media.speaker]\nurl = "{service.url}"\nmodel = "tts"\nvoice = "alloy"\n'


async def wait_for_spoken(harness: GatewayHarness) -> OutboxItem:
    """Wait until a spoken answer is in the outbox."""
    services = harness.services
    async with asyncio.timeout(60):
        while True:
            due = await services.outbox.list_due(services.clock.now())
            if due:
                return due[0]
            await asyncio.sleep(0.01)


async def test_answer_is_spoken_after_voice_on_and_not_after_voice_off(home: Path) -> None:
    model = ScriptedModel(says("First."), says("**Hello** Ana."), says("Third."))
    async with SpeechService() as service, open_gateway(home, model, options_for(service)) as house:
        await house.say("hi")
        assert service.requests == []
        assert "I'll also speak" in (await house.say("/voice on")).text
        reply = await house.say("hi again")
        assert reply.text == "**Hello** Ana."
        item = await wait_for_spoken(house)
        await house.services.outbox.mark_done(item.key)
        assert item.answer is not None
        assert [(file.name, file.content) for file in item.answer.files] == [
            ("answer.ogg", service.content)
        ]
        assert service.requests == [
            {"model": "tts", "voice": "alloy", "input": "Hello Ana.", "response_format": "opus"}
        ]
        assert "I speak my answers here" in (await house.say("/voice")).text
        await house.say("/voice off")
        await house.say("and now?")
        assert len(service.requests) == 1


async def test_voice_setting_of_a_chat_survives_a_restart(home: Path) -> None:
    async with SpeechService() as service:
        async with open_gateway(home, ScriptedModel(), options_for(service)) as harness:
            await harness.say("/voice on")
        model = ScriptedModel(says("Hello."))
        async with open_gateway(home, model, options_for(service)) as harness:
            await harness.say("hi", message_id="70")
            await wait_for_spoken(harness)


async def test_speech_of_a_configured_program_is_sent_as_an_opus_file(home: Path) -> None:
    script = home.parent / "speak.py"
    script.write_text(PROGRAM)
    options = f'[media.speaker]\ncommand = ["{sys.executable}", "{script}", "{{file}}"]\n'
    async with open_gateway(home, ScriptedModel(says("Hello.")), options) as harness:
        await harness.say("/voice on")
        await harness.say("hi")
        item = await wait_for_spoken(harness)
        assert item.answer is not None
        (file,) = item.answer.files
        assert file.content.startswith(b"OggS")
        assert b"OpusHead" in file.content


async def test_failing_speech_service_leaves_the_text_answer_and_a_notice_of_the_failure(
    home: Path,
) -> None:
    model = ScriptedModel(says("Hello."))
    async with (
        SpeechService(status=500) as service,
        open_gateway(home, model, options_for(service)) as harness,
    ):
        await harness.say("/voice on")
        assert (await harness.say("hi")).text == "Hello."
        item = await wait_for_spoken(harness)
        assert item.answer is not None
        assert "couldn't speak this answer" in item.answer.text


async def test_answer_whose_speech_was_cut_off_by_a_kill_is_spoken_by_the_next_process(
    home: Path,
) -> None:
    async with SpeechService() as service:
        service.hold.clear()
        async with open_gateway(home, ScriptedModel(says("Hello.")), options_for(service)) as first:
            await first.say("/voice on")
            assert (await first.say("hi")).text == "Hello."
            rows = await first.services.database.fetch_all(
                "SELECT payload FROM outbox WHERE key LIKE 'voice:%' AND dead_at IS NULL"
            )
            assert [row["payload"] for row in rows] == [None]
            # A killed process doesn't finish what it has begun.
            speaking = [task for task in asyncio.all_tasks() if "VoiceCommands" in repr(task)]
            assert len(speaking) == 1
            speaking[0].cancel()
        service.hold.set()
        async with open_gateway(home, ScriptedModel(), options_for(service)) as second:
            voice = second.commands.voice
            assert isinstance(voice, VoiceCommands)
            await voice.resume("discord", lambda _: True)
            await voice.resume("telegram", lambda _: False)
            await voice.resume("telegram", lambda _: True)
            await voice.resume("telegram", lambda _: True)
            item = await wait_for_spoken(second)
            assert item.answer is not None
            assert [file.content for file in item.answer.files] == [service.content]
            assert [request["input"] for request in service.requests][-1:] == ["Hello."]


async def test_undelivered_spoken_answer_is_erased_with_its_text_answer(home: Path) -> None:
    model = ScriptedModel(says("The walrus sleeps."))
    async with (
        SpeechService() as service,
        open_gateway(home, model, options_for(service)) as harness,
    ):
        await harness.say("/voice on")
        await harness.say("what does it do?")
        await wait_for_spoken(harness)
        await forget(harness, "walrus")
        assert await harness.services.outbox.list_due(harness.services.clock.now()) == []


async def test_incognito_answer_and_an_answer_in_a_group_are_not_spoken(home: Path) -> None:
    model = ScriptedModel(says("One."), says("Two."))

    async with SpeechService() as service:
        settings = options_for(service)
        async with open_gateway(home, model, settings) as harness:
            await harness.say("/voice on")
            room: dict[str, Any] = {
                "address": Address(platform="telegram", chat_id="-5"),
                "scope": Scope.group("telegram", "-5"),
                "is_direct": False,
            }
            await harness.say("hi", **room)
            assert "only in direct chats" in (await harness.say("/voice on", **room)).text
            await harness.say("/incognito")
            await harness.say("hi")
            assert service.requests == []


async def test_voice_command_without_a_speech_service_names_the_missing_setting(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        assert "media.speaker" in (await harness.say("/voice on")).text


def test_spoken_text_omits_code_and_urls_and_is_cut_at_a_sentence() -> None:
    assert select_speech("Run:\n\n```\nls -l\n```\n\nSee https://example.com now.") == (
        "Run:\n\nSee  now."
    )
    text = select_speech("One sentence. " * 1_000)
    assert len(text) <= MAX_SPOKEN_CHARS
    assert text.endswith("sentence.")
