"""/export: a person gets everything that is held about them, as files of JSON lines, in a direct chat only."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict

from core.errors import Refused
from core.notes.notebook import FILES
from core.transfer.formats import to_line
from core.types import Answer, Command, CommandSpec, File
from gateway import texts
from gateway.commands.context import CommandContext
from gateway.services import Services

PART_CHARS = 8_000_000
"""Longest part of an export: compressed it is below what every platform lets a bot send."""
PARTS = 10
"""Most files of one answer."""


class ExportCommands:
    """What was said, in the format of `mneme import`, and beside it all else."""

    specs = (
        CommandSpec(name="export", description="Everything I hold about you, as files of JSON lines", is_private=True),
    )

    def __init__(self, services: Services) -> None:
        self._services = services

    def is_reading(self, command: Command) -> bool:
        """It changes nothing."""
        return True

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """See `gateway.commands.registry`."""
        if context.scope.is_room or not context.inbound.is_direct:
            raise Refused(texts.EXPORT_DIRECT_ONLY)
        day = f"{self._services.clock.now():%Y-%m-%d}"
        lines = (to_line(record) async for record in self._services.archive.export(context.scopes))
        said = [part async for part in _parts(lines)]
        held = [part async for part in _parts(self._held(context))]
        parts = [(f"said-{day}", part) for part in said] + [(f"held-{day}", part) for part in held]
        if len(parts) > PARTS:
            raise Refused(texts.EXPORT_TOO_LONG)
        files = tuple(_file(name, number, part) for number, (name, part) in enumerate(parts, start=1))
        return Answer(text=texts.EXPORTED, files=files)

    async def _held(self, context: CommandContext) -> AsyncIterator[str]:
        services, scopes = self._services, context.scopes
        accounts = [one.account for one in await services.links.accounts(context.account)] or [context.account]
        for target in FILES:
            for note in await services.notebook.entries(scopes, target):
                yield _line({"kind": "note", "target": target, "text": note})
        for line in await asyncio.to_thread(lambda: list(services.home_files.held(scopes))):
            yield _line(line)
        for total, cost in await services.usage_report.bills(scopes):
            spent = {"calls": total.calls, "tokens": asdict(total.usage), "cost": cost}
            yield _line({"kind": "spent on models", "for": total.kind, "model": total.model, **spent})
        async for row in services.personal_data.held(scopes, accounts):
            yield _line(row)


async def _parts(lines: AsyncIterator[str]) -> AsyncIterator[str]:
    """Whole lines in parts that can be sent; not more of them than can."""
    part: list[str] = []
    size = count = 0
    async for line in lines:
        if size + len(line) > PART_CHARS and part:
            yield "".join(part)
            part, size, count = [], 0, count + 1
            if count > PARTS:
                return
        part.append(f"{line}\n")
        size += len(line) + 1
    if part:
        yield "".join(part)


def _line(row: Mapping[str, object]) -> str:
    return json.dumps(row, ensure_ascii=False, default=str)


def _file(name: str, number: int, part: str) -> File:
    """A long part is compressed; a short one can be read as it is."""
    content = part.encode("utf-8", "replace")
    if len(content) < PART_CHARS // 4:
        return File(name=f"{name}-{number}.jsonl", content=content, mime="application/jsonl")
    return File(name=f"{name}-{number}.jsonl.gz", content=gzip.compress(content, mtime=0), mime="application/gzip")
