"""Sends a person all data that is stored about them: /export. It works only in direct chats."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict

from core.errors import Refused
from core.notes.notebook import ALL_FILES
from core.transfer.formats import format_line
from core.types import Account, Answer, BillingScope, Command, File, Scope
from gateway.commands.registry import CommandContext, load_specs
from gateway.services import Services
from gateway.texts.catalog import Texts

# A file of at least this size is compressed.
MIN_COMPRESSED_BYTES = 2_000_000
# A larger file is refused. Below this size, the compressed file can be sent on every platform.
MAX_EXPORT_BYTES = 24_000_000
# The maximum time for which building a file may block the event loop at once.
MAX_BURST_S = 0.01


class ExportCommands:
    specs = load_specs("export")

    def __init__(self, services: Services) -> None:
        self._services = services

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Build the files: the messages, the person's other data, and a calendar of the reminders.

        Raises Refused outside of a direct chat or if a file is too long, and LimitReached if the
        person has used up today's limit for files.
        """
        texts = context.texts
        if context.scope.is_group or not context.inbound.is_direct:
            raise Refused(texts.EXPORT_DIRECT_ONLY)
        services = self._services
        now = services.clock.now()
        billing = BillingScope(scope=context.scope, user_id=context.account.user_id)
        await services.usage_log.check_limits(billing, now, "files")

        day = f"{now:%Y-%m-%d}"
        unreadable: list[None] = []
        messages = services.archive.export(context.scopes, lambda: unreadable.append(None))
        is_owners = context.is_owner
        message_lines = (format_line(message, is_owners=is_owners) async for message in messages)
        rows = self._load_personal_data(context.account, context.scopes)
        row_lines = (json.dumps(row, ensure_ascii=False, default=str) async for row in rows)
        files = [
            await _build_file(texts, f"said-{day}", message_lines),
            await _build_file(texts, f"held-{day}", row_lines),
        ]
        calendar = await self._build_calendar(context.scopes)
        if calendar is not None:
            files.append(calendar)
        text = texts.EXPORTED
        if unreadable:
            count = texts.format_count(len(unreadable), "message")
            text = f"{text}\n\n{texts.EXPORT_INCOMPLETE.format(messages=count)}"
        return Answer(text=text, files=tuple(file for file in files if file.content))

    async def _build_calendar(self, scopes: frozenset[Scope]) -> File | None:
        """Build a calendar file of the person's reminders. Returns None if there are none."""
        # Imported here because the calendar library takes a while to load.
        from core.dates.calendar_file import write_calendar
        from core.scheduling.rules import list_calendar_entries

        jobs = await self._services.jobs.list_visible(scopes)
        entries = list_calendar_entries(jobs, self._services.clock.now())
        if not entries:
            return None
        content = await asyncio.to_thread(write_calendar, entries)
        return File(name="reminders.ics", content=content, mime="text/calendar")

    async def _load_personal_data(
        self, account: Account, scopes: frozenset[Scope]
    ) -> AsyncIterator[Mapping[str, object]]:
        """Yield everything that is stored about a person, except for messages.

        The items are notes, skills, lines typed in the terminal, model usage and database rows. The
        field "kind" of an item tells them apart.
        """
        services = self._services
        for target in ALL_FILES:
            for note in await services.notebook.entries(scopes, target):
                yield {"kind": "note", "target": target, "text": note}
        for name, path, text in await services.skills.read_all_texts(scopes):
            yield {"kind": "skill", "name": name, "path": path, "text": text}
        for entry in await asyncio.to_thread(services.home_files.list_typed_entries, scopes):
            yield {"kind": "typed in the terminal", "text": entry}

        spending = await services.usage_log.load_spending(scopes)
        for (kind, model), part in spending.by_kind_and_model:
            yield {
                "kind": "spent on models",
                "for": kind,
                "model": model,
                "calls": part.calls,
                "tokens": asdict(part.usage),
                "cost": None if part.cost is None else part.format_amount(part.cost),
            }

        linked_accounts = await services.links.list_accounts(account)
        accounts = [entry.account for entry in linked_accounts] or [account]
        async for row in services.archive.export_personal_data(scopes, accounts):
            yield row


async def _build_file(texts: Texts, name: str, lines: AsyncIterator[str]) -> File:
    """Build a file of JSON lines, compressed with gzip if it's long.

    Raises Refused if the file is too large to be sent.
    """
    encoded_lines = []
    size = 0
    paused_at_s = time.monotonic()
    async for line in lines:
        if time.monotonic() - paused_at_s > MAX_BURST_S:
            await asyncio.sleep(0)
            paused_at_s = time.monotonic()
        content = f"{line}\n".encode("utf-8", "replace")
        encoded_lines.append(content)
        size += len(content)
        if size > MAX_EXPORT_BYTES:
            raise Refused(texts.EXPORT_TOO_LONG)
    content = b"".join(encoded_lines)
    if size < MIN_COMPRESSED_BYTES:
        return File(name=f"{name}.jsonl", content=content, mime="application/jsonl")
    gzip_content = await asyncio.to_thread(gzip.compress, content, mtime=0)
    return File(name=f"{name}.jsonl.gz", content=gzip_content, mime="application/gzip")
