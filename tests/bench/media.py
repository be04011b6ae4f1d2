"""Measures files.

The figures are the time from the update with a picture, a document or a voice note to the request
to the model, the memory of the worker process, the time of recall over 10,000 files, and the disk
space of a file.
"""

from __future__ import annotations

import hashlib
import io
import random
import resource
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import av
from PIL import Image

from core.ports import TextCallback
from core.store.media.files import AttachedFile, FileContent, FileFilter, FilePart, Files
from core.types import Address, Completion, Request, Scope
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.loop_watch import measure_fixed_work
from tests.fixtures.media_samples import make_pdf
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.fixtures.transcription_service import TranscriptionService

FILES = 10_000
ROUNDS = 5
QUERIES = 20
SCOPE = Scope.account("telegram", "42")
WORDS = [
    "boiler",
    "invoice",
    "garden",
    "roof",
    "deposit",
    "ferry",
    "insurance",
    "tenant",
    "valve",
    "window",
    "plumber",
    "meter",
    "contract",
    "kitchen",
    "receipt",
    "passport",
    "school",
    "bicycle",
    "dentist",
    "harbour",
]


class _TimedModel(ScriptedModel):
    """A model that records when it is called."""

    asked_at = 0.0

    async def complete(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        self.asked_at = time.monotonic()
        return await super().complete(request, on_text, on_wait)


def _make_photo(seed: int) -> bytes:
    """Return a photo of 12 megapixels, as detailed as a real one after scaling."""
    noise = Image.effect_noise((1_000, 750), 60 + seed).resize((4_000, 3_000))
    buffer = io.BytesIO()
    noise.convert("RGB").save(buffer, "JPEG", quality=88)
    return buffer.getvalue()


def _make_document(seed: int) -> bytes:
    dice = random.Random(seed)
    return make_pdf([" ".join(dice.choices(WORDS, k=12)) for _ in range(50)])


def _make_voice(seed: int) -> bytes:
    """Return a minute of sound as OGG with Opus."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="ogg") as output:
        stream = output.add_stream("libopus", rate=48_000, layout="mono")
        dice = random.Random(seed)
        for number in range(60 * 50):
            frame = av.AudioFrame(format="s16", layout="mono", samples=960)
            frame.planes[0].update(dice.randbytes(1_920))
            frame.sample_rate, frame.pts = 48_000, number * 960
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return buffer.getvalue()


async def measure(folder: Path) -> str:
    """Return the report as Markdown."""
    work_s = median(measure_fixed_work() for _ in range(9))
    lines = [
        f"fixed work: {work_s * 1000:.1f} ms",
        "",
        "| file | update to request, median | at most |",
    ]
    lines.append("| --- | --- | --- |")
    (folder / "one").mkdir()
    segments = [(float(second), "The plumber says the boiler leaks.") for second in range(0, 60, 5)]
    model = _TimedModel(*(says("I see.") for _ in range(3 * ROUNDS)))
    async with TranscriptionService(segments) as service:
        options = (
            f'[memory]\nfacts = false\n[media.transcriber]\nurl = "{service.url}"\nmodel = "w"\n'
        )
        async with open_gateway(folder / "one", model, options) as harness:
            kinds = (
                ("photo of 12 megapixels", "photo.jpg", "photo", _make_photo),
                ("PDF of 50 pages", "contract.pdf", "document", _make_document),
                ("voice note of a minute", "voice.oga", "voice", _make_voice),
            )
            for what, name, kind, make in kinds:
                times = []
                for seed in range(ROUNDS):
                    content = make(seed)
                    began_at = time.monotonic()
                    await harness.send(content, name, kind, "What is it?")
                    times.append(model.asked_at - began_at)
                lines.append(f"| {what} | {median(times):.2f} s | {max(times):.2f} s |")
            lines += ["", _describe_room(folder / "one", 3 * ROUNDS)]
    worker_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    lines.append(f"worker: {worker_mb:.0f} MB at most")
    (folder / "many").mkdir()
    async with open_gateway(folder / "many", ScriptedModel()) as harness:
        lines += await _measure_recall(harness, folder / "many")
    return "\n".join(lines)


def _describe_room(home: Path, files: int) -> str:
    paths = [path for path in (home / "media").rglob("*") if path.is_file()]
    views = sum(path.stat().st_size for path in paths if ".view" in path.name)
    size = sum(path.stat().st_size for path in paths)
    return f"disk: {files} files take {size / 1e6:.1f} MB, {views / 1e6:.2f} MB of it are views"


async def _measure_recall(harness: GatewayHarness, home: Path) -> Sequence[str]:
    files = harness.services.files
    before = _database_size(home)
    await _fill(files)
    size = (_database_size(home) - before) / FILES
    dice = random.Random(7)
    searches, recalls = [], []
    for _ in range(QUERIES):
        words = " ".join(dice.sample(WORDS, 2))
        began_at = time.monotonic()
        matches = await files.search(words, frozenset((SCOPE,)), FileFilter(), 10)
        searches.append(time.monotonic() - began_at)
        assert matches
        began_at = time.monotonic()
        await harness.say(f"/recall {words} has:file")
        recalls.append(time.monotonic() - began_at)
    return (
        f"state.db: {size / 1000:.1f} kB for a file with three pages of text, its index included",
        f"{FILES:,} files: a search takes {median(searches) * 1000:.0f} ms, "
        f"`/recall … has:file` {median(recalls) * 1000:.0f} ms (medians of {QUERIES})",
    )


def _database_size(home: Path) -> int:
    return sum(path.stat().st_size for path in home.glob("state.db*") if path.is_file())


async def _fill(files: Files) -> None:
    dice = random.Random(3)
    for number in range(FILES):
        pages = [" ".join(dice.choices(WORDS, k=60)) for _ in range(3)]
        content = FileContent(
            hash=hashlib.sha256(str(number).encode()).hexdigest(),
            type="application/pdf",
            size=90_000,
            pages=3,
        )
        file = AttachedFile(
            scope=SCOPE,
            address=Address(platform="telegram", chat_id="42"),
            external_id=str(100_000 + number),
            position=0,
            account="telegram:42",
            kind="document",
            name=f"paper-{number}.pdf",
            at=datetime(2026, 1, 1, tzinfo=UTC),
            content=content,
        )
        parts = [
            FilePart(label=f"page {page}", text=text) for page, text in enumerate(pages, start=1)
        ]
        await files.store(file, parts)
