"""/export gives a person all that is held about them, in a direct chat only."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict

from core.errors import Refused
from core.notes.notebook import ALL_FILES
from core.transfer.formats import to_line
from core.types import Answer, Command, File, Payer
from gateway import texts
from gateway.commands.registry import CommandContext, announced
from gateway.services import Services

PLAIN_BYTES, EXPORT_BYTES = 2_000_000, 24_000_000
"""A longer file of an export is compressed; the longest is then below what every platform lets a bot send."""


class ExportCommands:
    specs = announced("export")

    def __init__(self, services: Services) -> None:
        self._services = services

    async def run(self, command: Command, context: CommandContext) -> Answer:
        if context.scope.is_room or not context.inbound.is_direct:
            raise Refused(texts.EXPORT_DIRECT_ONLY)
        payer = Payer(scope=context.scope, user_id=context.account.user_id)
        await self._services.usage_log.check(payer, self._services.clock.now(), "files")
        said = (to_line(record) async for record in self._services.archive.export(context.scopes))
        held = (json.dumps(row, ensure_ascii=False, default=str) async for row in self._held(context))
        day = f"{self._services.clock.now():%Y-%m-%d}"
        files = [await _file(f"said-{day}", said), await _file(f"held-{day}", held)]
        return Answer(text=texts.EXPORTED, files=tuple(file for file in files if file.content))

    async def _held(self, context: CommandContext) -> AsyncIterator[Mapping[str, object]]:
        services, scopes = self._services, context.scopes
        accounts = [one.account for one in await services.links.accounts(context.account)] or [context.account]
        for target in ALL_FILES:
            for note in await services.notebook.entries(scopes, target):
                yield {"kind": "note", "target": target, "text": note}
        for name, path, text in await services.skills.texts(scopes):
            yield {"kind": "skill", "name": name, "path": path, "text": text}
        for typed in await asyncio.to_thread(services.home_files.typed, scopes):
            yield {"kind": "typed in the terminal", "text": typed}
        for (kind, model), bill in (await services.usage_log.spent(scopes)).bills:
            cost = None if bill.cost is None else bill.amount(bill.cost)
            spent = {"calls": bill.calls, "tokens": asdict(bill.usage), "cost": cost}
            yield {"kind": "spent on models", "for": kind, "model": model, **spent}
        async for row in services.archive.held(scopes, accounts):
            yield row


async def _file(name: str, lines: AsyncIterator[str]) -> File:
    """A long one is compressed; a short one can be read as it is. Raises Refused for what cannot be sent."""
    parts, size = [], 0
    async for line in lines:
        parts.append(f"{line}\n".encode("utf-8", "replace"))
        size += len(parts[-1])
        if size > EXPORT_BYTES:
            raise Refused(texts.EXPORT_TOO_LONG)
    content = b"".join(parts)
    if size < PLAIN_BYTES:
        return File(name=f"{name}.jsonl", content=content, mime="application/jsonl")
    packed = await asyncio.to_thread(gzip.compress, content, mtime=0)
    return File(name=f"{name}.jsonl.gz", content=packed, mime="application/gzip")
