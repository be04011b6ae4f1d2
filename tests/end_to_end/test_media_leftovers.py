"""Files of killed processes and failed turns: resumed, deleted from the home, and out of memory.

The real gateway with a scripted model; the files are fetched from a test platform."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from core.errors import FileError, ModelError
from core.media.decoding import Decoded, Decoder
from core.media.folder import MediaFolder
from core.media.speech import ProgramLimits, ProgramTranscriber, ServerTranscriber
from core.types import Address, Attachment
from gateway.media.file_check import check_media
from gateway.texts.catalog import ENGLISH
from tests.end_to_end.test_erased import forget
from tests.end_to_end.test_media import kept_files, texts_of
from tests.end_to_end.test_voice import wait_until
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.media_samples import make_pdf, make_photo
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.fixtures.transcription_service import TranscriptionService

pytestmark = pytest.mark.slow

CHAT = Address(platform="telegram", chat_id="42")
NOTE = b"OggS" + bytes(500)


def hold_downloads(harness: GatewayHarness) -> asyncio.Event:
    """Let the downloads of the test platform wait until the returned event is set."""
    platform = harness.platforms["telegram"]
    arrived = asyncio.Event()
    fetch = platform.fetch_file

    async def fetch_slowly(*arguments: object) -> bytes:
        await arrived.wait()
        return await fetch(*arguments)  # type: ignore[arg-type]

    platform.fetch_file = fetch_slowly  # type: ignore[method-assign, assignment]
    return arrived


def list_files_with(home: Path, text: bytes) -> list[Path]:
    """The files of the home that contain a text."""
    return [path for path in home.rglob("*") if path.is_file() and text in path.read_bytes()]


async def test_download_of_a_killed_process_is_resumed_and_its_orphaned_bytes_are_deleted(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel(says("Later.")), "[media]\nwait_s = 0.2\n") as one:
        hold_downloads(one)
        await one.send(make_pdf(), "contract.pdf", text="zebra note")
        assert one.agent.media is not None
        for download in one.agent.media._downloads.values():
            download.task.cancel()
        # The killed process has written the bytes of another file, and not its row.
        MediaFolder(home).write(b"orphan")
    async with open_gateway(home, ScriptedModel()) as harness:
        assert kept_files(home) == []
        next(harness._ids)  # The id of the message that the killed process received.
        harness.platforms["telegram"].files["file-1"] = make_pdf()
        media = harness.path.media
        await media.resume_downloads("discord", lambda _: True)
        await media.resume_downloads("telegram", lambda _: False)
        assert not media._downloads
        await media.resume_downloads("telegram", lambda _: True)
        await asyncio.gather(*(download.task for download in media._downloads.values()))
        assert "contract.pdf (pdf, 8 pages" in (await harness.say("/files")).text
        assert "1 file" in await forget(harness, "zebra")
        assert kept_files(home) == []


async def test_forgetting_a_message_stops_its_transcription_and_deletes_the_bytes_at_once(
    home: Path,
) -> None:
    program = json.dumps([sys.executable, "-c", "import time; time.sleep(600)"])
    options = f"[media]\nwait_s = 0.2\n[media.transcriber]\ncommand = {program}\n"
    async with open_gateway(home, ScriptedModel(says("Later.")), options) as harness:
        await harness.send(NOTE, "voice.oga", "voice", text="zebra note")
        (download,) = harness.path.media._downloads.values()
        await wait_until(lambda: bool(kept_files(home)))
        assert "1 file" in await forget(harness, "zebra")
        assert download.task.cancelled()
        assert kept_files(home) == []


@pytest.mark.parametrize("is_removed_elsewhere", [False, True])
async def test_file_that_is_removed_during_its_download_does_not_come_back(
    home: Path, is_removed_elsewhere: bool
) -> None:
    model = ScriptedModel(says("Later."))
    async with open_gateway(home, model, "[media]\nwait_s = 0.2\n") as harness:
        arrived = hold_downloads(harness)
        await harness.send(make_pdf(), "contract.pdf")
        (download,) = harness.path.media._downloads.values()
        if is_removed_elsewhere:
            # Another process, such as the command line, can't stop the download.
            await harness.services.files.remove(1, frozenset({download.file.scope}))
        else:
            assert "contract.pdf is removed" in (await harness.say("/files remove 1")).text
        arrived.set()
        await asyncio.wait([download.task])
        assert download.task.cancelled() is not is_removed_elsewhere
        assert "There are no files here yet" in (await harness.say("/files")).text
        assert kept_files(home) == []


async def test_bytes_of_a_removed_download_stay_for_another_message_with_the_same_bytes(
    home: Path,
) -> None:
    model = ScriptedModel(says("Later."), says("Later."))
    async with open_gateway(home, model, "[media]\nwait_s = 0.2\n") as harness:
        media = harness.path.media
        decoding = asyncio.Event()
        decode = media._decode

        async def decode_slowly(content_hash: str, name: str, language: str = "") -> Decoded:
            await decoding.wait()
            return await decode(content_hash, name, language)

        media._decode = decode_slowly  # type: ignore[method-assign]
        await harness.send(make_pdf(), "one.pdf")
        await harness.send(make_pdf(), "two.pdf")
        await wait_until(lambda: bool(kept_files(home)))
        downloads = list(media._downloads.values())
        await harness.say("/files remove 1")
        decoding.set()
        await asyncio.wait([download.task for download in downloads])
        assert "two.pdf (pdf, 8 pages" in (await harness.say("/files")).text
        answer = (await harness.say("/files send 2")).answer
        assert answer is not None
        assert answer.files[0].content == make_pdf()


async def test_text_of_a_removed_file_leaves_the_next_request_and_the_database(home: Path) -> None:
    model = ScriptedModel(says("Kept."), says("Quoted."), says("Gone."))
    async with open_gateway(home, model) as harness:
        document = make_pdf(["The zyzzyva password is kumquat."])
        await harness.send(document, "secret.pdf", text="Look", message_id="70")
        await harness.say("/new")
        await harness.say("And this?", reply_to="70")
        assert "kumquat" in json.dumps(model.requests[1].messages)
        assert "secret.pdf is removed" in (await harness.say("/files remove 1")).text
        await harness.say("Now?")
        assert "kumquat" not in json.dumps(model.requests[2].messages)
    assert list_files_with(home, b"kumquat") == []


async def test_bytes_without_a_message_are_named_by_the_check(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("A contract."))) as harness:
        await harness.send(make_pdf(), "contract.pdf")
        folder = MediaFolder(home)
        orphan = folder.write(b"orphan")
        assert await check_media(ENGLISH, harness.services) == []
        for content_hash in folder.list_hashes():
            os.utime(folder.path_of(content_hash), (0, 0))
        (result,) = await check_media(ENGLISH, harness.services)
        assert result.values == {"paths": [f"media/{orphan[:2]}/{orphan}"]}
        assert "No message uses 1 file in" in result.text


def test_temporary_copies_of_a_killed_process_are_deleted_unless_another_may_use_them(
    tmp_path: Path,
) -> None:
    folder = MediaFolder(tmp_path)
    with Decoder(scratch_path=folder.scratch_path).open_scratch() as scratch:
        assert Path(scratch).parent == folder.scratch_path
    copy = Path(scratch, "file")
    copy.parent.mkdir()
    copy.write_bytes(b"secret")
    folder.remove_unfinished(lifetime_s=3_600.0)
    assert copy.exists()
    folder.remove_unfinished()
    assert not copy.exists()


async def test_slow_incognito_download_ends_with_its_turn(home: Path) -> None:
    model = ScriptedModel(says("I see nothing yet."))
    async with open_gateway(home, model, "[media]\nwait_s = 0.2\n") as harness:
        await harness.say("/incognito")
        hold_downloads(harness)
        reply = await harness.send(make_photo(), "secret.jpg", "photo")
        assert "secret.jpg took too long" in reply.text
        downloads = [download.task for download in harness.path.media._downloads.values()]
        await asyncio.gather(*downloads, return_exceptions=True)
        assert all(task.cancelled() for task in downloads)
        assert await harness.path.media.load(CHAT, "2") == []


async def test_incognito_file_leaves_memory_after_a_failed_turn(home: Path) -> None:
    model = ScriptedModel(ModelError("the model is away"))
    async with open_gateway(home, model) as harness:
        await harness.say("/incognito")
        await harness.send(make_photo(), "secret.jpg", "photo", message_id="70")
        assert model.requests
        assert await harness.path.media.load(CHAT, "70") == []


async def test_album_does_not_exceed_a_quota_together(home: Path) -> None:
    model = ScriptedModel(says("Many."))
    async with open_gateway(home, model, "[media]\nperson_mb = 0.02\n") as harness:
        platform = harness.platforms["telegram"]
        attachments = []
        for number in range(6):
            content = bytes([97 + number]) * 9_000
            platform.files[f"f{number}"] = content
            # Some platforms don't give the size.
            size = len(content) if number % 2 else None
            attachments.append(
                Attachment(
                    kind="document", name=f"{number}.txt", reference=f"f{number}", size_bytes=size
                )
            )
        reply = await harness.say("Keep these", attachments=tuple(attachments))
        assert reply.text.count("There's no space left for your files") == 4
        assert (await harness.services.files.measure_usage()).size == 18_000


@pytest.mark.parametrize("has_model", [True, False])
async def test_reply_to_a_message_whose_download_failed_fetches_the_file(
    home: Path, has_model: bool
) -> None:
    model = ScriptedModel(says("Nothing."), says("A heron.")) if has_model else None
    async with open_gateway(home, model or OfflineModel("Europe/Lisbon")) as harness:
        platform = harness.platforms["telegram"]
        attachment = Attachment(kind="document", name="bird.pdf", reference="bird")
        reply = await harness.say("broken", attachments=(attachment,), message_id="80")
        assert "Reply to it with any message, and I'll try again." in reply.text
        platform.files["bird"] = make_pdf(["The heron nests here"])
        await harness.say("and now?", reply_to="80")
        if isinstance(model, ScriptedModel):
            assert "The heron nests here" in texts_of(model.requests[1])
        assert "bird.pdf" in (await harness.say("/files heron")).text


async def test_download_that_a_reply_started_and_that_takes_long_is_said_to_run(home: Path) -> None:
    model = ScriptedModel(says("Nothing."), says("Later."))
    async with open_gateway(home, model, "[media]\nwait_s = 0.2\n") as harness:
        platform = harness.platforms["telegram"]
        attachment = Attachment(kind="document", name="bird.pdf", reference="bird")
        await harness.say("broken", attachments=(attachment,), message_id="80")
        arrives = asyncio.Event()

        async def fetch_slowly(*_: object) -> bytes:
            await arrives.wait()
            return make_pdf(["The heron nests here"])

        platform.fetch_file = fetch_slowly  # type: ignore[method-assign, assignment]
        await harness.say("and now?", reply_to="80")
        assert "it is still being downloaded" in texts_of(model.requests[1])
        arrives.set()


@pytest.mark.parametrize("has_model", [True, False])
async def test_retry_fetches_a_file_whose_download_failed(home: Path, has_model: bool) -> None:
    model = ScriptedModel(says("Nothing."), says("A heron.")) if has_model else None
    async with open_gateway(home, model or OfflineModel("Europe/Lisbon")) as harness:
        platform = harness.platforms["telegram"]
        attachment = Attachment(kind="document", name="bird.pdf", reference="bird")
        await harness.say("What is it?", attachments=(attachment,))
        platform.files["bird"] = make_pdf(["The heron nests here"])
        reply = await harness.say("/retry")
        if isinstance(model, ScriptedModel):
            assert "The heron nests here" in texts_of(model.requests[1])
            assert "are missing" not in texts_of(model.requests[1])
        else:
            assert "I've kept bird.pdf" in reply.text


async def test_voice_note_that_is_sent_again_after_a_failure_is_transcribed(home: Path) -> None:
    async with TranscriptionService([(0.0, "The boiler leaks.")], status=500) as service:
        options = f'[media.transcriber]\nurl = "{service.url}"\nmodel = "whisper"\n'
        model = ScriptedModel(says("Hm."), says("I see."))
        async with open_gateway(home, model, options) as harness:
            await harness.send(NOTE, "voice.oga", "voice")
            service.status = 200
            reply = await harness.send(NOTE, "voice.oga", "voice")
            assert "You said: “The boiler leaks.”" in reply.text


@pytest.mark.parametrize("segments", [[(float("inf"), "Hi.")], [(float("nan"), "Hi.")]])
async def test_impossible_time_in_a_transcript_counts_as_its_beginning(
    tmp_path: Path, segments: list[tuple[float, str]]
) -> None:
    path = tmp_path / "voice"
    path.write_bytes(NOTE)
    async with TranscriptionService(segments) as service:
        transcript = await ServerTranscriber(service.url, "whisper").transcribe(path)
    assert [(part.label, part.text) for part in transcript.parts] == [("0:00", "Hi.")]


async def test_transcriber_without_words_or_with_a_bad_key_fails_with_a_sentence(
    tmp_path: Path,
) -> None:
    path = tmp_path / "voice"
    path.write_bytes(NOTE)
    async with TranscriptionService([]) as service:
        with pytest.raises(FileError, match="heard no words"):
            await ServerTranscriber(service.url, "whisper").transcribe(path)
        with pytest.raises(FileError, match="can't be reached"):
            await ServerTranscriber(service.url, "whisper", "schlüssel").transcribe(path)
    answer = json.dumps({"text": "", "segments": ["no object"]})
    program = ProgramTranscriber(
        ["printf", "%s", answer], Decoder(), ProgramLimits(timeout_s=60.0, memory_mb=400)
    )
    assert [part.text for part in (await program.transcribe(path)).parts] == [answer]


@pytest.mark.parametrize(
    ("name", "shown"), [("fdp\u202ecod.exe", "fdpcod.exe"), ("  ", "document")]
)
async def test_name_of_a_file_is_shown_in_its_own_direction_and_is_never_blank(
    home: Path, name: str, shown: str
) -> None:
    async with open_gateway(home, ScriptedModel(says("I see."))) as harness:
        await harness.send(b"The rent is due.", name)
        assert f"1: {shown} (" in (await harness.say("/files")).text


async def test_line_of_a_document_that_looks_like_a_page_is_not_cited_as_one(home: Path) -> None:
    model = ScriptedModel(says("I see."))
    async with open_gateway(home, model) as harness:
        await harness.send(b"One\n\xe2\x80\x94 page 7 \xe2\x80\x94\nThe rent is free.", "a.txt")
    text = texts_of(model.requests[0])
    assert "– page 7 —" in text
    assert "— page 7 —" not in text
