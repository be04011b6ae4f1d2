"""What a memory is to erase: named by ids, because the words are gone."""

from __future__ import annotations

from dataclasses import dataclass

from core.types import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """`messages` are ids of rows as `sync_turn` gave them, all of one session of `scope`; `notes` are ids of changes as
    `on_memory_write` gave them. A copy that was made of several goes when one of them does."""

    scope: Scope
    messages: tuple[int, ...] = ()
    notes: tuple[int, ...] = ()
