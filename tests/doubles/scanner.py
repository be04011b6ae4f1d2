"""The slow reference of recall: what was said as plain Python values, and every query answered by looking at all of it.

Knows what recall promises, not how it keeps it: no index, no SQL, nothing of the store. It is told what the store was
told, and its answers are what the store's have to be. How words are read stands in `wording.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from core.search import Query
from core.types import Address, MessageKind, Role, Scope, Sender
from tests.doubles.wording import Term, answers, bare, begins_unspaced, day, holds, is_inside, is_related, is_within

ENDLESS = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One message."""

    id: int
    session_id: int
    role: Role
    text: str
    at: datetime
    kind: MessageKind = "chat"
    tools: str | None = None
    sender: Sender | None = None

    @property
    def is_shown(self) -> bool:
        """Whether people may see it when they look at its session."""
        return self.kind == "chat" and self.role in ("user", "assistant") and self.text != ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One session; `root_id` names its lineage."""

    id: int
    root_id: int
    address: Address
    scope: Scope
    title: str | None
    started_at: datetime


@dataclass(frozen=True, slots=True)
class View:
    """What is shown of a session: ids of messages, in order."""

    window: tuple[int, ...]
    before: int
    after: int
    bookend_start: tuple[int, ...] = ()
    bookend_end: tuple[int, ...] = ()


class Scanner:
    """Everything that was said."""

    def __init__(self) -> None:
        self.places: dict[int, Place] = {}
        self.told: dict[int, Told] = {}

    def root(self, message_id: int) -> int:
        """The lineage of a message."""
        return self.places[self.told[message_id].session_id].root_id

    def edit(self, message_id: int, text: str | None) -> None:
        """The message has other words now, or (None) is for nobody's eyes."""
        one = self.told[message_id]
        if one.kind in ("chat", "quote") and text != one.text:
            self._untitle(one)
        if text is None:
            self.told[message_id] = replace(one, kind="command", text="", tools=None, sender=None)
        elif one.kind in ("chat", "quote"):
            self.told[message_id] = replace(one, text=text)

    def _untitle(self, one: Told) -> None:
        """A title is made of what was said first: it goes from all parts of the conversation along with that."""
        first = self.places[one.session_id]
        is_first = not any(
            other.session_id == first.id and other.id < one.id and (other.role, other.kind) == ("user", "chat")
            for other in self.told.values()
        )
        if is_first and first.root_id == first.id:
            for place in self.places.values():
                if place.root_id == first.id and place.title == first.title:
                    self.places[place.id] = replace(place, title=None)

    def wanted(self, query: Query) -> list[Told]:
        """What the scopes, the filters and the window let through, oldest first."""
        return [one for one in self._ordered() if one.kind == "chat" and self._is_wanted(one, query)]

    def typed(self, alternatives: Sequence[Sequence[Term]], query: Query) -> set[int]:
        """The messages for which all terms of one alternative hold."""
        return {
            one.id
            for one in self.wanted(query)
            if any(all(holds(term, one.text, one.tools) for term in terms) for terms in alternatives)
        }

    def loose(self, text: str, query: Query) -> set[int]:
        """The messages with any of the words as they stand."""
        return {one.id for one in self.wanted(query) if is_within(text, one.text, one.tools)}

    def inside(self, text: str, query: Query) -> set[int]:
        """The messages with any of the words, also inside of others: what a plain scan finds."""
        return {one.id for one in self.wanted(query) if is_inside(text, one.text, one.tools)}

    def answering(self, text: str, query: Query) -> tuple[set[int], set[int]]:
        """For a question: the messages that answer it by their text, their speaker's name or their day, all of which
        have to be found; and those that have such a one, or one that is related, among their two neighbours, which may
        be."""
        wanted = {one.id for one in self.wanted(query)}
        must: set[int] = set()
        may: set[int] = set()
        for place in self.places.values():
            shown = self._shown(place.id) if self._is_visible(place, query) else []
            for index, one in enumerate(shown):
                said = (one.text, one.sender.name if one.sender else "", day(one.at))
                if any(answers(text, part) for part in said):
                    must.add(one.id)
                if any(is_related(text, part) for part in said):
                    may.update(near.id for near in shown[max(0, index - 2) : index + 3])
        return must & wanted, may & wanted

    def latest(self, query: Query) -> list[int]:
        """Without words: of the session spoken in last first, the newest first."""
        found = [one for one in self.wanted(query) if one.text]
        found.sort(key=lambda one: (self.last_at(one.session_id), one.id), reverse=True)
        return [one.id for one in found]

    def browsed(self, query: Query) -> list[int]:
        """Sessions with something to show, the one spoken in last first, the last one of each lineage."""
        open_ones = [place for place in self.places.values() if self._is_listed(place, query)]
        open_ones.sort(key=lambda place: (self.last_at(place.id), place.id), reverse=True)
        first: dict[int, int] = {}
        for place in open_ones:
            first.setdefault(place.root_id, place.id)
        return list(first.values())

    def preview(self, session_id: int) -> str | None:
        """How a session begins."""
        shown = self._shown(session_id)
        return " ".join(shown[0].text[:160].split()) if shown else None

    def reading(self, query: Query) -> View | None:
        """A session to read; None where it may not be seen."""
        place = self._named(query)
        if place is None:
            return None
        shown = [one.id for one in self._open(place.id, query)]
        window = (*shown[:20], *shown[max(20, len(shown) - 10) :])
        return View(window, 0, len(shown) - len(window))

    def scrolled(self, query: Query) -> tuple[int, View] | None:
        """The session of `query.around` and what is around it; None where there is nothing to see."""
        anchor = self.told.get(query.around or 0)
        if anchor is None or anchor.kind != "chat" or not self._is_visible(self.places[anchor.session_id], query):
            return None
        if query.session is not None:
            named = self._named(query)
            if named is None or named.root_id != self.root(anchor.id):
                return None
        return anchor.session_id, self.around(anchor.id, query, bookend=0)

    def around(self, message_id: int, query: Query, bookend: int = 3) -> View:
        """A message, which is shown in any case, and what may be shown around it."""
        session_id = self.told[message_id].session_id
        shown = [one.id for one in self._open(session_id, query)]
        before = [one for one in shown if one < message_id]
        after = [one for one in shown if one > message_id]
        size = max(0, min(query.window, 100))
        window = (*before[max(0, len(before) - size) :], message_id, *after[:size])
        return View(
            window=window,
            before=max(0, len(before) - size),
            after=max(0, len(after) - size),
            bookend_start=tuple(shown[:bookend]),
            bookend_end=tuple(shown[max(0, len(shown) - bookend) :]) if bookend else (),
        )

    def last_at(self, session_id: int) -> datetime:
        """When a session was spoken in last, by whatever was kept of it."""
        times = [one.at for one in self.told.values() if one.session_id == session_id]
        return max([self.places[session_id].started_at, *times])

    def _ordered(self) -> list[Told]:
        return sorted(self.told.values(), key=lambda one: one.id)

    def _shown(self, session_id: int) -> list[Told]:
        return [one for one in self._ordered() if one.session_id == session_id and one.is_shown]

    def _open(self, session_id: int, query: Query) -> list[Told]:
        return [one for one in self._shown(session_id) if not _is_hidden(one, query)]

    def _is_visible(self, place: Place, query: Query) -> bool:
        return place.scope in query.scopes

    def _named(self, query: Query) -> Place | None:
        place = self.places.get(query.session or 0)
        return place if place is not None and self._is_visible(place, query) else None

    def _is_listed(self, place: Place, query: Query) -> bool:
        return (
            self._is_visible(place, query)
            and (not query.platforms or place.address.platform in query.platforms)
            and (not query.title or bare(query.title) in bare(place.title or ""))
            and any(_is_of_the_time(one, query) for one in self._open(place.id, query))
        )

    def _is_wanted(self, one: Told, query: Query) -> bool:
        place = self.places[one.session_id]
        return (
            self._is_visible(place, query)
            and one.role in query.roles
            and (not query.platforms or place.address.platform in query.platforms)
            and (not query.title or bare(query.title) in bare(place.title or ""))
            and (not query.sender or _is_said_by(one, query.sender))
            and (not query.is_own or self._is_own(one, query))
            and (query.session is None or place.root_id in self._lineages(query))
            and _is_of_the_time(one, query)
            and not _is_hidden(one, query)
        )

    def _lineages(self, query: Query) -> Iterator[int]:
        named = self._named(query)
        if named is not None:
            yield named.root_id

    def _is_own(self, one: Told, query: Query) -> bool:
        """Said by a person where only the asker speaks, or by one of his accounts."""
        place = self.places[one.session_id]
        private = {scope.key for scope in query.scopes if not scope.is_room}
        accounts = {key.removeprefix("account:") for key in private} | ({query.asker.key} if query.asker else set())
        account = f"{place.address.platform}:{one.sender.id}" if one.sender else None
        return one.role == "user" and (place.scope.key in private or account in accounts)


def _is_hidden(one: Told, query: Query) -> bool:
    spans = query.hidden.spans if query.hidden else ()
    return any(one.session_id == session_id and first <= one.id <= last for session_id, first, last in spans)


def _is_of_the_time(one: Told, query: Query) -> bool:
    return (query.after is None or one.at >= query.after) and (query.before is None or one.at < query.before)


def _is_said_by(one: Told, name: str) -> bool:
    """By the id, or by the name from the beginning of one of its words on; one without blanks, also inside."""
    if one.sender is None:
        return False
    said, asked = bare(one.sender.name), bare(name).strip()
    return one.sender.id == name or (asked in said if begins_unspaced(asked) else f" {asked}" in f" {said}")
