"""Renders search results as Markdown for people, and as JSON for programs (``recall --json``)."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from typing import Any

from core.markup.markdown import escape
from core.search.results import ELLIPSIS, MARKED_MATCH
from core.store.query import (
    MAX_FIRST_MESSAGES,
    FileHit,
    FoundSession,
    Hit,
    SearchResults,
    Shape,
    ShownMessage,
)

TITLE_CHARS = 80
MAX_CARD_MATCHES = 2
"""A card shows at most this many matches of its session."""
UNTITLED = "Untitled"
NOTHING = "Nothing found."
NO_SESSIONS = "There are no conversations yet."
NO_MESSAGE = "There is no such message here. It may have been erased."
NO_SESSION = "There is no such conversation here."

# Files whose name on the platform says nothing.
_KIND_NAMES = {"voice": "voice note", "video": "video", "video note": "video note"}
_BLANKS = re.compile(r"\s+")
_OMITTED_VALUES: dict[str, Any] = {
    "messages": [],
    "files": [],
    "has_more": False,
    "origin": "typed",
    "note": None,
    "external_session": None,
    "summary": None,
    "preview": None,
    "external_id": None,
    "link": None,
    "quoted": None,
}
"""A field of the JSON is left out if it has this value."""


def to_json(results: SearchResults) -> dict[str, Any]:
    """Return the object that docs/recall.md describes. Times are in ISO 8601, UTC."""
    return _omit_defaults(
        {
            "query": results.query,
            "shape": results.shape,
            "took_ms": results.took_ms,
            "sessions": list(map(_session_fields, results.sessions)),
            "messages": list(map(_message_fields, results.messages)),
            "files": [file._asdict() | {"at": file.at.isoformat()} for file in results.files],
            "has_more": results.has_more,
            "note": results.note,
        }
    )


def _omit_defaults(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in fields.items()
        if name not in _OMITTED_VALUES or value != _OMITTED_VALUES[name]
    }


def _session_fields(result: FoundSession) -> dict[str, Any]:
    """Return the JSON fields of one session. Each message is in one part only."""
    session = result.session
    window_ids = {message.message_id for message in result.window}
    first = [message for message in result.bookend_start if message.message_id not in window_ids]
    first_ids = {message.message_id for message in first}
    last = [
        message
        for message in result.bookend_end
        if message.message_id not in window_ids | first_ids
    ]
    return _omit_defaults(
        {
            "session_id": session.id,
            "title": session.title,
            "started_at": session.started_at.isoformat(),
            "platform": session.address.platform,
            "score": round(result.score, 6),
            "matches": list(map(_message_fields, result.matches)),
            "bookend_start": list(map(_message_fields, first)),
            "window": list(map(_message_fields, result.window)),
            "bookend_end": list(map(_message_fields, last)),
            "messages_before": result.messages_before,
            "messages_after": result.messages_after,
            "external_session": session.external_id,
            "summary": result.summary,
            "preview": result.preview,
        }
    )


def _message_fields(message: Hit | ShownMessage) -> dict[str, Any]:
    """Return the JSON fields of a message, without ids that programs don't need."""
    fields = message._asdict()
    fields["at"] = message.at.isoformat()
    if isinstance(message, Hit):
        fields["score"] = round(message.score, 6)
        del fields["session_id"], fields["sender"]
    else:
        del fields["sender_id"]
    return _omit_defaults(fields)


def to_markdown(results: SearchResults, zone: tzinfo) -> str:
    """Render the results as Markdown.

    Depending on the shape, this is a card for each session, or the messages of one conversation.
    The text is never empty.
    """
    if not results.sessions and not results.files:
        return escape(describe_no_results(results))
    if results.shape in ("scroll", "read"):
        parts = [_render_conversation(result, results.shape, zone) for result in results.sessions]
    else:
        parts = [
            _render_card(number, result, zone) for number, result in enumerate(results.sessions, 1)
        ]
    if results.files:
        parts.insert(0, "\n".join(_render_file(file, zone) for file in results.files))
    if results.note is not None:
        parts.insert(0, f"_{escape(results.note)}_")
    return "\n\n".join(parts)


def describe_file(file: FileHit) -> str:
    """Return what a file is called, and where in it the words are: "contract.pdf, page 7"."""
    name = _KIND_NAMES.get(file.kind) or _escape_line(file.name)
    return f"{name}, {_escape_line(file.place)}" if file.place else name


def _render_file(file: FileHit, zone: tzinfo) -> str:
    """Render a file as a line with its place, its day and the text around the words."""
    at = file.at.astimezone(zone)
    line = f"📎 **{describe_file(file)}** · {at:%-d %b %Y}"
    return f"{line}\n> {_escape_line(file.snippet)}" if file.snippet else line


def describe_no_results(results: SearchResults) -> str:
    """Return a sentence that says that nothing was found, followed by the note of the results."""
    text = NOTHING
    if results.shape == "scroll":
        text = NO_MESSAGE
    elif results.shape == "read":
        text = NO_SESSION
    elif results.shape == "browse" and results.note is None:
        text = NO_SESSIONS
    return text if results.note is None else f"{text} {results.note}"


def _render_card(number: int, result: FoundSession, zone: tzinfo) -> str:
    """Render a session with its first matches, and the message that one of them replies to.

    A session without matches shows its preview, unless the title repeats the preview. A summary
    comes last.
    """
    lines = [_render_heading(f"{number}. ", result, _time_of(result).astimezone(zone))]
    matches = result.matches[:MAX_CARD_MATCHES]
    lines += [f"> {_render_match(hit)}" for hit in matches]
    quotes = [hit.quoted for hit in matches if hit.quoted]
    if quotes:
        lines.append(f"> {_render_quote(quotes[0])}")
    title = result.session.title or ""
    preview = result.preview or ""
    repeats_title = preview.startswith(title.rstrip(ELLIPSIS))
    if not result.matches and title and preview and not repeats_title:
        lines.append(f"> {_escape_line(preview)}")
    if result.summary:
        lines += ["", result.summary.strip()]
    return "\n".join(lines)


def _render_conversation(result: FoundSession, shape: Shape, zone: tzinfo) -> str:
    """Render all messages of a session's window.

    A message has its date if the message before it was sent on another day. Lines such as "(3
    earlier)" say how many messages aren't shown.
    """
    at = _time_of(result).astimezone(zone)
    lines = [_render_heading("", result, at)]
    if result.summary:
        lines += ["", result.summary.strip(), ""]
    if result.messages_before:
        lines.append(f"({result.messages_before} earlier)")
    day = at.date()
    for index, message in enumerate(result.window):
        if shape == "read" and result.messages_after and index == MAX_FIRST_MESSAGES:
            lines.append(f"({result.messages_after} more in between)")
        at = message.at.astimezone(zone)
        time_format = "%H:%M" if at.date() == day else "%-d %b, %H:%M"
        day = at.date()
        lines.append(_render_message(message, f"{at:{time_format}}"))
    if shape == "scroll" and result.messages_after:
        lines.append(f"({result.messages_after} more)")
    return "\n".join(lines)


def _render_message(message: ShownMessage, time: str) -> str:
    """Render a message as a list item.

    The anchor is bold, and is followed by its link and the beginning of the message that it replies
    to.
    """
    sender = message.sender
    if not sender:
        sender = "Mneme" if message.role == "assistant" else message.role
    line = f"{time} {_escape_line(sender)}: {_escape_line(message.text)}"
    if not message.is_anchor:
        return f"- {line}"
    quote = f" {_render_quote(message.quoted)}" if message.quoted else ""
    return f"- **{line}**{_render_link(message.link)}{quote}"


def _render_heading(number: str, result: FoundSession, at: datetime) -> str:
    """Render the title, time, platform and id of a session. A long title is cut between words."""
    session = result.session
    title = session.title or result.preview or UNTITLED
    if len(title) > TITLE_CHARS:
        end = title.rfind(" ", 0, TITLE_CHARS)
        if end <= TITLE_CHARS // 2:
            end = TITLE_CHARS
        title = title[:end] + ELLIPSIS
    time = f"{at:%a %-d %b %Y, %H:%M}"
    platform = session.address.platform
    return f"**{number}{_escape_line(title)}** · {time} · {platform} · session {session.id}"


def _time_of(result: FoundSession) -> datetime:
    """Return the time of the best match, else of the anchor, else of the session's last message."""
    if result.matches:
        return result.matches[0].at
    for message in result.window:
        if message.is_anchor:
            return message.at
    return result.session.last_at or result.session.started_at


def _render_match(hit: Hit) -> str:
    """Render the snippet of a match, with the matching words in bold, and its link."""
    text = ""
    # The pattern has a group, so `split` returns the texts between the matches at even indexes and
    # the matches at odd ones.
    for index, part in enumerate(MARKED_MATCH.split(hit.snippet)):
        is_match = index % 2 == 1
        text += f"**{_escape_line(part)}**" if is_match else _escape_line(part)
    return text + _render_link(hit.link)


def _render_quote(quote: str) -> str:
    return f"↩ {_escape_line(quote)}"


def _render_link(link: str | None) -> str:
    return f" [open]({link})" if link else ""


def _escape_line(text: str) -> str:
    """Escape a text for Markdown, and join its lines. A leading space is preserved."""
    line = _BLANKS.sub(" ", text)
    markdown = escape(line.lstrip())
    return f" {markdown}" if line.startswith(" ") else markdown
