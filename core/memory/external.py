"""The memories of the user's choice, with all that the house needs to live with them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from core.memory.provider import MemoryProvider
from core.memory.sync import Relay
from core.memory.sync_forget import Copies


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """`providers` with mode and rhythm set; `relay` puts into the outbox what they are to be told, `copies` what they
    are to forget; under `home` they keep what is theirs; `tell` is given a key, unique for ever, and a sentence for the
    owner."""

    providers: tuple[MemoryProvider, ...]
    relay: Relay
    copies: Copies
    home: Path
    tell: Callable[[str, str], Awaitable[None]]
