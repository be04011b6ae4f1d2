"""A change of the curated notes that was put aside."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.memory.operation import Operation
from core.types import Account, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingNote:
    """`operations` are done together or not at all; `reason` is what they contain, as a noun phrase. `account`: on
    whose behalf it was asked for, with the message `message_id`."""

    scope: Scope
    target: str
    operations: tuple[Operation, ...]
    reason: str
    at: datetime
    account: Account | None = None
    message_id: int | None = None
    id: int = 0
