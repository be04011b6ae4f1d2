"""What search is about: what to look for and who looks, what it means to the text indexes, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from core.types import NOBODY, Account, Origin, Payer, Role, Scope, Session, Window

DEFAULT_ROLES: tuple[Role, ...] = ("user", "assistant")
READ_FIRST, READ_LAST = 20, 10
"""So many of the first and last messages of a session are read; `FoundSession.messages_after` counts what lies
between."""
DAY_IN_CHUNK = 2
"""How often the terms of its days count in a chunk."""

Shape = Literal["discovery", "scroll", "browse", "read"]


class Phrase(NamedTuple):
    """One or more words that stand together; any of `texts` will do. is_prefix: the last word may go on."""

    texts: tuple[str, ...]
    is_prefix: bool = False


class Clause(NamedTuple):
    """A message has all of the phrases or, if `is_excluded`, not all of them. marks: what to mark in a text, folded;
    ``ferr*`` is a prefix, a blank stands between the words of a phrase."""

    phrases: tuple[Phrase, ...]
    marks: tuple[str, ...] = ()
    is_excluded: bool = False


class SearchPlan(NamedTuple):
    """A message is found when all clauses of one alternative hold, and ranked by the phrases wanted that it has; none:
    there is nothing to search for. terms: what to mark in a text."""

    alternatives: tuple[tuple[Clause, ...], ...] = ()
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What to look for and who looks. `scopes` empty finds nothing. `window` is messages on each side in a scroll.

    around: a message id (scroll, with `session`). messages: how many of the flat list of best messages to add.
    page: which part of the sessions, from 1. is_summarized, is_expanded, is_reranked: with a model's help. hidden: its
    current window, left out of the results. asker: who looks, and is_own: what the asker said, which in private scopes
    is everything that is not the assistant's. is_prose: `text` was said, not typed to search; what looks like a filter
    in it is words. is_turn: somebody said it to the model, for which the best messages of few sessions are wanted.
    payer: whose the model calls are. has_delegated: also what was said in delegated sessions.
    is_incognito: the text goes to no service. periods: the first and last days (ordinals) of the times that the text
    names; what was said then counts for more.
    """

    scopes: frozenset[Scope]
    text: str = ""
    roles: tuple[Role, ...] = DEFAULT_ROLES
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
    hidden: Window = ()
    is_prose: bool = False
    is_turn: bool = False
    is_summarized: bool = False
    is_expanded: bool = False
    is_reranked: bool = False
    payer: Payer = NOBODY
    has_delegated: bool = False
    is_incognito: bool = False
    periods: tuple[tuple[int, int], ...] = ()


class Hit(NamedTuple):
    """One matching message; a higher `score` is better. In `snippet` the match stands between ``>>>`` and ``<<<``.
    `quoted`: what it answers, or whose words it passes on, shortly. `sender`: by which name."""

    session_id: int
    message_id: int
    role: Role
    at: datetime
    snippet: str
    score: float
    external_id: str | None = None
    link: str | None = None
    quoted: str | None = None
    sender: str | None = None


class ShownMessage(NamedTuple):
    """One message as shown around a hit. `quoted`: see `Hit`."""

    message_id: int
    role: Role
    sender: str | None
    at: datetime
    text: str
    is_anchor: bool = False
    link: str | None = None
    sender_id: str | None = None
    origin: Origin = "typed"
    quoted: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSession:
    """One session of a result; which parts are filled depends on the shape (see `SearchResults`)."""

    session: Session
    score: float = 0.0
    summary: str | None = None
    preview: str | None = None
    matches: tuple[Hit, ...] = ()
    bookend_start: tuple[ShownMessage, ...] = ()
    window: tuple[ShownMessage, ...] = ()
    bookend_end: tuple[ShownMessage, ...] = ()
    messages_before: int = 0
    messages_after: int = 0

    @property
    def root_id(self) -> int:
        """The lineage of the session."""
        return self.session.root_id or self.session.id


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResults:
    """The answer of recall. discovery: sessions with matches, window, bookends. scroll: one session with its window.
    read: one session with its first and last messages. browse: recent sessions with previews. has_more: the next page
    has something. `note` says in a sentence what was done when the query could not be taken as typed."""

    query: str
    shape: Shape
    sessions: tuple[FoundSession, ...]
    messages: tuple[Hit, ...] = ()
    took_ms: float = 0.0
    note: str | None = None
    has_more: bool = False


class MessageMatch(NamedTuple):
    """A message that was found. `root_id` names the lineage of its session; a higher `score` is better."""

    message_id: int
    session_id: int
    root_id: int
    score: float


class CandidateMessage(NamedTuple):
    """A message as ranking sees it. `terms` are those of its text. `chunk` numbers the stretch of consecutive messages
    that it belongs to. `is_wanted`: it may be an answer; others only lend their words to their neighbours.
    `day_number`: the ordinal of its day (UTC). `is_own`: who asks said it, and asks about themselves."""

    message_id: int
    session_id: int
    chunk: int
    terms: tuple[str, ...]
    name: tuple[str, ...]
    day: tuple[str, ...]
    is_question: bool
    is_wanted: bool
    day_number: int = 0
    is_own: bool = False
