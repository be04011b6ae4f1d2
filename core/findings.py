"""What recall found, for programs and for people: the JSON of ``recall --json``, and Markdown for a chat. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import tzinfo
from typing import Any

from core.search import Findings, Found, Hit, Item
from core.snippets import CLOSE, CUT, OPEN

_SPECIAL = re.compile(r"([\\`*_\[\]<>~|#])")
_MARKED = re.compile(f"{re.escape(OPEN)}(.+?){re.escape(CLOSE)}")
LINE_CHARS = 280
NOTHING = "Nothing found."
NO_SESSIONS = "Nothing has been said yet."


def to_json(findings: Findings) -> dict[str, Any]:
    """The documented object of ``recall --json``; times in ISO 8601, UTC. Ids of another system stand beside ours
    where there are any."""
    result: dict[str, Any] = {
        "query": findings.query,
        "shape": findings.shape,
        "took_ms": findings.took_ms,
        "sessions": [_session(found) for found in findings.sessions],
    }
    if findings.messages:
        result["messages"] = [_match(hit) for hit in findings.messages]
    if findings.note is not None:
        result["note"] = findings.note
    return result


def to_markdown(findings: Findings, zone: tzinfo) -> str:
    """Readable in a chat: for each session its title, when it was, and the sentence with the match in bold; a scroll
    or a read session as a list of who said what. Never empty."""
    if not findings.sessions:
        nothing = NO_SESSIONS if findings.shape == "browse" and findings.note is None else NOTHING
        return nothing if findings.note is None else f"{nothing} {_plain(findings.note)}"
    shown = "\n\n".join(_card(found, findings.shape, zone) for found in findings.sessions)
    return shown if findings.note is None else f"_{_plain(findings.note)}_\n\n{shown}"


def within(findings: Findings, budget_chars: int) -> Findings:
    """The same findings with their messages cut, so that all texts together have about `budget_chars`: short ones stay
    whole, long ones are cut to one common length with a mark, at a blank; the anchor may be four times as long."""
    items = [item for found in findings.sessions for item in (*found.bookend_start, *found.window, *found.bookend_end)]
    if sum(len(item.text) for item in items) <= budget_chars:
        return findings
    low, high = 20, max(20, budget_chars)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(len(item.text), middle * (4 if item.is_anchor else 1)) for item in items) <= budget_chars:
            low = middle
        else:
            high = middle - 1
    return replace(findings, sessions=tuple(_shortened(found, low) for found in findings.sessions))


def _shortened(found: Found, limit_chars: int) -> Found:
    match = _MARKED.search(found.matches[0].snippet) if found.matches else None
    word = match[1] if match else ""
    return replace(
        found,
        bookend_start=tuple(_cut(item, limit_chars, word) for item in found.bookend_start),
        window=tuple(_cut(item, limit_chars, word) for item in found.window),
        bookend_end=tuple(_cut(item, limit_chars, word) for item in found.bookend_end),
    )


def _cut(item: Item, limit_chars: int, word: str) -> Item:
    """The beginning of a long message; of the anchor, the part around the match."""
    limit_chars *= 4 if item.is_anchor else 1
    text = item.text
    if len(text) <= limit_chars:
        return item
    place = text.find(word) if item.is_anchor and word else 0
    start = max(0, min(place - limit_chars // 4, len(text) - limit_chars))
    end = min(len(text), start + limit_chars)
    if start > 0:
        start = max(start, text.find(" ", start, max(start, min(place, start + 40))) + 1)
    if end < len(text):
        end = max(text.rfind(" ", end - 40, end), place + len(word)) if text.rfind(" ", end - 40, end) > start else end
    return replace(item, text=(CUT if start > 0 else "") + text[start:end] + (CUT if end < len(text) else ""))


def _session(found: Found) -> dict[str, Any]:
    session = found.session
    result: dict[str, Any] = {"session_id": session.id}
    if session.external_id is not None:
        result["external_session"] = session.external_id
    result |= {
        "title": session.title,
        "started_at": session.started_at.isoformat(),
        "platform": session.address.platform,
        "score": round(found.score, 6),
    }
    if found.preview is not None:
        result["preview"] = found.preview
    return result | {
        "matches": [_match(hit) for hit in found.matches],
        "bookend_start": [_entry(item) for item in found.bookend_start],
        "window": [_entry(item) for item in found.window],
        "bookend_end": [_entry(item) for item in found.bookend_end],
        "messages_before": found.messages_before,
        "messages_after": found.messages_after,
    }


def _match(hit: Hit) -> dict[str, Any]:
    result: dict[str, Any] = {"message_id": hit.message_id}
    if hit.external_id is not None:
        result["external_id"] = hit.external_id
    return result | {
        "role": hit.role,
        "at": hit.created_at.isoformat(),
        "snippet": hit.snippet,
        "score": round(hit.rank, 6),
    }


def _entry(item: Item) -> dict[str, Any]:
    return {
        "message_id": item.message_id,
        "role": item.role,
        "sender": item.sender,
        "at": item.at.isoformat(),
        "text": item.text,
        "is_anchor": item.is_anchor,
    }


def _card(found: Found, shape: str, zone: tzinfo) -> str:
    session = found.session
    title = _plain(session.title or found.preview or "Untitled")
    at = found.matches[0].created_at if found.matches else session.last_at or session.started_at
    head = f"**{_line(title, 80)}** · {at.astimezone(zone):%a %-d %b %Y, %H:%M} · {session.address.platform}"
    head += f" · session {session.id}"
    if shape == "discovery":
        return "\n".join([head, *(f"> {_snippet(hit)}" for hit in found.matches[:2])])
    if shape == "browse":
        return head if session.title is None or not found.preview else f"{head}\n> {_plain(found.preview)}"
    lines = [head]
    if found.messages_before:
        lines.append(f"({found.messages_before} earlier)")
    lines.extend(_said(item, zone) for item in found.window)
    if found.messages_after:
        lines.append(f"({found.messages_after} more)")
    return "\n".join(lines)


def _said(item: Item, zone: tzinfo) -> str:
    who = _plain(item.sender or ("Mneme" if item.role == "assistant" else item.role))
    text = _line(_plain(" ".join(item.text.split())), LINE_CHARS)
    line = f"- {item.at.astimezone(zone):%H:%M} {who}: {text}"
    return f"- **{line[2:]}**" if item.is_anchor and "**" not in line else line


def _snippet(hit: Hit) -> str:
    """Escaped, with the marks as bold."""
    parts = enumerate(_MARKED.split(hit.snippet))
    return "".join(f"**{_plain(part)}**" if index % 2 else _plain(part) for index, part in parts)


def _plain(text: str) -> str:
    """Text that Markdown shows as it stands."""
    return _SPECIAL.sub(r"\\\1", text)


def _line(text: str, limit_chars: int) -> str:
    if len(text) <= limit_chars:
        return text
    blank = text.rfind(" ", 0, limit_chars)
    return text[: blank if blank > limit_chars // 2 else limit_chars].rstrip("\\") + CUT
