"""What recall found as the JSON of ``recall --json``, as Markdown for a chat, and notes about how it searched. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

from core.markup.text import escape
from core.store.query import READ_FIRST, FoundSession, Hit, SearchResults, ShownMessage

OPEN, CLOSE, CUT = ">>>", "<<<", "…"
"""Around a match in a snippet; where text was cut."""
_BLANKS = re.compile(r"\s+")
MARKED = re.compile(f"{re.escape(OPEN)}(.+?){re.escape(CLOSE)}")
TITLE_CHARS, CELL_CHARS = 80, 40
"""A title is cut to so much, in a table to less."""
QUOTED = 2
"""So many matches of a session are shown in a card."""
UNTITLED = "Untitled"
NO_TEXT = "(no text)"
NOTHING = "Nothing found."
NO_SESSIONS = "Nothing has been said yet."
NO_MESSAGE = "There is no such message here, or not any more."
NO_SESSION = "There is no such conversation here."


def to_json(findings: SearchResults) -> dict[str, Any]:
    """The documented object of ``recall --json``; times in ISO 8601, UTC."""
    shown = {
        "query": findings.query,
        "shape": findings.shape,
        "took_ms": findings.took_ms,
        "sessions": [_session(found) for found in findings.sessions],
    }
    messages = [_match(hit) for hit in findings.messages]
    return _with(shown, messages=messages, has_more=findings.has_more, note=findings.note)


def to_markdown(findings: SearchResults, zone: tzinfo, *, is_wide: bool = False) -> str:
    """Cards, a table where lines are long (`is_wide`), or who said what for one conversation; never empty."""
    if not findings.sessions:
        return escape(no_results(findings))
    numbered = list(enumerate(findings.sessions, 1))
    if findings.shape in ("scroll", "read"):
        shown = [_conversation(found, findings.shape, zone) for found in findings.sessions]
    elif is_wide:
        told = [(number, found) for number, found in numbered if found.summary]
        shown = [_table(findings, zone)]
        shown += [f"**{number}. {_title(found)}**\n\n{(found.summary or '').strip()}" for number, found in told]
    else:
        shown = [_card(number, found, zone) for number, found in numbered]
    return "\n\n".join([f"_{escape(findings.note)}_", *shown] if findings.note is not None else shown)


def no_results(findings: SearchResults) -> str:
    """What is told where nothing was found."""
    nothing = {"scroll": NO_MESSAGE, "read": NO_SESSION}.get(findings.shape, NOTHING)
    if findings.shape == "browse" and findings.note is None:
        nothing = NO_SESSIONS
    return nothing if findings.note is None else f"{nothing} {findings.note}"


def _with(fields: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """The fields, and those of the optional ones that have something."""
    return fields | {name: value for name, value in optional.items() if value or value == ""}


def _session(found: FoundSession) -> dict[str, Any]:
    session = found.session
    fields = {
        "session_id": session.id,
        "title": session.title,
        "started_at": session.started_at.isoformat(),
        "platform": session.address.platform,
        "score": round(found.score, 6),
        "matches": [_match(hit) for hit in found.matches],
        "bookend_start": _entries(found.bookend_start),
        "window": _entries(found.window),
        "bookend_end": _entries(found.bookend_end),
        "messages_before": found.messages_before,
        "messages_after": found.messages_after,
    }
    return _with(fields, external_session=session.external_id, summary=found.summary, preview=found.preview)


def _match(hit: Hit) -> dict[str, Any]:
    fields = {
        "message_id": hit.message_id,
        "role": hit.role,
        "at": hit.created_at.isoformat(),
        "snippet": hit.snippet,
        "score": round(hit.rank, 6),
    }
    return _with(fields, external_id=hit.external_id, link=hit.link)


def _entries(items: Sequence[ShownMessage]) -> list[dict[str, Any]]:
    return [
        {
            "message_id": item.message_id,
            "role": item.role,
            "sender": item.sender,
            "at": item.at.isoformat(),
            "text": item.text,
            "is_anchor": item.is_anchor,
            **({"link": item.link} if item.link else {}),
            **({} if item.origin == "typed" else {"origin": item.origin}),
        }
        for item in items
    ]


def _head(name: str, found: FoundSession, zone: tzinfo) -> str:
    session = found.session
    when = f"{_at(found).astimezone(zone):%a %-d %b %Y, %H:%M}"
    return f"**{name}** · {when} · {session.address.platform} · session {session.id}"


def _card(number: int, found: FoundSession, zone: tzinfo) -> str:
    title, preview = found.session.title, found.preview or ""
    lines = [
        _head(f"{number}. {_title(found)}", found, zone),
        *(f"> {_matching(hit)}" for hit in found.matches[:QUOTED]),
    ]
    if not found.matches and title and preview and not preview.startswith(title.rstrip(CUT)):
        lines.append(f"> {_plain(preview)}")
    return "\n".join([*lines, "", found.summary.strip()] if found.summary else lines)


def _table(findings: SearchResults, zone: tzinfo) -> str:
    lines = ["| | When | Where | Session | Title | What was said |", "| ---: | --- | --- | ---: | --- | --- |"]
    for number, found in enumerate(findings.sessions, 1):
        session = found.session
        said = _matching(found.matches[0]) if found.matches else _plain(found.preview or NO_TEXT)
        title = _plain(_line(session.title or UNTITLED, CELL_CHARS))
        when = f"{_at(found).astimezone(zone):%-d %b %Y, %H:%M}"
        cells = (str(number), when, session.address.platform, str(session.id), title, said)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _conversation(found: FoundSession, shape: str, zone: tzinfo) -> str:
    """Who said what; the day stands in the head and where it changes."""
    lines = [_head(_title(found), found, zone)]
    if found.summary:
        lines += ["", found.summary.strip(), ""]
    if found.messages_before:
        lines.append(f"({found.messages_before} earlier)")
    day = _at(found).astimezone(zone).date()
    for index, item in enumerate(found.window):
        if shape == "read" and found.messages_after and index == READ_FIRST:
            lines.append(f"({found.messages_after} more in between)")
        at = item.at.astimezone(zone)
        lines.append(_said(item, f"{at:%-d %b, %H:%M}" if at.date() != day else f"{at:%H:%M}"))
        day = at.date()
    if shape == "scroll" and found.messages_after:
        lines.append(f"({found.messages_after} more)")
    return "\n".join(lines)


def _said(item: ShownMessage, when: str) -> str:
    who = _plain(item.sender or ("Mneme" if item.role == "assistant" else item.role))
    line = f"{when} {who}: {_plain(item.text)}"
    return f"- **{line}**{_opened(item.link)}" if item.is_anchor else f"- {line}"


def _title(found: FoundSession) -> str:
    return _plain(_line(found.session.title or found.preview or UNTITLED, TITLE_CHARS))


def _at(found: FoundSession) -> datetime:
    """When the best match was said; the anchor of a scroll; else when the session was last spoken in."""
    said = [hit.created_at for hit in found.matches] + [item.at for item in found.window if item.is_anchor]
    return said[0] if said else found.session.last_at or found.session.started_at


def _matching(hit: Hit) -> str:
    parts = enumerate(MARKED.split(hit.snippet))
    return "".join(f"**{_plain(part)}**" if index % 2 else _plain(part) for index, part in parts) + _opened(hit.link)


def _opened(link: str | None) -> str:
    return f" [open]({link})" if link else ""


def _plain(text: str) -> str:
    """Text on one line that Markdown shows as it stands, also in the middle of a line: a blank in front stays."""
    line = _BLANKS.sub(" ", text)
    return (" " if line.startswith(" ") else "") + escape(line.lstrip())


def _line(text: str, limit_chars: int) -> str:
    if len(text) <= limit_chars:
        return text
    blank = text.rfind(" ", 0, limit_chars)
    return text[: blank if blank > limit_chars // 2 else limit_chars] + CUT


LOOSE = "No message has all of that; these have some of the words, best first."
UNTYPED = "That could not be searched as typed; these have some of the words, best first."
PAGE_EMPTY = "There is nothing more on page {page}."
LAST_PAGE = "There are more, but this is the last page: add words or filters."
WORDLESS = "There is no word, number or emoji in that to search for."
DAMAGED = "The search index is damaged or being rebuilt. Ask again in a minute; `mneme check` tells more."
_WORDS_SHOWN, _CHARS_SHOWN = 6, 60


def nothing(words: Sequence[str], *, is_typed: bool, is_limited: bool, is_wider: bool) -> str:
    """What was tried in vain: any of `words`, all of them first (`is_typed`), within filters (`is_limited`) that hide
    something (`is_wider`) or not."""
    listed = ", ".join(_shown(word.rstrip("*")) for word in words[:_WORDS_SHOWN])
    asked = f"any of its words ({listed}{'…' * (len(words) > _WORDS_SHOWN)})" if len(words) != 1 else f"“{listed}”"
    tried = f"I looked for it as typed and for {asked}" if is_typed and len(words) > 1 else f"I looked for {asked}"
    if not words:
        tried = "I looked through the latest conversations"
    within = ", within the limits that you gave" if is_limited else ""
    return f"{tried}{within}." + (" Without these limits there is something." if is_wider else "")


def respelled(words: Mapping[str, str]) -> str | None:
    """Which words were never said, and which were taken instead."""
    if not words:
        return None
    return " ".join(f"“{_shown(typed)}” was never said; I looked for “{known}” too." for typed, known in words.items())


def joined(sentences: Iterable[str | None]) -> str | None:
    """All of them in order, each once; None where there are none."""
    return " ".join(dict.fromkeys(sentence for sentence in sentences if sentence)) or None


def _shown(word: str) -> str:
    return word if len(word) <= _CHARS_SHOWN else word[: _CHARS_SHOWN - 1] + "…"
