"""The currency of search: what to look for, who looks, and what was found.

Frozen values like those of `types.py`; times are aware UTC. Nothing here knows how anything is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from core.types import NOBODY, Account, Payer, Role, Scope, Session, Window

Shape = Literal["discovery", "scroll", "browse", "read"]
READ_FIRST, READ_LAST = 20, 10
"""So many of the first and last messages of a session are read; `Found.messages_after` counts what lies between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to look for and who looks. `scopes` empty finds nothing. `window` is messages on each side in a scroll.

    around: a message id (scroll, with `session`). messages: how many of the flat list of best messages to add.
    page: which part of the sessions, from 1. is_summarized, is_expanded: with help of a model (see `research.py`).
    hidden: the model's current window, left out of the results. asker: who looks, and is_own: what he said himself,
    which in his private scopes is everything that is not the assistant's. is_prose: `text` was said, not typed to
    search; what looks like a filter in it is words. payer: whose the calls are that such help costs.
    """

    scopes: frozenset[Scope]
    text: str = ""
    roles: tuple[Role, ...] = ("user", "assistant")
    platforms: tuple[str, ...] = ()
    title: str | None = None
    sender: str | None = None
    asker: Account | None = None
    is_own: bool = False
    before: datetime | None = None
    after: datetime | None = None
    session: int | None = None
    around: int | None = None
    window: int = 5
    limit: int = 3
    page: int = 1
    messages: int = 0
    budget_chars: int | None = None
    hidden: Window | None = None
    is_prose: bool = False
    is_summarized: bool = False
    is_expanded: bool = False
    payer: Payer = NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One matching message; `rank` is higher for better. In `snippet` the match stands between ``>>>`` and ``<<<``.
    `link` opens the message on its platform, where that has such links."""

    message_id: int
    session_id: int
    role: Role
    snippet: str
    rank: float
    created_at: datetime
    external_id: str | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One message as shown around a hit."""

    message_id: int
    role: Role
    sender: str | None
    at: datetime
    text: str
    is_anchor: bool = False
    link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One session of a result; which parts are filled depends on the shape (see `Findings`)."""

    session: Session
    score: float = 0.0
    summary: str | None = None
    preview: str | None = None
    matches: tuple[Hit, ...] = ()
    bookend_start: tuple[Item, ...] = ()
    window: tuple[Item, ...] = ()
    bookend_end: tuple[Item, ...] = ()
    messages_before: int = 0
    messages_after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The answer of recall. discovery: sessions with matches, window, bookends. scroll: one session with its window.
    browse: recent sessions with previews. has_more: the next page has something. `note` says in a sentence what was
    done when the query could not be taken as typed."""

    query: str
    shape: Shape
    sessions: tuple[Found, ...]
    messages: tuple[Hit, ...] = ()
    took_ms: float = 0.0
    note: str | None = None
    has_more: bool = False
