"""Videos: the model sees three pictures, and what is said in them is text that recall finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.test_media import kept_files, pictures_of, texts_of
from tests.end_to_end.test_voice import SEGMENTS, options_for
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.media_samples import make_video
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.fixtures.sweeps import keep_first
from tests.fixtures.transcription_service import TranscriptionService

pytestmark = pytest.mark.slow


async def test_video_is_given_to_the_model_as_three_pictures_and_a_transcript(home: Path) -> None:
    model = ScriptedModel(says("Red, green, blue."))
    async with (
        TranscriptionService(SEGMENTS) as service,
        open_gateway(home, model, options_for(service)) as harness,
    ):
        reply = await harness.send(make_video(), "boiler.mp4", "video", "What is it?")
        assert reply.text == "Red, green, blue."
        assert len(pictures_of(model.requests[0])) == 3
        text = texts_of(model.requests[0])
        assert "[Contents of file 1, “boiler.mp4” (mp4, 160x120, 0:47" in text
        assert "3 pictures of it follow" in text
        assert "— 0:42 —\nThe plumber says the boiler leaks." in text
        assert [name for name, _ in service.uploads] == ["voice.ogg"]
        assert "**video, 0:42**" in (await harness.say("/recall plumber")).text
        assert "boiler.mp4" in (await harness.say("/recall has:video")).text
        await harness.say("/files remove 1")
        assert kept_files(home) == []


async def test_video_note_is_transcribed_and_read_as_the_senders_words(home: Path) -> None:
    model = ScriptedModel(says("I see."))
    async with (
        TranscriptionService(SEGMENTS) as service,
        open_gateway(home, model, options_for(service)) as harness,
    ):
        reply = await harness.send(make_video(), "video.mp4", "video note")
        assert reply.text.startswith("_You said: “Hello, it's me. The plumber says")
        assert len(pictures_of(model.requests[0])) == 3
        assert texts_of(model.requests[0]).count("The plumber says") == 1


@pytest.mark.parametrize("kind", keep_first(1, ["video", "voice"]))
async def test_position_in_a_recording_reaches_neither_the_model_nor_the_transcriber(
    home: Path, kind: str
) -> None:
    video = make_video(2, container="mov", metadata={"location": "+48.2082+016.3738/"})
    model = ScriptedModel(says("I see."))
    async with (
        TranscriptionService(SEGMENTS) as service,
        open_gateway(home, model, options_for(service)) as harness,
    ):
        await harness.send(video, "quay.mov", kind)
        assert service.last_upload
        assert b"+48.2082" not in service.last_upload
        pictures = pictures_of(model.requests[0])
        assert len(pictures) == (3 if kind == "video" else 0)
        assert not any(picture.getexif() for picture in pictures)
        assert "48.2082" not in texts_of(model.requests[0])


async def test_video_without_a_transcription_service_is_shown_with_a_notice_of_what_is_missing(
    home: Path,
) -> None:
    model = ScriptedModel(says("Colours."))
    async with open_gateway(home, model) as harness:
        reply = await harness.send(make_video(), "boiler.mp4", "video")
        assert "boiler.mp4, but can't hear what is said in it" in reply.text
        assert len(pictures_of(model.requests[0])) == 3


async def test_setting_keeps_sent_videos_from_being_read(home: Path) -> None:
    model = ScriptedModel(says("A video."))
    async with (
        TranscriptionService(SEGMENTS) as service,
        open_gateway(home, model, options_for(service, "video = false")) as harness,
    ):
        await harness.send(make_video(), "boiler.mp4", "video")
        assert pictures_of(model.requests[0]) == []
        assert service.uploads == []
