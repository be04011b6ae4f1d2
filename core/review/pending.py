"""A change of the curated notes that was put aside."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.notes.operation import Operation
from core.types import Account, Address, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingNote:
    """`operations` are done together or not at all; `reason` is what they contain, as a noun phrase. `account`: on
    whose behalf it was asked for, with what message (see `core.records.NoteChange`). `is_written`: it stands in the
    file already, by somebody's hand; the operation is its `add`."""

    scope: Scope
    target: str
    operations: tuple[Operation, ...]
    reason: str
    at: datetime
    account: Account | None = None
    message_id: int | None = None
    address: Address | None = None
    external_id: str | None = None
    is_written: bool = False
    id: int = 0
