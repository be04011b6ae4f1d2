"""Where a curated note comes from."""

from __future__ import annotations

from dataclasses import dataclass

from core.records import NoteChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """`change`: the last one that made the `entry` what it is, None when it is gone. Of the message that it came from:
    the words, who said them, and where it can be opened; empty and None where there is no such message."""

    entry: str
    change: NoteChange | None = None
    said: str = ""
    sender: str = ""
    link: str | None = None
