"""Turns text into speech: with a server that has OpenAI's endpoint, or with a local program."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import httpx

from core.errors import FileError
from core.media.decoding import Decoder

MAX_SPEECH_BYTES = 20_000_000


class Speaker(Protocol):
    """Turns text into speech."""

    async def speak(self, text: str) -> bytes:
        """Return the speech as OGG with Opus. Raises FileError if that isn't possible now."""


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
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        try:
            async with httpx.AsyncClient(timeout=self.timeout_s) as client:
                response = await client.post(f"{self.url}/audio/speech", json=body, headers=headers)
        except httpx.HTTPError as error:
            raise FileError(f"the speaker can't be reached ({type(error).__name__})") from error
        if response.status_code != httpx.codes.OK:
            raise FileError(f"the speaker answers with status {response.status_code}")
        if not response.content.startswith(b"OggS") or len(response.content) > MAX_SPEECH_BYTES:
            raise FileError("the speaker's answer isn't OGG")
        return response.content


@dataclass(frozen=True)
class ProgramSpeaker:
    """Runs a program that reads text from its input and writes a WAV file.

    ``{file}`` stands for the path of that file.
    """

    command: Sequence[str]
    decoder: Decoder
    timeout_s: float = 60.0

    async def speak(self, text: str) -> bytes:
        with tempfile.TemporaryDirectory(prefix="mneme-") as folder:
            wave_path = Path(folder, "speech.wav")
            await self._run(text, wave_path)
            speech_path = Path(folder, "speech.ogg")
            if not await self.decoder.write_speech(wave_path, speech_path):
                raise FileError(
                    "the speaker's file can't be read; PyAV may be missing (mneme-gateway[video])"
                )
            return await asyncio.to_thread(speech_path.read_bytes)

    async def _run(self, text: str, path: Path) -> None:
        """Run the program. Raises FileError if it fails or writes no file."""
        arguments = [argument.replace("{file}", str(path)) for argument in self.command]
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            raise FileError(f"the speaker can't be started: {error.strerror}") from error
        try:
            async with asyncio.timeout(self.timeout_s):
                await process.communicate(text.encode("utf-8", "replace"))
        except TimeoutError as error:
            raise FileError("the speaker takes too long") from error
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await asyncio.shield(process.wait())
        if process.returncode or not await asyncio.to_thread(path.exists):
            raise FileError(f"the speaker ended with status {process.returncode}")
