"""Voice notes are transcribed, count as typed for what is added or planned, and are found by second."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from core.errors import FileError
from core.media.decoding import Decoder
from core.media.speech import (
    MAX_OUTPUT_BYTES,
    MAX_TEXT_CHARS,
    ProgramLimits,
    ProgramTranscriber,
    ServerTranscriber,
    run_program,
)
from tests.end_to_end.test_erased import forget
from tests.end_to_end.test_media import kept_files, texts_of
from tests.fixtures.command_line import good
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.media_samples import make_video
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.transcription_service import TranscriptionService

pytestmark = pytest.mark.slow

NOTE = b"OggS" + bytes(500)
LIMITS = ProgramLimits(timeout_s=300.0, memory_mb=400)
SEGMENTS = [(0.0, "Hello, it's me."), (42.0, "The plumber says the boiler leaks.")]


def options_for(service: TranscriptionService, more: str = "") -> str:
    return f'[media]\n{more}\n[media.transcriber]\nurl = "{service.url}"\nmodel = "whisper"\n'


async def test_voice_note_is_transcribed_shown_and_answered(home: Path) -> None:
    model = ScriptedModel(says("I see."))
    async with (
        TranscriptionService(SEGMENTS) as service,
        open_gateway(home, model, options_for(service)) as harness,
    ):
        reply = await harness.send(NOTE, "voice.oga", "voice")
        assert reply.text == (
            "_You said: “Hello, it's me. The plumber says the boiler leaks.”_\n\nI see."
        )
        assert "The plumber says the boiler leaks." in texts_of(model.requests[0])
        assert "a voice note, transcribed" in texts_of(model.requests[0])
        assert service.uploads == [("voice.ogg", len(NOTE))]


async def test_transcription_server_gets_the_key_named_in_the_settings(home: Path) -> None:
    async with TranscriptionService(SEGMENTS, key="secret") as service:
        options = f'{options_for(service)}key = "MY_SPEECH_KEY"\n'
        variables = {"MY_SPEECH_KEY": "secret"}
        model = ScriptedModel(says("I see."))
        async with open_gateway(home, model, options, variables=variables) as harness:
            assert "You said" in (await harness.send(NOTE, "voice.oga", "voice")).text


async def test_setting_hides_the_transcript_of_a_voice_message(home: Path) -> None:
    model = ScriptedModel(says("I see."))
    async with (
        TranscriptionService(SEGMENTS) as service,
        open_gateway(home, model, options_for(service, "show_transcript = false")) as harness,
    ):
        assert (await harness.send(NOTE, "voice.oga", "voice")).text == "I see."


async def test_server_without_times_is_asked_for_the_plain_form(home: Path) -> None:
    async with (
        TranscriptionService(SEGMENTS, is_plain=True) as service,
        open_gateway(home, ScriptedModel(says("I see.")), options_for(service)) as harness,
    ):
        reply = await harness.send(NOTE, "voice.oga", "voice")
        assert "the boiler leaks" in reply.text


async def test_recall_shows_the_second_and_sends_the_voice_note_without_a_model(
    home: Path,
) -> None:
    async with (
        TranscriptionService(SEGMENTS) as service,
        open_gateway(home, OfflineModel("Europe/Lisbon"), options_for(service)) as harness,
    ):
        await harness.send(NOTE, "voice.oga", "voice")
        reply = await harness.say("/recall boiler")
        assert "📎 **voice note, 0:42**" in reply.text
        sent = (await harness.say("/files send 1")).answer
        assert sent is not None
        assert sent.files[0].content == NOTE
        assert "voice note" in (await harness.say("/recall has:voice")).text
        await forget(harness, "plumber")
        assert kept_files(home) == []


async def test_spoken_wish_sets_a_reminder_without_a_model(home: Path) -> None:
    segments = [(0.0, "Remind me tomorrow at nine to call Ana")]
    async with (
        TranscriptionService(segments) as service,
        open_gateway(home, OfflineModel("Europe/Lisbon"), options_for(service)) as harness,
    ):
        reply = await harness.send(NOTE, "voice.oga", "voice")
        assert "You said: “Remind me tomorrow at nine to call Ana”" in reply.text
        assert "call Ana" in (await harness.say("/cron")).text, reply.text


async def test_spoken_wish_to_remove_waits_for_a_tap(home: Path) -> None:
    segments = [(0.0, "Remove the reminder to feed the cat")]
    model = ScriptedModel(calls(("reminder", {"action": "remove", "job_id": 1})), says("Shall I?"))
    async with (
        TranscriptionService(segments) as service,
        open_gateway(home, model, options_for(service)) as harness,
    ):
        await harness.say("/remind tomorrow at 9 feed the cat")
        reply = await harness.send(NOTE, "voice.oga", "voice")
        assert "feed the cat" in (await harness.say("/cron")).text
        assert reply.answer is not None
        assert any(button.label.startswith("Approve") for button in reply.answer.buttons)


async def test_spoken_wish_to_change_doubt_or_send_waits_for_a_tap(home: Path) -> None:
    words = "My dentist is Bo now, that fact is wrong, and send me the contract"
    model = ScriptedModel(
        says("I see."),
        calls(
            ("facts", {"mode": "update", "fact_id": 1, "content": "My dentist is Bo"}),
            ("facts", {"mode": "feedback", "fact_id": 1, "is_right": False}),
            ("send_file", {"file_id": 1}),
        ),
        says("Shall I?"),
    )
    async with (
        TranscriptionService([(0.0, words)]) as service,
        open_gateway(home, model, options_for(service)) as harness,
    ):
        await harness.say("/remember My dentist is Ana")
        await harness.send(b"The rent is due.", "contract.txt")
        before = (await harness.say("/facts")).text
        reply = await harness.send(NOTE, "voice.oga", "voice")
        assert reply.answer is not None
        labels = {button.label for button in reply.answer.buttons}
        assert {"Approve 1", "Approve 2", "Send contract.txt"} <= labels
        assert reply.answer.files == ()
        assert (await harness.say("/facts")).text == before


async def test_spoken_yes_does_not_confirm_a_question(home: Path) -> None:
    async with (
        TranscriptionService([(0.0, "yes")]) as service,
        open_gateway(home, ScriptedModel(says("Hm.")), options_for(service)) as harness,
    ):
        await harness.say("The ferry leaves at nine, says Ben")
        await harness.say("/forget ferry")
        await harness.send(NOTE, "voice.oga", "voice")
        assert "ferry" in (await harness.say("/recall ferry")).text


async def test_forwarded_voice_note_is_not_the_senders_own_words(home: Path) -> None:
    model = ScriptedModel(says("I see."))
    async with (
        TranscriptionService(SEGMENTS) as service,
        open_gateway(home, model, options_for(service)) as harness,
    ):
        reply = await harness.send(NOTE, "voice.oga", "voice", origin="forwarded")
        assert reply.text.startswith("_It says: “")
        rows = await harness.services.database.fetch_all(
            "SELECT origin FROM messages WHERE role = 'user'"
        )
        assert [row["origin"] for row in rows] == ["forwarded"]


async def test_without_a_transcriber_the_note_is_kept_and_transcribed_later(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("I can't hear it."))) as harness:
        reply = await harness.send(NOTE, "voice.oga", "voice")
        assert "can't listen to it: no transcriber is set up" in reply.text
        assert "mneme" not in (await harness.say("/recall plumber")).text
    async with TranscriptionService(SEGMENTS) as service:
        with (home / "mneme.toml").open("a") as file:
            file.write(f"\n{options_for(service)}")
        line = await asyncio.to_thread(good, home, "media", "transcribe")
        assert "1 voice note transcribed, 0 not" in line
        found = await asyncio.to_thread(good, home, "recall", "plumber", "--files")
        assert "voice note, 0:42" in found


async def test_failed_transcription_keeps_the_voice_file_and_is_reported(home: Path) -> None:
    async with (
        TranscriptionService(SEGMENTS, status=500) as service,
        open_gateway(home, ScriptedModel(says("Hm.")), options_for(service)) as harness,
    ):
        reply = await harness.send(NOTE, "voice.oga", "voice")
        assert "couldn't transcribe it" in reply.text
        assert len(kept_files(home)) == 1


async def test_program_can_transcribe_instead_of_a_server(home: Path) -> None:
    script = home.parent / "listen.py"
    script.write_text("import sys; print('The boiler hums', sys.argv[1][-4:])")
    options = f'[media.transcriber]\ncommand = ["{sys.executable}", "{script}", "{{file}}"]\n'
    async with open_gateway(home, ScriptedModel(says("Ok.")), options) as harness:
        reply = await harness.send(NOTE, "voice.oga", "voice")
        assert "You said: “The boiler hums .ogg”" in reply.text


async def test_program_gets_a_wav_file_and_its_times_are_found_by_recall(home: Path) -> None:
    script = home.parent / "listen.py"
    script.write_text(
        "import sys, wave\n"
        "sound = wave.open(sys.argv[1])\n"
        "print('[00:00:00.000 --> 00:00:02.000]  It has', sound.getframerate(), 'values,')\n"
        "print('[00:01:42.000 --> 00:01:45.120]   and the boiler leaks.')\n"
    )
    options = f'[media.transcriber]\ncommand = ["{sys.executable}", "{script}", "{{wav}}"]\n'
    sound = make_video(2, container="mov")
    async with open_gateway(home, ScriptedModel(says("Ok.")), options) as harness:
        reply = await harness.send(sound, "voice.oga", "voice")
        assert "You said: “It has 16000 values, and the boiler leaks.”" in reply.text
        assert "voice note, 1:42" in (await harness.say("/recall boiler")).text


async def test_program_that_prints_nothing_has_not_understood_the_recording(home: Path) -> None:
    options = f'[media.transcriber]\ncommand = ["{sys.executable}", "-c", "", "{{file}}"]\n'
    async with open_gateway(home, ScriptedModel(says("Hm.")), options) as harness:
        reply = await harness.send(NOTE, "voice.oga", "voice")
        assert "couldn't transcribe it" in reply.text


async def test_output_of_a_program_is_kept_up_to_a_limit(tmp_path: Path) -> None:
    endless = f"import sys; sys.stdout.write('a' * {2 * MAX_OUTPUT_BYTES})"
    output = await run_program([sys.executable, "-c", endless], tmp_path, "transcriber", LIMITS)
    assert output == b"a" * MAX_OUTPUT_BYTES + " […]".encode()


@pytest.mark.parametrize("is_timed", [True, False])
async def test_transcript_over_the_limit_ends_with_a_mark(tmp_path: Path, is_timed: bool) -> None:
    path = tmp_path / "voice"
    path.write_bytes(NOTE)
    sentence = "The boiler leaks again. " * 5_000
    segments = [(60.0 * number, sentence) for number in range(4)]
    async with TranscriptionService(segments) as service:
        if is_timed:
            transcript = await ServerTranscriber(service.url, "whisper").transcribe(path)
        else:
            output = json.dumps({"text": sentence * 4})
            program = tmp_path / "print.py"
            program.write_text(f"print({output!r})")
            command = [sys.executable, str(program)]
            transcript = await ProgramTranscriber(command, Decoder(), LIMITS).transcribe(path)
    assert transcript.text.endswith(" […]")
    assert transcript.text.count("[…]") == 1
    assert MAX_TEXT_CHARS <= len(transcript.text) < MAX_TEXT_CHARS + 20


@pytest.mark.sweep
async def test_program_that_needs_more_memory_than_allowed_fails_with_a_sentence(
    tmp_path: Path,
) -> None:
    greedy = "import sys; sys.stdin.read(); print(len(bytearray(500_000_000)))"
    command = [sys.executable, "-c", greedy]
    with pytest.raises(FileError, match="the transcriber ended with status 1"):
        await run_program(command, tmp_path, "transcriber", LIMITS)
    output = await run_program(command, tmp_path, "transcriber", replace(LIMITS, memory_mb=2_000))
    assert output == b"500000000\n"


async def test_program_with_too_much_memory_is_killed_where_the_system_has_no_limit(
    tmp_path: Path,
) -> None:
    greedy = "import time; data = b'x' * 200_000_000; time.sleep(600)"
    limits = replace(LIMITS, memory_mb=100, system="macos")
    with pytest.raises(FileError, match="the transcriber ended with status -9"):
        await run_program([sys.executable, "-c", greedy], tmp_path, "transcriber", limits)


async def test_program_starts_with_its_limit_and_passes_it_on(tmp_path: Path) -> None:
    child = "import resource as r; print(r.getrlimit(r.RLIMIT_DATA), r.getrlimit(r.RLIMIT_CORE))"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    output = await run_program([sys.executable, "-c", script], tmp_path, "transcriber", LIMITS)
    assert output.decode().split("\n")[0] == f"({400 * 2**20}, {400 * 2**20}) (0, 0)"


async def test_program_that_does_not_exist_fails_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="the speaker can't be started: there is no program wisper"):
        await run_program(["wisper"], tmp_path, "speaker", LIMITS)


async def test_program_that_is_given_up_ends_with_the_programs_that_it_started(
    tmp_path: Path,
) -> None:
    pid_path = tmp_path / "pid"
    script = f"sleep 600 & echo $! > {pid_path}.part; mv {pid_path}.part {pid_path}; wait"
    call = asyncio.create_task(run_program(["sh", "-c", script], tmp_path, "transcriber", LIMITS))
    await wait_until(pid_path.exists)
    call.cancel()
    await wait_until(lambda: not is_running(int(pid_path.read_text())))


async def wait_until(predicate: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not predicate():  # noqa: ASYNC110 - a process has no event to wait for
            await asyncio.sleep(0.05)


def is_running(pid: int) -> bool:
    """Return whether a process runs. One that ended and waits for its parent doesn't."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("kind", ["audio", "document"])
async def test_words_of_an_audio_file_are_its_text_and_not_the_persons_own(
    home: Path, kind: str
) -> None:
    model = ScriptedModel(says("I see."))
    async with (
        TranscriptionService(SEGMENTS) as service,
        open_gateway(home, model, options_for(service)) as harness,
    ):
        reply = await harness.send(NOTE, "interview.ogg", kind)
        assert "You said" not in reply.text
        assert "— 0:42 —\nThe plumber says the boiler leaks." in texts_of(model.requests[0])
        assert "interview.ogg" in (await harness.say("/recall boiler")).text
