"""One thing that is to be done with the curated notes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """`content`: the note of an add or a replace; `old_text`: a part of the one that is replaced or removed."""

    action: Literal["add", "replace", "remove"]
    content: str = ""
    old_text: str = ""
