"""Starts the worker process that decodes a file, and reads its result.

A worker gets one file, and neither settings nor secrets. If the file takes too long, needs too much
memory or breaks the decoder, it counts as unreadable, and the gateway isn't affected.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from config.operating_system import SYSTEM, System, watch_memory
from core.errors import Refused
from core.media.folder import list_views, number_view
from core.media.formats.kinds import SVG

# How many files are decoded at the same time.
MAX_WORKERS = 2
# A worker may run for this many times its processor time, because other programs may keep the
# machine busy.
BUSY_FACTOR = 6
MAX_OUTPUT_BYTES = 16 * 2**20
UNKNOWN_TYPE = "application/octet-stream"
_ROOT = Path(__file__).resolve().parents[2]
_log = structlog.get_logger("media")

Note = Literal[
    "",
    # A document with pictures as pages.
    "scan",
    # A document with a password.
    "locked",
    "broken",
    # Decoding takes too much time, memory or disk space.
    "bomb",
    # Mneme doesn't read this type.
    "unknown",
    # A video, and PyAV isn't installed.
    "no_video",
    # A voice message or video without a transcript: no transcriber is configured, or it failed.
    "unheard",
    "inaudible",
]
"""The reason why a file has no text."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")

    label: str
    text: str


class Decoded(BaseModel):
    """The type, the text and the details that the worker read from a file."""

    model_config = ConfigDict(extra="ignore")

    type: str = UNKNOWN_TYPE
    note: Note = ""
    pages: Annotated[int, Field(ge=0)] | None = None
    # The numbers of a PDF's pages that are pictures without text, if other pages have text. The
    # views show the first of them, in this order.
    scanned_pages: Sequence[int] = ()
    width: int | None = None
    height: int | None = None
    duration_s: float | None = None
    parts: Sequence[_Part] = ()
    # Only for a video.
    has_sound: bool = False
    # Only for a web page.
    title: str = ""
    date: str = ""
    # Whether a copy without a position, or the sound, was written.
    clean: bool = False


@dataclass(eq=False)
class Decoder:
    """Decodes files in worker processes. `timeout_s` limits the processor time of a worker."""

    timeout_s: float = 20.0
    memory_mb: int = 1024
    system: System = SYSTEM
    # The folder for temporary copies of files, which is emptied at each start. If it's None, the
    # system's folder for temporary files is used.
    scratch_path: Path | None = None

    def __post_init__(self) -> None:
        self._free_workers = asyncio.Semaphore(MAX_WORKERS)

    def open_scratch(self) -> tempfile.TemporaryDirectory[str]:
        """Create a folder for the temporary copies of a file, as a context manager.

        Raises OSError if it can't be created.
        """
        if self.scratch_path is not None:
            self.scratch_path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix="mneme-", dir=self.scratch_path)

    async def read(self, path: Path, view_path: Path, name: str, language: str = "") -> Decoded:
        """Return the type and the text of a file.

        Write its views to `view_path` and files next to it. If the encoding of a text is unsure,
        `language` decides, which is the language of the person who sent it, such as "pl".
        """
        # A killed worker must not leave an incomplete view.
        new_path = view_path.with_name(f"{view_path.name}.part")
        try:
            decoded = await self._run("read", path, new_path, name, language)
            for number, new_view_path in enumerate(list_views(new_path)):
                new_view_path.replace(number_view(view_path, number))
        finally:
            for new_view_path in list_views(new_path):
                new_view_path.unlink(missing_ok=True)
        return decoded

    async def read_page(self, path: Path, url: str, name: str) -> Decoded:
        """Return the content of a download, including the title and date of a web page."""
        return await self._run("page", path, url, name)

    async def clean(self, path: Path, copy_path: Path, name: str) -> bool:
        """Write a copy of a file without its position and those of the files inside it.

        Returns False, and writes nothing, if the file has no position. Raises Refused if the
        position can't be removed.
        """
        decoded = await self._run("clean", path, copy_path, name)
        if decoded.note:
            raise Refused(_choose_refusal(decoded.type), name=name)
        return decoded.clean

    async def write_speech(self, path: Path, sound_path: Path) -> bool:
        """Write the sound of a recording or video to a file. Returns False if that fails.

        The file is WAV if its name ends with ".wav", or else OGG with Opus.
        """
        return (await self._run("speech", path, sound_path, "")).clean

    async def _run(
        self, task: str, path: Path, target: Path | str, name: str, language: str = ""
    ) -> Decoded:
        """Run one task in a worker process. If the process fails, the file counts as unreadable.

        `target` is the path of the copy or view to write, or the address of a page.
        """
        arguments = [task, str(path), str(target), name[-80:].replace("\0", "")]
        limits = f"{self.memory_mb},{max(1, int(self.timeout_s))},{self.system}"
        async with self._free_workers:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-B", "-m", "core.media.worker", *arguments, limits, language),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={"PYTHONPATH": str(_ROOT), "PYTHONHASHSEED": "0", "MALLOC_ARENA_MAX": "2"},
                cwd=path.parent,
            )
            try:
                async with (
                    asyncio.timeout(self.timeout_s * BUSY_FACTOR),
                    watch_memory(process.pid, self.memory_mb, process.kill, self.system),
                ):
                    output = await _read_output(process)
            except TimeoutError:
                _log.warning("a file took too long to decode", type=Path(name).suffix)
                return Decoded(note="bomb")
            finally:
                await _end(process)
        try:
            return Decoded.model_validate_json(output)
        except ValidationError:
            _log.warning("a file couldn't be decoded", status=process.returncode)
            return Decoded(note="bomb")


def _choose_refusal(mime: str) -> str:
    """Return the key of the sentence for a file that isn't sent because of its position."""
    if mime.startswith(("video/", "audio/")):
        return "recording_position_stays"
    is_picture = mime.startswith("image/") and mime != SVG
    return "position_stays" if is_picture or mime == UNKNOWN_TYPE else "document_position_stays"


async def _read_output(process: asyncio.subprocess.Process) -> bytes:
    """Return the output of a process up to its end.

    Output that is too long is cut and therefore isn't valid JSON.
    """
    assert process.stdout is not None
    output = bytearray()
    while piece := await process.stdout.read(1 << 16):
        if len(output) <= MAX_OUTPUT_BYTES:
            output += piece
    await process.wait()
    return bytes(output[:MAX_OUTPUT_BYTES])


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a process that is still running, and wait for its end."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await asyncio.shield(process.wait())
