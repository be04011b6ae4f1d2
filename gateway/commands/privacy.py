"""/forget erases, after a yes, something with all that was made of it; /export gives a person all that is held about
them, in a direct chat only."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict
from datetime import tzinfo

from core.errors import Refused
from core.markup.markdown import escape
from core.notes.notebook import FILES
from core.store.erasure import ErasureList
from core.text.normalize import shortened
from core.transfer.formats import to_line
from core.types import Answer, Command, File, Payer
from gateway import texts
from gateway.commands.registry import CommandContext, announced
from gateway.services import STATE, Services

CONFIRMED = "--confirmed "
"""Stands before the token in what a yes runs; the token is the person's secret."""
LINE_CHARS = 160
PLAIN_BYTES, EXPORT_BYTES = 2_000_000, 24_000_000
"""A longer file of an export is compressed; the longest is then below what every platform lets a bot send."""


class ForgetCommands:
    specs = announced("forget")

    def __init__(self, services: Services) -> None:
        self._forgetting = services.forgetting
        self._zone = services.zone

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
        if not traces.token:
            mine = " that you said here" if request.is_limited else ""
            nothing = f"I have nothing{mine} with all of these words, so there is nothing to forget."
            return Answer(text=" ".join([nothing, *_left(traces)]))
        confirm = Command(name="forget", arguments=CONFIRMED + traces.token)
        return Answer(text=f"{traces_text(traces, self._zone)}\n\n{texts.CONFIRM_ERASURE}", confirm=confirm)


def traces_text(traces: ErasureList, zone: tzinfo) -> str:
    whose = " of your own words here" if traces.request.is_limited else ""
    found = _things(traces, whose, "repeats" if traces.derived == 1 else "repeat")
    lines = [f"I would forget {found}{':' if traces.shown else '.'}", ""]
    for trace in traces.shown:
        head = texts.table("TRACE_KINDS").get(trace.kind, "")
        if trace.kind == "message":
            who = f"{escape(trace.who)}, " if trace.who else ""
            head = f"{who}{texts.day(trace.at, zone)}: "
        lines.append(f"- {head}{escape(shortened(trace.text, LINE_CHARS))}")
    more = sum(traces.counts.values()) - len(traces.shown)
    if more > 0:
        lines.append(f"- … and {more:,} more")
    if traces.derived:
        lines += ["", texts.DERIVED]
    return "\n".join(lines)


def receipt_text(receipt: ErasureList) -> str:
    said = [f"Forgotten: {_things(receipt, '', 'repeated')}.", *_left(receipt)]
    if not receipt.is_clean:
        said.append(texts.NOT_YET_ERASED)
    if receipt.asked:
        said.append(texts.ASKED.format(services=texts.listed(receipt.asked)))
    said += [f"`{name}` cannot be written, so some of it still stands there." for name in receipt.stuck]
    return " ".join([*said, texts.LEFT_TO_YOU if receipt.is_noted or receipt.is_done else texts.NOT_NOTED])


def _left(receipt: ErasureList) -> Iterator[str]:
    """What was found by looking for it once it was erased; of a list that was erased before, nothing is known."""
    if receipt.left is None:
        return
    left = [texts.counted(many, name) for name, many in receipt.left.items() if name != "name"]
    whose = "limited" if receipt.request.is_limited else "narrowed" if receipt.is_narrowed else "other"
    if left:
        yield texts.table("LEFT")[whose].format(things=texts.listed(left))
    elif receipt.token:
        yield texts.ERASED
    if "name" in receipt.left:
        yield texts.NAMES_STAY
    if receipt.files is not None:
        files = texts.listed([f"`{name}`" for name in receipt.files])
        yield texts.IN_HOME.format(files=files) if files else texts.NOT_IN_HOME
        if receipt.is_clean and STATE in receipt.files:
            yield texts.IN_STATE


def _things(found: ErasureList, whose: str, repeat: str) -> str:
    """``3 messages and 1 reminder, with 2 things that repeat it``."""
    names = {"job": "reminder", "room": "thing"}
    parts = [texts.counted(number, names.get(name, name)) for name, number in found.counts.items()]
    if "room" in found.counts:
        parts[-1] += " of yours in rooms"
    derived = f"{texts.counted(found.derived, 'thing')} that {repeat} it" if found.derived else ""
    return ", with ".join(filter(None, (texts.listed(parts) + whose if parts else "", derived)))


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
        for target in FILES:
            for note in await services.notebook.entries(scopes, target):
                yield {"kind": "note", "target": target, "text": note}
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
