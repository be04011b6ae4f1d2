"""How often the words of a question stand in what the asker may see: counted once, used by all who rank."""

from __future__ import annotations

from typing import NamedTuple


class Counted(NamedTuple):
    """The scopes of a query as numbers; for each term in how many of their chunks it stands; how many there are."""

    scopes: list[int]
    frequencies: dict[str, int]
    chunks: int
