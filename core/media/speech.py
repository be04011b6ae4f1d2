"""Turns voice messages into text, with a server that has OpenAI's endpoint or with a local program.

If the server or program reports times, the text is returned in parts with the second at which each
part begins.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from core.errors import FileError
from core.store.media.files import FilePart

if TYPE_CHECKING:
    import httpx

MAX_TEXT_CHARS = 200_000
MAX_OUTPUT_BYTES = 4_000_000
_TRANSCRIBER = "transcriber"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The spoken words of a recording."""

    # Each part's label is the time at which it begins: "0:42".
    parts: Sequence[FilePart]
    duration_s: float | None = None

    @property
    def text(self) -> str:
        return " ".join(part.text for part in self.parts)


class Transcriber(Protocol):
    """Turns speech into text."""

    async def transcribe(self, path: Path) -> Transcript:
        """Return the spoken words of a file. Raises FileError if that fails."""


@dataclass(frozen=True)
class ServerTranscriber:
    """Sends recordings to a server with the endpoint ``/audio/transcriptions``."""

    url: str
    model: str
    key: str = ""
    timeout_s: float = 60.0

    async def transcribe(self, path: Path) -> Transcript:
        content = await asyncio.to_thread(path.read_bytes)
        # Telegram calls such files ".oga", which several servers refuse.
        files = {"file": ("voice.ogg", content, "audio/ogg")}
        data = {"model": self.model, "response_format": "verbose_json"}
        response = await self._post(data=data, files=files)
        if response.status_code == HTTPStatus.BAD_REQUEST:
            # Some models know only the plain form, without times.
            plain = {**data, "response_format": "json"}
            response = await self._post(data=plain, files=files)
        check_status(response, _TRANSCRIBER)
        try:
            return _read_answer(response.json())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FileError("the transcriber's answer can't be read") from error

    async def _post(self, **content: Any) -> httpx.Response:
        url = f"{self.url}/audio/transcriptions"
        return await post(url, _TRANSCRIBER, self.key, self.timeout_s, **content)


def _read_answer(answer: dict[str, Any]) -> Transcript:
    """Return the transcript in a server's answer, with times if the answer has segments."""
    parts = []
    for segment in answer.get("segments") or ():
        text = " ".join(str(segment["text"]).split())
        if text:
            parts.append(FilePart(label=format_seconds(float(segment["start"])), text=text))
    text = " ".join(str(answer["text"]).split())[:MAX_TEXT_CHARS]
    if not parts and text:
        parts = [FilePart(label="0:00", text=text)]
    duration = answer.get("duration")
    return Transcript(parts=parts, duration_s=None if duration is None else float(duration))


@dataclass(frozen=True)
class ProgramTranscriber:
    """Runs a program that prints the spoken words of a file.

    ``{file}`` in the command stands for the path of the file.
    """

    command: Sequence[str]
    timeout_s: float = 60.0

    async def transcribe(self, path: Path) -> Transcript:
        # Stored files have no extension, but some programs need one.
        with tempfile.TemporaryDirectory(prefix="mneme-") as folder:
            copy = Path(folder, "voice.ogg")
            await asyncio.to_thread(shutil.copyfile, path, copy)
            output = await run_program(self.command, copy, _TRANSCRIBER, self.timeout_s)
        return _read_output(output[:MAX_OUTPUT_BYTES].decode("utf-8", "replace"))


def _read_output(output: str) -> Transcript:
    """Return the transcript in a program's output, which is plain text or the JSON of a server."""
    if output.lstrip().startswith("{"):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return _read_answer(json.loads(output))
    text = " ".join(output.split())[:MAX_TEXT_CHARS]
    return Transcript(parts=[FilePart(label="0:00", text=text)] if text else [])


async def post(url: str, name: str, key: str, timeout_s: float, **content: Any) -> httpx.Response:
    """Send a request to a speech server. Error messages call the server `name`.

    Raises FileError if the server can't be reached.
    """
    # Imported here because loading takes a tenth of a second, and most processes never need it.
    import httpx

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        async with httpx.AsyncClient(timeout=timeout_s) as client:
            return await client.post(url, headers=headers, **content)
    except httpx.HTTPError as error:
        raise FileError(f"the {name} can't be reached ({type(error).__name__})") from error


def check_status(response: httpx.Response, name: str) -> None:
    """Raise FileError if the status of a server's response isn't a success."""
    if response.status_code != HTTPStatus.OK:
        raise FileError(f"the {name} answers with status {response.status_code}")


async def run_program(
    command: Sequence[str], path: Path, name: str, timeout_s: float, text: str = ""
) -> bytes:
    """Run a speech program, and return its output. Error messages call the program `name`.

    ``{file}`` in the command stands for `path`. The program gets the text as its input. Raises
    FileError if it fails or takes too long.
    """
    arguments = [argument.replace("{file}", str(path)) for argument in command]
    try:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        raise FileError(f"the {name} can't be started: {error.strerror}") from error
    try:
        async with asyncio.timeout(timeout_s):
            output, _ = await process.communicate(text.encode("utf-8", "replace"))
    except TimeoutError as error:
        raise FileError(f"the {name} takes too long") from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await asyncio.shield(process.wait())
    if process.returncode:
        raise FileError(f"the {name} ended with status {process.returncode}")
    return output


def format_seconds(seconds: float) -> str:
    """Return a duration as text, such as "0:42"."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
