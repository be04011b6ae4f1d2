"""Real speech in and out: espeak-ng speaks voice notes and answers, and pocketsphinx hears them.

pocketsphinx knows English only, and hears it well only within a grammar. Voice notes in other
languages go to a double of a server, which answers with the right words.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from core.media.decoding import Decoder
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.fixtures.transcription_service import TranscriptionService
from tests.gateway.media.test_voice import wait_for_spoken

REQUIRED = "MNEME_SPEECH_REQUIRED"
FOLDER = Path(os.environ.get("MNEME_SPEECH") or "/does/not/exist")
PYTHON = FOLDER / "bin" / "python"
ROOT = Path(__file__).parents[2]
MISSING = "espeak-ng or pocketsphinx isn't installed; make speech installs them."
IS_MISSING = shutil.which("espeak-ng") is None or not PYTHON.exists()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(IS_MISSING and not os.environ.get(REQUIRED), reason=MISSING),
]

# A sentence with the boiler comes after about forty seconds.
NOTES = {
    "en": ("I was at the house today and it was raining all the time. ", "The boiler leaks."),
    "de": ("Ich war heute im Haus und es hat die ganze Zeit geregnet. ", "Der Kessel tropft."),
    "fr": ("J'étais à la maison aujourd'hui et il pleuvait tout le temps. ", "La chaudière fuit."),
}
WISH = "remind me tomorrow at nine to call anna"
ANSWER = "the ferry leaves at nine"
GRAMMAR = f"""#JSGF V1.0;
grammar sentences;
public <sentence> = {WISH} | {ANSWER} | remove the reminder | what is the weather in porto ;
"""


@pytest.fixture(autouse=True)
def programs() -> None:
    """Fail where the programs must be there."""
    assert not IS_MISSING, MISSING


def speak(text: str, language: str, path: Path) -> None:
    """Let espeak-ng speak a text into a WAV file."""
    command = ["espeak-ng", "--stdin", "-v", language, "-w", str(path)]
    subprocess.run(command, input=text.encode(), check=True)


async def speak_note(text: str, language: str, folder: Path) -> bytes:
    """Return a voice note as Telegram sends it: OGG with Opus."""
    speak(text, language, folder / "note.wav")
    assert await Decoder().write_speech(folder / "note.wav", folder / "note.ogg")
    return (folder / "note.ogg").read_bytes()


def hear(grammar: Path, note: Path) -> str:
    """Let pocketsphinx hear a recording, and return its words."""
    command = [sys.executable, "-m", "tests.speech.listen", str(PYTHON), str(grammar), str(note)]
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return result.stdout.decode().strip()


def listening_command(folder: Path) -> str:
    """Return the settings of a transcriber that is pocketsphinx with the grammar."""
    (folder / "sentences.gram").write_text(GRAMMAR)
    command = ["-m", "tests.speech.listen", str(PYTHON), str(folder / "sentences.gram"), "{file}"]
    words = json.dumps(["env", f"PYTHONPATH={ROOT}", sys.executable, *command])
    return f"[media.transcriber]\ntimeout_s = 600\ncommand = {words}\n"


@pytest.mark.parametrize("language", NOTES)
async def test_spoken_minute_in_three_languages_is_kept_with_its_length_and_found_by_second(
    home: Path, tmp_path: Path, language: str
) -> None:
    filler, sentence = NOTES[language]
    note = await speak_note(filler * 18 + sentence, language, tmp_path)
    segments = [(0.0, filler), (42.0, sentence)]
    async with TranscriptionService(segments) as service:
        options = f'[media.transcriber]\nurl = "{service.url}"\nmodel = "whisper"\n'
        async with open_gateway(home, OfflineModel("Europe/Lisbon"), options) as harness:
            reply = await harness.send(note, "voice.oga", "voice")
            assert sentence in reply.text
            row = await harness.services.database.fetch_one("SELECT duration_s FROM files")
            word = sentence.split()[1]
            assert ", 0:42**" in (await harness.say(f"/recall {word}")).text
    assert row is not None
    assert 45 < row["duration_s"] < 90
    assert service.uploads == [("voice.ogg", len(note))]


async def test_spoken_wish_that_a_real_recognizer_hears_sets_a_reminder(
    home: Path, tmp_path: Path
) -> None:
    note = await speak_note(WISH, "en", tmp_path)
    model = OfflineModel("Europe/Lisbon")
    async with open_gateway(home, model, listening_command(tmp_path)) as harness:
        reply = await harness.send(note, "voice.oga", "voice")
        assert f"You said: “{WISH}”" in reply.text
        assert "call anna" in (await harness.say("/cron")).text


async def test_answer_that_espeak_speaks_is_heard_by_a_real_recognizer(
    home: Path, tmp_path: Path
) -> None:
    options = "[media.speaker]\ntimeout_s = 600\n"
    options += 'command = ["espeak-ng", "--stdin", "-v", "en", "-w", "{file}"]\n'
    async with open_gateway(home, ScriptedModel(says(f"{ANSWER}.")), options) as harness:
        await harness.say("/voice on")
        await harness.say("When does it leave?")
        item = await wait_for_spoken(harness)
    assert item.answer is not None
    (file,) = item.answer.files
    assert b"OpusHead" in file.content
    note = tmp_path / "answer.ogg"
    note.write_bytes(file.content)
    (tmp_path / "sentences.gram").write_text(GRAMMAR)
    assert await asyncio.to_thread(hear, tmp_path / "sentences.gram", note) == ANSWER
