"""Turns voice messages into text, with a server that has OpenAI's endpoint or with a local program.

If the server or program reports times, the text is returned in parts with the second at which each
part begins.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import math
import os
import re
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from config.operating_system import SYSTEM, System, limit_command, watch_memory
from core.errors import FileError
from core.media.decoding import Decoder
from core.media.formats.kinds import CUT_MARK
from core.store.media.files import FilePart

if TYPE_CHECKING:
    import httpx

MAX_TEXT_CHARS = 200_000
MAX_OUTPUT_BYTES = 4_000_000
_TRANSCRIBER = "transcriber"
_NO_WORDS = "the transcriber heard no words"
_WAVE = "{wav}"
# Times that aren't between 0 and this number of seconds are wrong.
MAX_SECONDS = 1_000_000
# A line such as "[00:00:42.000 --> 00:00:45.120]  The boiler leaks."
_TIMED_LINE = re.compile(
    r"^\[(?:(?P<hours>\d+):)?(?P<minutes>\d+):(?P<seconds>\d+)[.,]\d+ --> [\d:.,]+\](?P<text>.*)$",
    re.MULTILINE,
)


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
            transcript = _read_answer(response.json())
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise FileError("the transcriber's answer can't be read") from error
        if not transcript.parts:
            raise FileError(_NO_WORDS)
        return transcript

    async def _post(self, **content: Any) -> httpx.Response:
        url = f"{self.url}/audio/transcriptions"
        return await post(url, _TRANSCRIBER, self.key, self.timeout_s, **content)


def _read_answer(answer: dict[str, Any]) -> Transcript:
    """Return the transcript in a server's answer, with times if the answer has segments."""
    parts = []
    for segment in answer.get("segments") or ():
        text = " ".join(str(segment["text"]).split())
        if text:
            parts.append(
                FilePart(label=format_seconds(_read_seconds(segment["start"]) or 0.0), text=text)
            )
    text = " ".join(str(answer["text"]).split())
    if not parts and text:
        parts = [FilePart(label="0:00", text=text)]
    duration = answer.get("duration")
    return Transcript(parts=_limit_parts(parts), duration_s=_read_seconds(duration))


def _limit_parts(parts: Sequence[FilePart]) -> list[FilePart]:
    """Return the parts of a transcript up to the limit. If some are left out, a mark follows."""
    limited: list[FilePart] = []
    remaining_chars = MAX_TEXT_CHARS
    for part in parts:
        if len(part.text) > remaining_chars:
            text = f"{part.text[:remaining_chars]} {CUT_MARK}".strip()
            return [*limited, FilePart(label=part.label, text=text)]
        limited.append(part)
        remaining_chars -= len(part.text)
    return limited


def _read_seconds(value: object) -> float | None:
    """Return a number of seconds in a server's answer, or None if it's missing or impossible.

    Raises ValueError or TypeError if it isn't a number.
    """
    if value is None:
        return None
    seconds = float(cast("str | float", value))
    return seconds if math.isfinite(seconds) and 0 <= seconds <= MAX_SECONDS else None


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """The limits of a speech program: its time, and the memory of each of its processes.

    On macOS, the memory of all its processes together is limited.
    """

    timeout_s: float
    memory_mb: int
    system: System = SYSTEM


@dataclass(frozen=True)
class ProgramTranscriber:
    """Runs a program that prints the spoken words of a file.

    ``{file}`` in the command is replaced with the path of the file. ``{wav}`` is replaced with the
    path of a WAV copy that the worker wrote, because many programs can't read Opus.
    """

    command: Sequence[str]
    decoder: Decoder
    limits: ProgramLimits

    async def transcribe(self, path: Path) -> Transcript:
        # Stored files have no extension, but some programs need one.
        with self.decoder.open_scratch() as folder:
            copy = Path(folder, "voice.ogg")
            await asyncio.to_thread(shutil.copyfile, path, copy)
            command = [*self.command]
            if any(_WAVE in argument for argument in command):
                wave = copy.with_suffix(".wav")
                if not await self.decoder.write_speech(copy, wave):
                    raise FileError("its sound can't be read; PyAV may be missing")
                command = [argument.replace(_WAVE, str(wave)) for argument in command]
            output = await run_program(command, copy, _TRANSCRIBER, self.limits)
        transcript = _read_output(output.decode("utf-8", "replace"))
        if not transcript.parts:
            # Some programs exit successfully although they couldn't read the file.
            raise FileError(_NO_WORDS)
        return transcript


def _read_output(output: str) -> Transcript:
    """Return the transcript in a program's output.

    The output is plain text, lines with times as whisper.cpp prints them, or JSON as a server sends
    it.
    """
    if output.lstrip().startswith("{"):
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return _read_answer(json.loads(output))
    parts: list[FilePart] = []
    for match in _TIMED_LINE.finditer(output):
        hours, minutes, seconds = (
            int(match[name] or 0) for name in ("hours", "minutes", "seconds")
        )
        text = " ".join(match["text"].split())
        if text:
            label = format_seconds(hours * 3_600 + minutes * 60 + seconds)
            parts.append(FilePart(label=label, text=text))
    if not parts:
        text = " ".join(output.split())
        parts = [FilePart(label="0:00", text=text)] if text else []
    return Transcript(parts=_limit_parts(parts))


async def post(url: str, name: str, key: str, timeout_s: float, **content: Any) -> httpx.Response:
    """Send a request to a speech server. Error messages call the server `name`.

    Raises FileError if the server can't be reached, or if the key has characters that a request
    can't contain.
    """
    # Imported here because loading takes a tenth of a second, and most processes never need it.
    import httpx

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        async with httpx.AsyncClient(timeout=timeout_s) as client:
            return await client.post(url, headers=headers, **content)
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise FileError(f"the {name} can't be reached ({type(error).__name__})") from error


def check_status(response: httpx.Response, name: str) -> None:
    """Raise FileError if the status of a server's response isn't a success."""
    if response.status_code != HTTPStatus.OK:
        raise FileError(f"the {name} answers with status {response.status_code}")


async def run_program(
    command: Sequence[str], path: Path, name: str, limits: ProgramLimits, text: str = ""
) -> bytes:
    """Run a speech program, and return its output. Error messages call the program `name`.

    ``{file}`` in the command is replaced with `path`. The program gets the text as its input.
    Raises FileError if it fails, takes too long or needs too much memory.
    """
    arguments = [argument.replace("{file}", str(path)) for argument in command]
    try:
        if await asyncio.to_thread(shutil.which, arguments[0]) is None:
            raise FileNotFoundError(errno.ENOENT, f"there is no program {arguments[0]}")
        process = await asyncio.create_subprocess_exec(
            *limit_command(arguments, limits.memory_mb, limits.system),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            # The programs that it starts end with it.
            start_new_session=True,
        )
    except OSError as error:
        raise FileError(f"the {name} can't be started: {error.strerror}") from error
    try:
        async with (
            asyncio.timeout(limits.timeout_s),
            watch_memory(process.pid, limits.memory_mb, partial(_kill, process), limits.system),
        ):
            _, output = await asyncio.gather(_write_input(process, text), _read_limited(process))
            await process.wait()
    except TimeoutError as error:
        raise FileError(f"the {name} takes too long") from error
    finally:
        if process.returncode is None:
            _kill(process)
            await asyncio.shield(process.wait())
    if process.returncode:
        raise FileError(f"the {name} ended with status {process.returncode}")
    return output


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill a program and the programs that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


async def _write_input(process: asyncio.subprocess.Process, text: str) -> None:
    """Write the input of a program. A program may ignore it."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(text.encode("utf-8", "replace"))
        await process.stdin.drain()
    process.stdin.close()


async def _read_limited(process: asyncio.subprocess.Process) -> bytes:
    """Return the beginning of a program's output. The rest is read, but not kept.

    Cut output ends with a mark.
    """
    assert process.stdout is not None
    output = bytearray()
    while piece := await process.stdout.read(1 << 16):
        output += piece[: MAX_OUTPUT_BYTES + 1 - len(output)]
    if len(output) > MAX_OUTPUT_BYTES:
        return bytes(output[:MAX_OUTPUT_BYTES]) + f" {CUT_MARK}".encode()
    return bytes(output)


def format_seconds(seconds: float) -> str:
    """Return a duration as text, such as "0:42"."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
