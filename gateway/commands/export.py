"""/export: a person gets everything that is held about him, as files of JSON lines, in a direct chat only."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Protocol

from core.errors import Refused
from core.notes.notebook import FILES, Notebook
from core.ports import Clock
from core.store.links import Links
from core.types import Account, Answer, Command, CommandSpec, File, Scope
from core.usage.report import UsageReport
from gateway.commands.context import CommandContext

_EXPORT = CommandSpec(name="export", description="Everything I hold about you, as files of JSON lines", is_private=True)
PART_CHARS = 8_000_000
"""Longest part of an export: with its packing it is below what every platform lets a bot send."""
PARTS = 10
"""Most files of one answer."""


class _Archive(Protocol):
    def export(self, scopes: frozenset[Scope]) -> AsyncIterator[str]: ...


class _Holdings(Protocol):
    def held(self, scopes: frozenset[Scope], accounts: Sequence[Account]) -> AsyncIterator[Mapping[str, object]]: ...


class _Files(Protocol):
    def held(self, scopes: frozenset[Scope]) -> Iterator[Mapping[str, object]]: ...


class ExportCommands:
    """What was said, in the format of `mneme import`, and beside it all else."""

    specs = (_EXPORT,)

    def __init__(
        self,
        archive: _Archive,
        holdings: _Holdings,
        files: _Files,
        notebook: Notebook,
        books: UsageReport,
        kinship: Links,
        clock: Clock,
    ) -> None:
        self._archive = archive
        self._holdings = holdings
        self._files = files
        self._notebook = notebook
        self._books = books
        self._kinship = kinship
        self._clock = clock

    def is_reading(self, command: Command) -> bool:
        """It changes nothing."""
        return True

    async def run(self, command: Command, caller: CommandContext) -> Answer:
        """See `gateway.commands.registry`."""
        if caller.scope.is_room or not caller.inbound.is_direct:
            raise Refused(
                "I export only in a direct chat with you: there you get what you said in rooms as well, and nobody "
                "else reads it."
            )
        day = f"{self._clock.now():%Y-%m-%d}"
        said = [part async for part in self._parts(self._archive.export(caller.scopes))]
        held = [part async for part in self._parts(self._held(caller))]
        parts = [(f"said-{day}", part) for part in said] + [(f"held-{day}", part) for part in held]
        if len(parts) > PARTS:
            raise Refused(
                "This is more than a chat can carry. Whoever runs me gets all of it with `mneme export` at the machine."
            )
        return Answer(
            text="This is everything I hold about you. The files `said-…` are our conversations (`mneme import` reads "
            "them), the files `held-…` are all else: accounts, notes and what became of them, facts, reminders, "
            "commands, what tools found, what models have cost, what you said in rooms. What a memory service was "
            "told is with that service.",
            files=tuple(_file(name, number, part) for number, (name, part) in enumerate(parts, start=1)),
        )

    async def _held(self, caller: CommandContext) -> AsyncIterator[str]:
        kin = await self._kinship.kin(caller.account)
        accounts = [one.account for one in kin] or [caller.account]
        for target in FILES:
            for note in await self._notebook.entries(caller.scopes, target):
                yield _line({"kind": "note", "target": target, "text": note})
        for line in await asyncio.to_thread(lambda: list(self._files.held(caller.scopes))):
            yield _line(line)
        for bill, cost in await self._books.bills(caller.scopes):
            spent = {"calls": bill.calls, "tokens": asdict(bill.usage), "cost": cost}
            yield _line({"kind": "spent on models", "for": bill.kind, "model": bill.model, **spent})
        async for row in self._holdings.held(caller.scopes, accounts):
            yield _line(row)

    async def _parts(self, lines: AsyncIterator[str]) -> AsyncIterator[str]:
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
    """A long part is packed; a short one can be read as it is."""
    content = part.encode("utf-8", "replace")
    if len(content) < PART_CHARS // 4:
        return File(name=f"{name}-{number}.jsonl", content=content, mime="application/jsonl")
    return File(name=f"{name}-{number}.jsonl.gz", content=gzip.compress(content, mtime=0), mime="application/gzip")
