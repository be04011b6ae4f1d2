"""One admitted event on its way through the house."""

from __future__ import annotations

from dataclasses import dataclass

from core.ports import Reply
from core.records import Entry
from core.types import Scope


@dataclass(slots=True, kw_only=True, eq=False)
class Ticket:
    """An entry with the way back beside it. Plain ones (no commands) may be taken together with their neighbours; an
    overheard one is kept without an answer. `is_stopped`: its turn was, and is not begun anew."""

    entry: Entry
    reply: Reply
    scope: Scope
    is_plain: bool
    is_overheard: bool = False
    is_taken: bool = False
    has_begun: bool = False
    is_stopped: bool = False
    is_answered: bool = False
