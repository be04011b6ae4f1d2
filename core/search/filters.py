"""The filters in what a person types: ``ferry role:assistant on:telegram before:last week`` as a query. Pure.

The language: ``role:`` ``platform:`` ``on:`` ``title:`` ``from:`` ``in:`` ``before:`` ``until:`` ``after:`` ``since:``
``during:``, each with a value, in quotes where it has blanks; a time may also have several words without. ``page:`` and
``around:`` (a message) say which part to show. What cannot be understood stays a word, and a note says so. Times that
a plain sentence mentions never filter: people misremember.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from core.dates import periods
from core.store.query import DEFAULT_ROLES, SearchQuery
from core.types import Role

_ROLES: Mapping[str, tuple[Role, ...]] = {
    "user": ("user",), "me": ("user",), "person": ("user",), "people": ("user",), "human": ("user",),
    "assistant": ("assistant",), "you": ("assistant",), "bot": ("assistant",), "mneme": ("assistant",),
    "model": ("assistant",), "tool": ("tool",), "tools": ("tool",), "all": ("user", "assistant", "tool"),
    "any": ("user", "assistant", "tool"),
}  # fmt: skip
_ME = frozenset({"me", "myself", "i", "user"})
_YOU = frozenset({"you", "yourself", "assistant", "bot", "mneme"})
_PLATFORMS = frozenset(
    ("telegram", "discord", "terminal", "cron", "import", "slack", "web", "chatgpt", "claude", "hermes")
)
"""What ``on:`` takes for a platform without doubt; ``platform:`` takes any name."""
_TIMES = frozenset({"before", "until", "after", "since", "during"})
_LIKE_ASCII = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2033": '"', "\uff1a": ":"})
"""Each for one character, so that places in the text stay."""
LOOK_CHARS = 10_000
VALUE_CHARS = 200
_SHOWN_CHARS = 40
_NAME = re.compile(r"[\w.-]{1,40}")
_NUMBER = re.compile(r"#?(\d{1,18})")
_PIECE = re.compile(
    r'"[^"]*"|(?<!\S)(?P<minus>-?)(?P<key>role|platform|on|title|from|in|before|until|after|since|during|page|around):'
    r'(?:"(?P<quoted>[^"]*)"|(?P<bare>[^\s"]*))',
    re.IGNORECASE,
)
_WORD = re.compile(r"\s{0,8}([^\s\"]{1,40})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """`query` with what its text asked for as fields and the words that are left as text; `notes` are sentences about
    what was not understood."""

    query: SearchQuery
    notes: tuple[str, ...] = ()


def read(query: SearchQuery, now: datetime, zone: ZoneInfo) -> Filters:
    """Takes the filters out of the query's text; dates are those of `zone`. A query of prose comes back as it is."""
    text = query.text[:LOOK_CHARS].translate(_LIKE_ASCII)
    if query.is_prose or ":" not in text:
        return Filters(query=query)
    reader = _Reader(query, now, zone)
    kept: list[str] = []
    position = 0
    while (found := _PIECE.search(text, position)) is not None:
        end = found.end()
        if found["key"] is not None and (taken := reader.take(found, text)) is not None:
            kept.append(query.text[position : found.start()])
            end = taken
        else:
            kept.append(query.text[position:end])
        position = end
    if position == 0:
        return Filters(query=query)
    kept.append(query.text[position:])
    words = "".join(kept)
    return Filters(query=replace(reader.query, text=words if words.strip() else ""), notes=tuple(reader.notes[:3]))


def limits(query: SearchQuery, zone: ZoneInfo) -> tuple[str, ...]:
    """What narrows a query, as words for people: ``on telegram``, ``said by Ana``, ``since 1 May 2026``."""
    told = []
    if query.platforms:
        told.append(f"on {' or '.join(_shown(name) for name in query.platforms)}")
    if query.title:
        told.append(f"in conversations with “{_shown(query.title)}” in their title")
    if query.session is not None:
        told.append(f"in session {str(query.session)[:20]}")
    if query.is_own:
        told.append("said by you")
    elif query.sender:
        told.append(f"said by {_shown(query.sender)}")
    if query.roles != DEFAULT_ROLES and not query.is_own:
        names = {"user": "people", "assistant": "the assistant", "tool": "tools"}
        told.append(f"said by {' or '.join(dict.fromkeys(names[role] for role in query.roles))}")
    if query.after is not None:
        told.append(f"since {_day(query.after, zone)}")
    if query.before is not None:
        told.append(f"before {_day(query.before, zone)}")
    if query.page > 1:
        told.append(f"on page {query.page}")
    return tuple(told)


def unlimited(query: SearchQuery) -> SearchQuery:
    """The same words without any filter, from the first page on."""
    return replace(
        query, roles=DEFAULT_ROLES, platforms=(), title=None, sender=None, is_own=False, before=None, after=None,
        session=None, page=1,
    )  # fmt: skip


def next_page(text: str) -> str:
    """The typed text for the page behind the one it asks for. The page stands in front, where no length of text hides
    it."""
    for found in _PIECE.finditer(text[:LOOK_CHARS].translate(_LIKE_ASCII)):
        if (found["key"] or "").lower() == "page" and not found["minus"] and (number := _number(_value(found))):
            rest = f"{text[: found.start()].rstrip()}{text[found.end() :]}".strip()
            return f"page:{number + 1} {rest}".rstrip()
    return f"page:2 {text.strip()}".rstrip()


def by(query: SearchQuery, name: str) -> SearchQuery:
    """The query for what `name` said: a person's name, "me" for whoever asks, "you" for the assistant."""
    word = name.strip().removeprefix("@").casefold()
    if word in _ME:
        return replace(query, roles=("user",), is_own=True, sender=None)
    if word in _YOU:
        return replace(query, roles=("assistant",), is_own=False, sender=None)
    return replace(query, sender=name.strip().removeprefix("@"), is_own=False)


def between(query: SearchQuery, after: datetime | None, before: datetime | None) -> SearchQuery:
    """The query for what was said in this time too, besides what it asks already."""
    latest = max((moment for moment in (query.after, after) if moment is not None), default=None)
    earliest = min((moment for moment in (query.before, before) if moment is not None), default=None)
    return replace(query, after=latest, before=earliest)


def timed(query: SearchQuery, key: str, value: str, now: datetime, zone: ZoneInfo) -> SearchQuery | None:
    """The query with a time as its filter; None where `value` names none. before: ends where the time begins; until:
    where it ends; after and since: begins with it; during, on and in: it."""
    found = periods.read(value, now, zone)
    if found is None:
        return None
    start, end = found
    if key == "before":
        return between(query, None, start)
    if key == "until":
        return between(query, None, end)
    return between(query, start, end if key in ("on", "in", "during") else None)


class _Reader:
    """Reads one filter after the other into `query`."""

    def __init__(self, query: SearchQuery, now: datetime, zone: ZoneInfo) -> None:
        self.query = query
        self.notes: list[str] = []
        self._now = now
        self._zone = zone
        self._seen: set[str] = set()

    def take(self, found: re.Match[str], text: str) -> int | None:
        """Where the filter ends in `text`; None (and a note) where it is words."""
        key = found["key"].lower()
        value = _value(found)
        typed = _shown(found[0])
        if found["minus"]:
            self.notes.append(f"Filters cannot be turned round with a minus; “{typed}” was taken as words.")
            return None
        if not value:
            if found["quoted"] is not None or found.end() == len(text) or text[found.end()].isspace():
                self.notes.append(f"There is nothing behind “{typed}”, so it was taken as a word.")
            return None
        if key in _TIMES or key == "on" or (key == "in" and not _NUMBER.fullmatch(value)):
            end = self._time(key, value, found, text)
            if end is not None:
                return end
        readers: Mapping[str, Callable[[str], str | None]] = {
            "role": self._role, "platform": self._platform, "on": self._on, "title": self._title, "from": self._from,
            "in": self._in, "page": self._page, "around": self._around,
        }  # fmt: skip
        problem = readers[key](value) if key in readers else "is no date that I can read (2026-05-01, May, last week)"
        if problem is not None:
            self.notes.append(f"“{_shown(value)}” {problem}; “{typed}” was taken as words.")
            return None
        return found.end()

    def _time(self, key: str, value: str, found: re.Match[str], text: str) -> int | None:
        """A time of as many words as make sense; without quotes the words behind may belong to it."""
        pieces = [(value, found.end())]
        if found["quoted"] is None:
            position = found.end()
            while len(pieces) < periods.WORDS and (word := _WORD.match(text, position)) is not None:
                if _PIECE.match(text, word.start(1)):
                    break
                position = word.end()
                pieces.append((f"{pieces[-1][0]} {word[1]}", position))
        for words, end in reversed(pieces):
            timed_query = timed(self.query, key, words, self._now, self._zone)
            if timed_query is not None:
                self.query = timed_query
                return end
        return None

    def _role(self, value: str) -> str | None:
        names = [name.strip().casefold() for name in value.split(",") if name.strip()]
        if not names or not all(name in _ROLES for name in names):
            return "is no role (there are user, assistant and tool)"
        before = self.query.roles if "role" in self._seen else ()
        self._seen.add("role")
        self._set(roles=tuple(dict.fromkeys([*before, *(role for name in names for role in _ROLES[name])])))
        return None

    def _platform(self, value: str) -> str | None:
        names = [name.strip().casefold() for name in value.split(",") if name.strip()]
        if not names or not all(_NAME.fullmatch(name) for name in names):
            return "is no platform (telegram, discord, terminal, …)"
        before = self.query.platforms if "platform" in self._seen else ()
        self._seen.add("platform")
        self._set(platforms=tuple(dict.fromkeys([*before, *names])))
        return None

    def _on(self, value: str) -> str | None:
        if not all(name.strip().casefold() in _PLATFORMS for name in value.split(",")):
            return "is neither a platform nor a date that I know (platform: takes any name)"
        return self._platform(value)

    def _title(self, value: str) -> str | None:
        return self._once("title", lambda: self._set(title=value))

    def _from(self, value: str) -> str | None:
        def take() -> None:
            self.query = by(self.query, value)

        return self._once("from", take)

    def _in(self, value: str) -> str | None:
        number = _number(value)
        if number is None:
            return "is neither the number of a session nor a time"
        return self._once("in", lambda: self._set(session=number))

    def _page(self, value: str) -> str | None:
        number = _number(value)
        if not number:
            return "is no page (page:2 is the second)"
        return self._once("page", lambda: self._set(page=number))

    def _around(self, value: str) -> str | None:
        number = _number(value)
        if number is None:
            return "is not the number of a message"
        return self._once("around", lambda: self._set(around=number))

    def _once(self, key: str, take: Callable[[], None]) -> str | None:
        if key in self._seen:
            return f"is the second {key}: and only one counts"
        self._seen.add(key)
        take()
        return None

    def _set(self, **changes: Any) -> None:
        self.query = replace(self.query, **changes)


def _value(found: re.Match[str]) -> str:
    return (found["quoted"] if found["quoted"] is not None else found["bare"]).strip()[:VALUE_CHARS]


def _number(value: str) -> int | None:
    found = _NUMBER.fullmatch(value)
    return int(found[1]) if found is not None and found[1].isascii() else None


def _day(moment: datetime, zone: ZoneInfo) -> str:
    try:
        local = moment.astimezone(zone)
    except OverflowError:
        local = moment
    clock = f", {local:%H:%M}" if (local.hour, local.minute) != (0, 0) else ""
    return f"{local.day} {local:%B} {local.year}{clock}"


def _shown(text: str) -> str:
    """Something typed, as it may stand in a sentence."""
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ").split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
