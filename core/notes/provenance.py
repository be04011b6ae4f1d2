"""Where a curated note comes from."""

from __future__ import annotations

from dataclasses import dataclass

from core.records import NoteChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """`change`: one of the `entry`, None when none is known. Of the message or the command that it came from: the
    words, whose they are, and where it can be opened; empty and None where nothing is known of it any more."""

    entry: str
    change: NoteChange | None = None
    said: str = ""
    sender: str = ""
    link: str | None = None
