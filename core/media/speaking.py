"""Turns text into speech, with a server that has OpenAI's endpoint or with a local program."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from core.errors import FileError
from core.media.decoding import Decoder
from core.media.speech import ProgramLimits, check_status, post, run_program

MAX_SPEECH_BYTES = 20_000_000
_SPEAKER = "speaker"


class Speaker(Protocol):
    """Turns text into speech."""

    async def speak(self, text: str) -> bytes:
        """Return the speech as OGG with Opus. Raises FileError if that fails."""


@dataclass(frozen=True)
class ServerSpeaker:
    """Sends text to a server with the endpoint ``/audio/speech``."""

    url: str
    model: str
    voice: str
    key: str = ""
    timeout_s: float = 60.0

    async def speak(self, text: str) -> bytes:
        body = {
            "model": self.model,
            "voice": self.voice,
            "input": text,
            "response_format": "opus",
        }
        url = f"{self.url}/audio/speech"
        response = await post(url, _SPEAKER, self.key, self.timeout_s, json=body)
        check_status(response, _SPEAKER)
        if not response.content.startswith(b"OggS") or len(response.content) > MAX_SPEECH_BYTES:
            raise FileError("the speaker's answer isn't OGG")
        return response.content


@dataclass(frozen=True)
class ProgramSpeaker:
    """Runs a program that reads text from its input and writes a WAV file.

    ``{file}`` in the command is replaced with the path of that file.
    """

    command: Sequence[str]
    decoder: Decoder
    limits: ProgramLimits

    async def speak(self, text: str) -> bytes:
        with self.decoder.open_scratch() as folder:
            wave_path = Path(folder, "speech.wav")
            await run_program(self.command, wave_path, _SPEAKER, self.limits, text)
            if not await asyncio.to_thread(wave_path.exists):
                raise FileError("the speaker wrote no file")
            speech_path = Path(folder, "speech.ogg")
            if not await self.decoder.write_speech(wave_path, speech_path):
                raise FileError(
                    "the speaker's file can't be read; PyAV may be missing (mneme-gateway[video])"
                )
            return await asyncio.to_thread(speech_path.read_bytes)
