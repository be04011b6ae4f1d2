"""A way in which people tell something of themselves, as a pattern, and what it says then. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from core.records import FactKind

Shape = Literal["place", "name", "title", "thing", "date", "number", "free"]
"""What the value must look like: a place or a name has a capital (unless nothing has); a thing is neither a pronoun nor
a whole story; a date is read; a number has digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """`pattern`, without regard to case, fits a whole clause without its full stop; its groups: ``value``, perhaps
    ``who`` and ``when``.

    `what` names the attribute; empty: it contradicts nothing. `is_many`: several are true side by side, and what
    contradicts is another `stance` to the same thing.
    """

    pattern: str
    what: str
    shape: Shape
    kind: FactKind = "identity"
    is_many: bool = False
    stance: str = ""
    may_deny: bool = False


@cache
def fitting(pattern: str) -> re.Pattern[str]:
    """The pattern of a telling, made when it is first needed: a command that learns nothing need not wait for all."""
    return re.compile(pattern, re.IGNORECASE)
