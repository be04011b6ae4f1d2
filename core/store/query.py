"""Define the types of a search: the query, its filters, the plan for the indexes, the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

from core.errors import Sentence
from core.types import UNBILLED, Account, BillingScope, Origin, Role, Scope, Session, Window

DEFAULT_ROLES: tuple[Role, ...] = ("user", "assistant")
MAX_FIRST_MESSAGES = 20
"""A result of shape "read" starts with at most this many of the session's first messages."""
MAX_LAST_MESSAGES = 10
"""A result of shape "read" ends with at most this many of the session's last messages."""
DAY_TERM_COUNT = 2
"""Each day of a chunk adds its terms to the chunk this many times."""

Shape = Literal["discovery", "scroll", "browse", "read"]


class Phrase(NamedTuple):
    """A word or several adjacent words, in one or more spellings."""

    # A message contains the phrase if it contains any of these texts.
    texts: tuple[str, ...]
    # The last word may continue: ``ferr*`` matches "ferry".
    is_prefix: bool = False


class Clause(NamedTuple):
    """A condition on a message: it contains all of these phrases.

    A message meets an excluded clause if at least one of the phrases is missing.
    """

    phrases: tuple[Phrase, ...]
    # Folded terms to highlight in a text. ``ferr*`` is a prefix. The words of a phrase are
    # separated by spaces.
    highlights: tuple[str, ...] = ()
    is_excluded: bool = False


class SearchPlan(NamedTuple):
    """A parsed query that the text indexes execute.

    A message matches if it meets all clauses of at least one alternative. Without alternatives, no
    message matches.
    """

    alternatives: tuple[tuple[Clause, ...], ...] = ()
    # The highlights of all clauses that aren't excluded.
    highlights: tuple[str, ...] = ()


class TextKind(Enum):
    """How to interpret the text of a query."""

    # A person typed the text into a search. It may contain filters such as ``before:may``.
    TYPED = "typed"
    # The text contains only words. Anything that looks like a filter is a word.
    PLAIN = "plain"
    # The text is a message to the model and contains only words. The search returns the best
    # messages of a few sessions.
    TURN = "turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilters:
    """Conditions that every result must meet."""

    roles: tuple[Role, ...] = DEFAULT_ROLES
    # Only these platforms. An empty tuple allows all.
    platforms: tuple[str, ...] = ()
    # A part of the session's title.
    title: str | None = None
    # A sender's platform id, or the beginning of a word in their name.
    sender: str | None = None
    # Only messages that the asker sent. In private scopes, these are all messages except the
    # assistant's.
    is_askers_own: bool = False
    # Only messages that were sent before this time.
    before: datetime | None = None
    # Only messages that were sent at this time or later.
    after: datetime | None = None
    # Only messages in the lineage of this session.
    session_id: int | None = None
    # Messages of delegated sessions are searched, too.
    has_delegated: bool = False
    # Only messages with a file of this kind, a key of `FILE_KINDS`.
    file_kind: str | None = None
    # Only messages with a file whose name contains this text.
    file_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultLimits:
    """The maximum numbers of sessions and messages in the results, and the amount of text."""

    # Number of sessions on one page.
    sessions: int = 3
    # Number of the page, starting at 1.
    page: int = 1
    # Length of the flat list of best messages that is returned in addition to the sessions.
    messages: int = 0
    # Number of messages on each side of the best match.
    window: int = 5
    # Long messages are shortened until all texts together have about this many characters.
    budget_chars: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelHelp:
    """The steps of a search in which a language model helps."""

    # The model adds search texts to the question.
    is_expanded: bool = False
    # The model orders the best messages.
    is_reranked: bool = False
    # The model summarizes the sessions.
    is_summarized: bool = False
    # The person and scope that the model calls are charged to.
    billing: BillingScope = UNBILLED

    @property
    def is_needed(self) -> bool:
        return self.is_expanded or self.is_reranked or self.is_summarized


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A search: its text, filters and limits, and the account that asks."""

    # Only messages of these scopes can be found. An empty set finds nothing.
    scopes: frozenset[Scope]
    text: str = ""
    kind: TextKind = TextKind.TYPED
    asker: Account | None = None
    # The time zone of "yesterday" and of dates without a time. None is the zone of the settings.
    zone: ZoneInfo | None = None
    filters: SearchFilters = SearchFilters()
    limits: ResultLimits = ResultLimits()
    help: ModelHelp = ModelHelp()
    # The id of a message to show with its neighbours. Nothing is searched (shape "scroll").
    around: int | None = None
    # Messages that are in the model's context. They are left out of the results.
    hidden: Window = ()
    # Whether the text must not be sent to any service.
    is_incognito: bool = False
    # The asker's day, until `periods` are filled in. If it's None, the text isn't read for periods.
    today: date | None = None
    # First and last day (ordinals) of each period that the text names. Messages from these days
    # rank higher.
    periods: tuple[tuple[int, int], ...] = ()


# The platforms' kinds of files for each value of the filter `has:`.
FILE_KINDS: Mapping[str, tuple[str, ...]] = {
    "photo": ("photo", "image"),
    "voice": ("voice", "audio"),
    "file": ("document", "file"),
    "video": ("video", "video note", "animation"),
}


class NoteHit(NamedTuple):
    """A note that a search found."""

    text: str
    # The name of its file: "MEMORY.md".
    file: str


class FileHit(NamedTuple):
    """A file of a message that a search found."""

    file_id: int
    name: str
    # The platform's word for the kind: "photo", "voice", "document".
    kind: str
    # The place of the words in the file: "page 7", "0:42". Empty if only the name matches.
    place: str
    # The text around the words.
    snippet: str
    at: datetime
    message_id: int | None = None


class Hit(NamedTuple):
    """A message that matches a search, in the form that the results show."""

    session_id: int
    message_id: int
    role: Role
    at: datetime
    # The text around the match. The match itself is enclosed in ``>>>`` and ``<<<``.
    snippet: str
    # Higher is better.
    score: float
    external_id: str | None = None
    link: str | None = None
    # A short description of the message that this one answers or forwards.
    quoted: str | None = None
    # The sender's name.
    sender: str | None = None
    origin: Origin = "typed"


class ShownMessage(NamedTuple):
    """A message of a found session that is shown together with the match."""

    message_id: int
    role: Role
    # The sender's name.
    sender: str | None
    at: datetime
    text: str
    is_anchor: bool = False
    link: str | None = None
    sender_id: str | None = None
    origin: Origin = "typed"
    # See `Hit.quoted`.
    quoted: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSession:
    """A session in the results. The shape of the results decides which fields are set."""

    session: Session
    score: float = 0.0
    summary: str | None = None
    # The beginning of the session's first message.
    preview: str | None = None
    matches: tuple[Hit, ...] = ()
    # The first messages of the lineage.
    bookend_start: tuple[ShownMessage, ...] = ()
    # The anchor with its neighbours.
    window: tuple[ShownMessage, ...] = ()
    # The last messages of the lineage.
    bookend_end: tuple[ShownMessage, ...] = ()
    # The numbers of messages before and after the window that aren't shown. In the shape "read",
    # `messages_after` is the number of messages between the first and the last ones.
    messages_before: int = 0
    messages_after: int = 0

    @property
    def root_id(self) -> int:
        """The id of the first session of the lineage."""
        return self.session.root_id or self.session.id


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResults:
    """The results of a search.

    The fields of the sessions depend on the shape:

    - discovery: the matches, a window around the best one, and both ends of the session
    - scroll: a window around the requested message
    - read: the first and last messages
    - browse: a preview of a recent session
    """

    query: str
    shape: Shape
    sessions: tuple[FoundSession, ...]
    # The flat list of best messages.
    messages: tuple[Hit, ...] = ()
    took_ms: float = 0.0
    # Sentences that explain how the query was changed, or why nothing was found.
    notes: tuple[Sentence, ...] = ()
    # Whether there is a next page.
    has_more: bool = False
    # The files whose text or name matches.
    files: tuple[FileHit, ...] = ()
    # The person's notes that match. Only commands search them (`core/search/note_search.py`).
    note_hits: tuple[NoteHit, ...] = ()

    @property
    def note(self) -> str | None:
        """The sentences of `notes` in English, or None if there are none."""
        return " ".join(map(str, self.notes)) or None


class MessageMatch(NamedTuple):
    """The id, session and score of a matching message."""

    message_id: int
    session_id: int
    # The lineage of the session.
    root_id: int
    # Higher is better.
    score: float


class CandidateMessage(NamedTuple):
    """A message that may be a result, with all values that the ranking needs."""

    message_id: int
    session_id: int
    # Number of the message's chunk within the session. A chunk is a run of consecutive messages.
    chunk: int
    # Terms of the text, of the sender's name and of the day it was sent.
    terms: tuple[str, ...]
    name_terms: tuple[str, ...]
    day_terms: tuple[str, ...]
    # Whether the text is a question.
    is_question: bool
    # Whether the message may be a result. Other messages only contribute terms to their chunk.
    is_candidate: bool
    # Ordinal of the day (UTC).
    day_number: int = 0
    # Whether the asker sent the message and the query is about the asker.
    is_askers_own: bool = False
