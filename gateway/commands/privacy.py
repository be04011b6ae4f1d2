"""/forget erases, after a yes, something with all that was made of it; /export gives a person all that is held about
them, in a direct chat only."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict
from datetime import tzinfo
from zoneinfo import ZoneInfo

from core.errors import Refused
from core.markup.text import escape
from core.notes.files import FILES
from core.store.erasure import ErasureItem, ErasureList
from core.transfer.formats import to_line
from core.types import Answer, Command, File
from gateway import texts
from gateway.commands.context import CommandContext, announced
from gateway.services import Services

CONFIRMED = "--confirmed "
"""Stands before the token in what a yes runs; the token is the person's secret."""
LINE_CHARS = 160
PART_CHARS = 8_000_000
"""Longest part of an export: compressed it is below what every platform lets a bot send."""
PARTS = 10
"""Most files of one answer."""


class ForgetCommands:
    specs = announced("forget")

    def __init__(self, services: Services) -> None:
        self._forgetting = services.forgetting
        self._zone = ZoneInfo(services.settings.general.zone)

    async def run(self, command: Command, context: CommandContext) -> Answer:
        request = context.erasure_request
        if command.arguments.startswith(CONFIRMED):
            token = command.arguments.removeprefix(CONFIRMED).strip()
            try:
                text = receipt_text(await self._forgetting.erase(token, request))
            except Refused as refusal:
                text = str(refusal)
            return Answer(text=text, has_erased=True)
        traces = await self._forgetting.look(command.arguments, request)
        if traces is None:
            mine = " that you said here" if request.is_limited else ""
            return Answer(text=f"I have nothing{mine} with all of these words, so there is nothing to forget.")
        return Answer(
            text=f"{traces_text(traces, self._zone, is_limited=request.is_limited)}\n\n{texts.CONFIRM_ERASURE}",
            confirm=Command(name="forget", arguments=CONFIRMED + traces.token),
        )


def traces_text(traces: ErasureList, zone: tzinfo, *, is_limited: bool = False) -> str:
    parts = [texts.forgettable(traces.counts.items()) + " of your own words here" * is_limited] if traces.counts else []
    if traces.derived:
        parts.append(f"{texts.counted(traces.derived, 'thing')} that repeat{'s' * (traces.derived == 1)} it")
    lines = [f"I would forget {', with '.join(parts)}{':' if traces.shown else '.'}", ""]
    lines += [f"- {_line(trace, zone)}" for trace in traces.shown]
    more = sum(traces.counts.values()) - len(traces.shown)
    if more > 0:
        lines.append(f"- … and {more:,} more")
    if traces.derived:
        lines += ["", texts.DERIVED]
    if traces.has_more:
        lines += ["", texts.MORE_TO_FORGET]
    return "\n".join(lines)


def receipt_text(receipt: ErasureList) -> str:
    parts = [texts.forgettable(receipt.counts.items())] if receipt.counts else []
    if receipt.derived:
        parts.append(f"{texts.counted(receipt.derived, 'thing')} that repeated it")
    erased = texts.ERASED if receipt.is_clean else texts.NOT_YET_ERASED
    return " ".join([f"Forgotten: {', with '.join(parts)}.", erased, *receipt.pending, texts.LEFT_TO_YOU])


def _line(trace: ErasureItem, zone: tzinfo) -> str:
    text = escape(texts.shortened(trace.text, LINE_CHARS))
    if trace.kind != "message":
        return f"{texts.table('TRACE_KINDS')[trace.kind]}{text}"
    who = f"{escape(trace.who)}, " if trace.who else ""
    return f"{who}{texts.day(trace.at, zone)}: {text}"


class ExportCommands:
    specs = announced("export")

    def __init__(self, services: Services) -> None:
        self._services = services

    async def run(self, command: Command, context: CommandContext) -> Answer:
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
                yield _json_line({"kind": "note", "target": target, "text": note})
        for typed in await asyncio.to_thread(services.home_files.typed, scopes):
            yield _json_line({"kind": "typed in the terminal", "text": typed})
        for (kind, model), bill in (await services.usage_report.ever(scopes)).bills:
            cost = None if bill.cost is None else bill.prices.amount(bill.cost)
            spent = {"calls": bill.calls, "tokens": asdict(bill.usage), "cost": cost}
            yield _json_line({"kind": "spent on models", "for": kind, "model": model, **spent})
        async for row in services.personal_data.held(scopes, accounts):
            yield _json_line(row)


async def _parts(lines: AsyncIterator[str]) -> AsyncIterator[str]:
    """Whole lines in parts of PART_CHARS; at most one part more than can be sent."""
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


def _json_line(row: Mapping[str, object]) -> str:
    return json.dumps(row, ensure_ascii=False, default=str)


def _file(name: str, number: int, part: str) -> File:
    """A long part is compressed; a short one can be read as it is."""
    content = part.encode("utf-8", "replace")
    if len(content) < PART_CHARS // 4:
        return File(name=f"{name}-{number}.jsonl", content=content, mime="application/jsonl")
    return File(name=f"{name}-{number}.jsonl.gz", content=gzip.compress(content, mtime=0), mime="application/gzip")
