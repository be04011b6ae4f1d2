"""Says what became of the curated notes: their changes one by one, and where a note comes from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from core.memory.pages import FILES
from core.memory.pending_note import PendingNote
from core.memory.provenance import Provenance
from core.records import NoteChange

PAGE = 10
SAID_CHARS = 300

_DONE = {
    "add": "added",
    "replace": "replaced",
    "remove": "removed",
    "edited": "edited in the file",
    "undo": "undone",
}


def listed(changes: Sequence[NoteChange], zone: ZoneInfo) -> str:
    """A line a change, with the number that `undo` takes."""
    return "\n".join(f"- {_line(change, zone)}" for change in changes)


def explained(found: Provenance, zone: ZoneInfo) -> str:
    """Who noted it, when, and from which message."""
    if found.change is None:
        return f"“{found.entry}” stands in the file; who put it there is not known."
    lines = [f"“{found.entry}”", _line(found.change, zone, is_brief=True)]
    if found.said:
        said = found.said if len(found.said) <= SAID_CHARS else f"{found.said[:SAID_CHARS]} …"
        lines.append(f"From what {found.sender or 'the person'} said: “{' '.join(said.split())}”")
    if found.link:
        lines.append(f"The message: {found.link}")
    return "\n\n".join(lines)


def aside(waiting: Sequence[PendingNote], zone: ZoneInfo) -> str:
    """What was put aside, with the numbers that `approve` and `reject` take."""
    lines = ["These read like orders to me, so they stand in no prompt until you decide:"]
    for note in waiting:
        who = "" if note.account is None else f", for {note.account.platform}:{note.account.user_id}"
        lines.append(f"- {note.id}: {_date(note.at, zone)}, {FILES[note.target]}{who}; {note.reason}")
        for one in note.operations:
            old = f" “{one.old_text}” →" if one.action == "replace" else f" “{one.old_text}”" if one.old_text else ""
            lines.append(f"  {one.action}{old}{f' “{one.content}”' if one.content else ''}")
    return "\n".join([*lines, "", "`/memory approve N` notes it, `/memory reject N` drops it."])


def _line(change: NoteChange, zone: ZoneInfo, *, is_brief: bool = False) -> str:
    done = _DONE[change.action]
    if change.undoes is not None:
        done = f"change {change.undoes} undone"
    who = "" if change.account is None else f", by {change.account.platform}:{change.account.user_id}"
    how = ", from a message" if change.message_id is not None else ""
    how += ", though it reads like an order" if change.is_insisted else ""
    head = f"{change.id}: {_date(change.at, zone)}, {FILES[change.target]}, {done}{who}{how}"
    if is_brief:
        return f"Change {head}." + (f" Before: “{change.before}”." if change.before else "")
    if change.before is None or change.after is None:
        return f"{head}: {'+' if change.before is None else '-'} “{change.before or change.after}”"
    return f"{head}: “{change.before}” → “{change.after}”"


def _date(at: datetime, zone: ZoneInfo) -> str:
    local = at.astimezone(zone)
    return f"{local.day} {local:%B %Y} {local:%H:%M}"
