"""Puts what a person said into the form in which it is sent: a time line with its origin, the text, the memory fence.

The sent form is stored before the first request and reused ever after; it is never shown, indexed or exported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

from core.dates.when import wall_time
from core.guard.fence import fence, neutralise
from core.guard.provenance import mark, told
from core.memory.manager import MemoryManager
from core.store.inbox import InboxEntry
from core.store.outbox import OutboxItem
from core.types import Account, Address, Attachment, ErasureEpoch, Json, Message, Scope, Sender, ToolContext

_TOKEN = re.compile(r"^- (\S+) ", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Waiting messages answered together, in order of arrival, and what may be seen: `scopes`, as of `epoch`.
    `is_owner`: of the last sender. `hint`: the platform's, for a new session's prompt; `is_fresh` asks for a new
    session."""

    address: Address
    scope: Scope
    scopes: frozenset[Scope]
    entries: tuple[InboxEntry, ...]
    outbox_item: OutboxItem
    is_owner: bool = False
    epoch: ErasureEpoch | None = None
    hint: str = ""
    is_fresh: bool = False

    @property
    def sender(self) -> Sender:
        return self.entries[-1].inbound.sender

    @property
    def text(self) -> str:
        return "\n".join(entry.inbound.text for entry in self.entries)


class UserMessages:
    """Makes the sent form of user rows, with at most `budget_chars` of memory a turn. `zone`: IANA name."""

    def __init__(self, memory: MemoryManager, zone: str, budget_chars: int) -> None:
        self._memory = memory
        self._zone_name = zone
        self._zone = ZoneInfo(zone)
        self._budget_chars = budget_chars

    async def seal(self, rows: Sequence[Message], earlier: Sequence[Message], context: ToolContext) -> list[Message]:
        """`rows`, answered together, as they are sent. A memory in one of the `earlier` rows is not repeated."""
        if not rows:
            return []
        await self._memory.on_turn_start(context)
        text = "\n".join(row.text for row in rows)
        lines = await self._memory.prefetch(text, context) if text.strip() else ()
        *others, last = self.dated(rows, context)
        if passages := self._chosen(lines, earlier):
            last = replace(last, sent=(*(last.sent or ()), _text(fence(passages))))
        return [*others, last]

    def dated(self, rows: Sequence[Message], context: ToolContext) -> list[Message]:
        """The same without memory."""
        return [
            replace(row, sent=(_text(self._time_line(row, context)), _text(neutralise(row.text) or "(no text)")))
            for row in rows
        ]

    def _chosen(self, lines: Sequence[str], earlier: Sequence[Message]) -> str:
        known = {token for row in earlier for block in (row.sent or ())[2:] for token in _TOKEN.findall(block["text"])}
        chosen: list[str] = []
        left = self._budget_chars
        for line in lines:
            line = "- " + neutralise(" ".join(line.split()))
            if line.split(" ", 2)[1] not in known and len(line) <= left:
                left -= len(line)
                chosen.append(line)
        return "\n".join(chosen)

    def _time_line(self, row: Message, context: ToolContext) -> str:
        parts = [f"{wall_time(row.created_at.astimezone(self._zone))} {self._zone_name}"]
        if context.scope.is_room and row.sender:
            account = Account(platform=context.session.address.platform, user_id=row.sender.id)
            parts.append(" ".join(("from", _one_line(row.sender.name), *((mark(account),) if row.sender.id else ()))))
        return f"[{', '.join([*parts, *filter(None, [told(row)])])}]"


def with_attachments(text: str, attachments: Sequence[Attachment]) -> str:
    """The text followed by one line for each attachment."""
    lines = []
    for item in attachments:
        size = f"{item.size_bytes:,} bytes" if item.size_bytes else ""
        details = ", ".join(filter(None, (item.mime, size)))
        lines.append(f"[attached {item.kind}: {_one_line(item.name)}{f' ({details})' if details else ''}]")
    return "\n".join([text, *lines] if text else lines)


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _one_line(text: str) -> str:
    return neutralise(" ".join(text.replace("[", "(").replace("]", ")").split()))[:80]
