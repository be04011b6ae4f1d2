"""The filters in what a person types (``ferry role:assistant before:last week``) as a query; docs/recall.md has them
all.

Pure. What cannot be understood stays a word, and a note says so. Times that a plain sentence mentions never filter:
people misremember.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, cast, get_args
from zoneinfo import ZoneInfo

from core.dates import periods
from core.store.query import DEFAULT_ROLES, SearchQuery
from core.types import Role

_ME = frozenset({"me", "myself", "i", "user"})
_YOU = frozenset({"you", "yourself", "assistant", "bot", "mneme"})
_PLATFORMS = frozenset(
    ("telegram", "discord", "terminal", "cron", "import", "slack", "web", "chatgpt", "claude", "hermes")
)
"""What ``on:`` takes for a platform without doubt; ``platform:`` takes any name."""
_NUMBERLESS = {
    "in": "is neither the number of a session nor a time",
    "page": "is no page (page:2 is the second)",
    "around": "is not the number of a message",
}
_TIMES = frozenset({"before", "until", "after", "since", "during"})
_LIKE_ASCII = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2033": '"', "\uff1a": ":"})
"""Each for one character, so that places in the text stay."""
LOOK_CHARS = 10_000
VALUE_CHARS = 200
_SHOWN_CHARS = 40
_NAME = re.compile(r"[\w.-]{1,40}")
_NUMBER = re.compile(r"#?(\d{1,18})", re.ASCII)
_PIECE = re.compile(
    r'"[^"]*"|(?<!\S)(?P<minus>-?)(?P<key>role|platform|on|title|from|in|before|until|after|since|during|page|around):'
    r'(?:"(?P<quoted>[^"]*)"|(?P<bare>[^\s"]*))',
    re.IGNORECASE,
)
_WORD = re.compile(r"\s{0,8}([^\s\"]{1,40})")


class Filters(NamedTuple):
    """The query without its filters' text; `notes` are sentences about what was not understood."""

    query: SearchQuery
    notes: tuple[str, ...] = ()


def read(query: SearchQuery, now: datetime, zone: ZoneInfo) -> Filters:
    """Takes the filters out of the query's text; dates are those of `zone`. A query of prose comes back as it is."""
    text = query.text[:LOOK_CHARS].translate(_LIKE_ASCII)
    if query.is_prose or ":" not in text:
        return Filters(query)
    narrowed, notes, kept = query, list[str](), list[str]()
    position = 0
    while (found := _PIECE.search(text, position)) is not None:
        taken = _taken(narrowed, found, found["key"].lower(), now, zone) if found["key"] else ""
        if isinstance(taken, tuple):
            kept.append(query.text[position : found.start()])
            narrowed, position = taken
        else:
            notes += [taken] if taken else []
            kept.append(query.text[position : found.end()])
            position = found.end()
    words = "".join([*kept, query.text[position:]])
    return Filters(replace(narrowed, text=words if words.strip() else ""), tuple(notes[:3]))


def unlimited(query: SearchQuery) -> SearchQuery:
    """The same words without any filter, from the first page on."""
    return replace(
        query, roles=DEFAULT_ROLES, platforms=(), title=None, sender=None, is_own=False, before=None, after=None,
        session=None, page=1,
    )  # fmt: skip


def next_page(text: str) -> str:
    """The typed text for the page behind the one it asks for; the page stands in front, where nothing hides it."""
    page = 1

    def kept(found: re.Match[str]) -> str:
        nonlocal page
        is_page = (found["key"] or "").lower() == "page" and not found["minus"]
        if not is_page or not (number := _number(_value(found))):
            return found[0]
        page = number
        return ""

    rest = _PIECE.sub(kept, text[:LOOK_CHARS].translate(_LIKE_ASCII)) + text[LOOK_CHARS:]
    return f"page:{page + 1} {rest.strip()}".rstrip()


def by(query: SearchQuery, name: str) -> SearchQuery:
    """The query for what `name` said: a person's name, "me" for whoever asks, "you" for the assistant."""
    name = name.strip().removeprefix("@")
    if name.casefold() in _ME:
        return replace(query, roles=("user",), is_own=True, sender=None)
    if name.casefold() in _YOU:
        return replace(query, roles=("assistant",), is_own=False, sender=None)
    return replace(query, sender=name, is_own=False)


def names_in(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip().casefold() for name in text.split(",") if name.strip()))


def roles_of(text: str) -> tuple[Role, ...]:
    """The roles in a list with commas; none where it names anything else."""
    names = names_in(text)
    return tuple(cast(Role, name) for name in names) if set(names) <= set(get_args(Role)) else ()


def timed(query: SearchQuery, key: str, value: str, now: datetime, zone: ZoneInfo) -> SearchQuery | None:
    """The query narrowed by a time, besides what it asks already; None where `value` names none. ``before`` ends where
    it begins, ``until`` where it ends."""
    found = periods.read(value, now, zone)
    if found is None:
        return None
    start, end = found
    after = None if key in ("before", "until") else start
    before = {"before": start, "until": end, "on": end, "in": end, "during": end}.get(key)
    return replace(
        query,
        after=max((moment for moment in (query.after, after) if moment is not None), default=None),
        before=min((moment for moment in (query.before, before) if moment is not None), default=None),
    )


def _taken(
    query: SearchQuery, found: re.Match[str], key: str, now: datetime, zone: ZoneInfo
) -> tuple[SearchQuery, int] | str:
    """The query narrowed by a filter, and where that ends in the text; a note where it is words."""
    value, typed = _value(found), _shown(found[0])
    if found["minus"]:
        return f"Filters cannot be turned round with a minus; “{typed}” was taken as words."
    if not value:
        return f"There is nothing behind “{typed}”, so it was taken as a word."
    if key in _TIMES or key == "on" or (key == "in" and _number(value) is None):
        for words, end in reversed(list(_words_behind(found, value))):
            if (narrowed := timed(query, key, words, now, zone)) is not None:
                return narrowed, end
    result = _named(query, key, value)
    if isinstance(result, str):
        return f"“{_shown(value)}” {result}; “{typed}” was taken as words."
    return result, found.end()


def _words_behind(found: re.Match[str], value: str) -> Iterator[tuple[str, int]]:
    """The value and, where it has no quotes, with as many words behind it as a time may have; each with its end."""
    end = found.end()
    yield value, end
    for _ in range(0 if found["quoted"] is not None else periods.WORDS - 1):
        word = _WORD.match(found.string, end)
        if word is None or _PIECE.match(found.string, word.start(1)):
            return
        value, end = f"{value} {word[1]}", word.end()
        yield value, end


def _named(query: SearchQuery, key: str, value: str) -> SearchQuery | str:
    """The query narrowed by what is no time; what is wrong with the value."""
    number, names = _number(value), names_in(value)
    result: SearchQuery | str
    match key:
        case "title":
            result = replace(query, title=value)
        case "from":
            result = by(query, value)
        case "role":
            roles = roles_of(value)
            result = replace(query, roles=roles) if roles else "is no role (there are user, assistant and tool)"
        case "in" | "page" | "around" if not number:
            result = _NUMBERLESS[key]
        case "in":
            result = replace(query, session=number)
        case "page":
            result = replace(query, page=number or 1)
        case "around":
            result = replace(query, around=number)
        case "on" if not _PLATFORMS.issuperset(names or [""]):
            result = "is neither a platform nor a date that I know (platform: takes any name)"
        case "on" | "platform" if names and all(map(_NAME.fullmatch, names)):
            result = replace(query, platforms=tuple(dict.fromkeys([*query.platforms, *names])))
        case "platform":
            result = "is no platform (telegram, discord, terminal, …)"
        case _:
            result = "is no date that I can read (2026-05-01, May, last week)"
    return result


def _value(found: re.Match[str]) -> str:
    return (found["quoted"] if found["quoted"] is not None else found["bare"]).strip()[:VALUE_CHARS]


def _number(value: str) -> int | None:
    found = _NUMBER.fullmatch(value)
    return int(found[1]) if found is not None else None


def _shown(text: str) -> str:
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ").split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
