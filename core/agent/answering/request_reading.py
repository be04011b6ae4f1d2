"""Reads the times and the notes in a request of the Messages API."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from core.guard.origin_and_fence import OPENING
from core.types import Request

_TIME = re.compile(r"(?P<at>\d{1,2} [A-Z][a-z]+ \d{4}, \d{1,2}:\d{2})(?: (?P<zone>[^\s,\]]+))?")
"""The day, time and time zone in a time line."""


def parse_time_line(line: str, default_zone: ZoneInfo) -> datetime:
    """Return the time in a line such as "[Friday 20 November 2026, 12:05 Europe/Lisbon]".

    The line has the zone of the person who wrote the message. Without a time, return the current
    time in `default_zone`.
    """
    match = _TIME.search(line)
    if match is None:
        return datetime.now(default_zone)
    zone = ZoneInfo(match["zone"]) if match["zone"] else default_zone
    return datetime.strptime(match["at"], "%d %B %Y, %H:%M").replace(tzinfo=zone)


def zone_of(at: datetime) -> ZoneInfo:
    """Return the zone of a time that was read from a time line."""
    assert isinstance(at.tzinfo, ZoneInfo)
    return at.tzinfo


def list_notes(request: Request) -> list[str]:
    """Return the notes that a request shows: in its system prompt, or as a change since then."""
    # Imported here because only questions need it.
    from core.notes.provider import list_known_notes

    prompt = "\n".join(str(block.get("text", "")) for block in request.system)
    blocks = [block for message in request.messages for block in message["content"]]
    texts = [str(block.get("text", "")) for block in blocks]
    return list_known_notes(prompt, [text for text in texts if text.startswith(OPENING)])
