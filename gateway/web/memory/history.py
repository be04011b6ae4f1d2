"""Shows the changes of notes, skills and facts as a history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from core.notes.notebook import FILES
from core.store.facts.history import (
    LAST_ID,
    LoggedFactChange,
    list_latest_changes,
)
from core.store.notes import INSTRUCTIONS, NoteChange
from core.types import Message
from gateway.commands.facts import is_own_account
from gateway.web.rendering import ChangedWords, count_fitting, diff_change, diff_words, measure_html
from gateway.web.views import (
    PageRequest,
    Values,
)

# The same for the entries of a history, and for each run of words that changed or stayed.
MAX_ENTRIES_BYTES = 90_000
ENTRY_FRAME_BYTES = 1_300
RUN_FRAME_BYTES = 11
MAX_SOURCE_CHARS = 300
CHANGES_PER_PAGE = 30
# The number of changes before and after a change of a note that are searched for its history.
MAX_CHANGES_TRACED = 200
# The notes that each file contains now.
CurrentNotes = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """A change of a note, a skill or a fact, for the history."""

    # "note", "instructions", "skill" or "fact".
    kind: str
    # The number of the change or of the fact, for commands.
    number: int
    at: datetime
    # What was done, in a word such as "corrected".
    done: str
    words: Sequence[ChangedWords]
    can_undo: bool = True
    # The number of changes of a fact. The change can be undone only as long as there are no more.
    fact_changes: int = 0
    # The name of a skill.
    title: str = ""
    # The file of a note.
    target: str = ""
    # The account that made the change, and the message with which it was made.
    account: str = ""
    message_id: int | None = None
    sender: str = ""
    source_text: str = ""

    @property
    def size_bytes(self) -> int:
        """Return the approximate size of the entry's HTML in bytes."""
        words = sum(RUN_FRAME_BYTES + measure_html(run.text) for run in self.words)
        return ENTRY_FRAME_BYTES + words + measure_html(self.source_text[:MAX_SOURCE_CHARS])

    @property
    def anchor(self) -> str:
        return f"{self.kind[0]}{self.number}" if self.kind == "fact" else f"c{self.number}"


@dataclass(frozen=True, slots=True)
class HistoryBounds:
    """The position at which the next page of the history begins.

    The changes of that page have smaller ids than these.
    """

    notes: int
    facts: int


FIRST_BOUNDS = HistoryBounds(LAST_ID, LAST_ID)


async def load_history(request: PageRequest) -> Values:
    """Return one page of the changes of notes, skills and facts, latest first."""
    bounds = HistoryBounds(request.number("notes", LAST_ID), request.number("facts", LAST_ID))
    changes = await _list_changes(request, CHANGES_PER_PAGE + 1, bounds)
    entries = fit_entries(await describe_changes(request, changes[:CHANGES_PER_PAGE]))
    page = changes[: len(entries)]
    return {
        "entries": entries,
        "older": _find_bounds(page, bounds) if len(changes) > len(page) else None,
        "is_first": bounds == FIRST_BOUNDS,
    }


async def load_latest_entries(request: PageRequest, limit: int) -> Sequence[HistoryEntry]:
    """Return the latest entries of the history."""
    changes = await _list_changes(request, limit, FIRST_BOUNDS)
    return fit_entries(await describe_changes(request, changes[:limit]))


def fit_entries(entries: Sequence[HistoryEntry]) -> Sequence[HistoryEntry]:
    """Return the first entries of a history, as many as are small enough for one page."""
    return entries[: count_fitting((entry.size_bytes for entry in entries), MAX_ENTRIES_BYTES)]


async def _list_changes(
    request: PageRequest, limit: int, bounds: HistoryBounds
) -> list[NoteChange | LoggedFactChange]:
    """Return up to `limit` changes of notes, and as many of facts, latest first."""
    notes = await request.services.notebook.history(request.scopes, limit, before=bounds.notes)
    facts = await list_latest_changes(
        request.services.database, request.scopes, limit, bounds.facts
    )
    changes: list[NoteChange | LoggedFactChange] = [*notes, *facts]
    changes.sort(key=lambda change: change.at, reverse=True)
    return changes


async def describe_changes(
    request: PageRequest, changes: Sequence[NoteChange | LoggedFactChange]
) -> list[HistoryEntry]:
    """Return changes as entries of the history."""
    notes_now = await load_current_notes(request)
    sources = await _load_fact_sources(request, changes)
    return [make_entry(request, change, notes_now, sources) for change in changes]


async def load_current_notes(request: PageRequest) -> CurrentNotes:
    """Return the current notes of each file."""
    notebook = request.services.notebook
    return {target: frozenset(await notebook.entries(request.scopes, target)) for target in FILES}


def can_undo_note(change: NoteChange, current: CurrentNotes) -> bool:
    """Return whether a change can be undone: the note that it wrote isn't replaced or removed."""
    if change.skill is not None or change.after is None or change.target not in current:
        return True
    return change.after in current[change.target]


async def _load_fact_sources(
    request: PageRequest, changes: Sequence[NoteChange | LoggedFactChange]
) -> Mapping[int | None, Message]:
    """Return the messages from which facts were learned or changed, by their ids."""
    ids = {change.message_id for change in changes if isinstance(change, LoggedFactChange)}
    numbers = [number for number in ids if number is not None]
    messages = await request.services.conversations.load_messages(numbers, request.scopes)
    return {message.id: message for message in messages}


def _find_bounds(
    page: Sequence[NoteChange | LoggedFactChange], bounds: HistoryBounds
) -> HistoryBounds:
    """Return the oldest numbers on a page of changes, from which the next page continues."""
    notes = [change.id for change in page if isinstance(change, NoteChange)]
    facts = [change.id for change in page if isinstance(change, LoggedFactChange)]
    return HistoryBounds(min(notes, default=bounds.notes), min(facts, default=bounds.facts))


def _describe_action(request: PageRequest, change: LoggedFactChange) -> str:
    """Return what was done to a fact, and why if that is stored: "closed (a newer fact)"."""
    texts = request.texts
    action_name = texts.table("FACT_DONE").get(change.action, change.action)
    return f"{action_name} ({texts.word_stored(change.reason)})" if change.reason else action_name


def _describe_fact_change(
    request: PageRequest, change: LoggedFactChange, account: str, source: Message | None
) -> HistoryEntry:
    """Return a change of a fact as an entry of the history, with the message that caused it."""
    entry = HistoryEntry(
        kind="fact",
        number=change.fact_id,
        at=change.at,
        done=_describe_action(request, change),
        words=diff_words(change.before or "", change.after),
        can_undo=change.is_last,
        fact_changes=change.total,
        account=account,
    )
    if source is None:
        return entry
    is_own = account == request.words["YOU"]
    return replace(
        entry,
        message_id=source.id,
        sender=account if is_own else source.sender_name,
        source_text=source.text,
    )


def make_entry(
    request: PageRequest,
    change: NoteChange | LoggedFactChange,
    notes_now: CurrentNotes,
    sources: Mapping[int | None, Message],
) -> HistoryEntry:
    """Return a change as an entry of the history."""
    account = change.account.key if change.account else ""
    is_own = change.account is not None and is_own_account(request.context, change.account)
    if is_own:
        account = request.words["YOU"]
    if isinstance(change, LoggedFactChange):
        return _describe_fact_change(request, change, account, sources.get(change.message_id))
    return HistoryEntry(
        kind=_name_kind(change),
        number=change.id,
        at=change.at,
        done=request.texts.table("NOTE_DONE").get(change.action, change.action),
        words=diff_change(change),
        can_undo=can_undo_note(change, notes_now),
        title="/".join(change.skill or ()),
        target=change.target if change.skill is None else "",
        account=account,
        message_id=change.message_id,
        sender=request.words["YOU"] if is_own and change.sender else change.sender,
        source_text=change.source_text,
    )


def _name_kind(change: NoteChange) -> str:
    """Return whether a change is one of a skill, of instructions or of a note."""
    if change.skill is not None:
        return "skill"
    return "instructions" if change.target == INSTRUCTIONS else "note"


def trace_changes(changes: Sequence[NoteChange], start: NoteChange) -> list[NoteChange]:
    """Return the changes of the note that `start` changed, latest first.

    `changes` are the changes of all notes, latest first. A note is identified by its words: a
    change belongs to it if it changes the words that the note has at that time.
    """
    place = changes.index(start)
    traced = [start]
    words = start.after
    for change in reversed(changes[:place]):
        if change.target == start.target and _is_same_note(change, words, change.before):
            traced.insert(0, change)
            words = change.after
    words = start.before
    for change in changes[place + 1 :]:
        if change.target == start.target and _is_same_note(change, words, change.after):
            traced.append(change)
            words = change.before
    return traced


def _is_same_note(change: NoteChange, words: str | None, current_words: str | None) -> bool:
    """Whether a change is about the note with these words. A file of a skill is one note."""
    return change.skill is not None or (words is not None and current_words == words)
