"""Says what became of the curated notes: their changes one by one, and where a note comes from.

What people wrote is shown letter by letter: `quote` makes it so, in Markdown as it stands; a shell wants it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from core.markup.render import escape
from core.notes.files import FILES
from core.notes.provenance import Provenance
from core.records import NoteChange
from core.review.pending import PendingNote

Quote = Callable[[str], str]
PAGE = 10
SAID_CHARS = 300

_DONE = {
    "add": "added",
    "replace": "replaced",
    "remove": "removed",
    "edited": "edited in the file",
    "undo": "undone",
    "approve": "approved as it stands in the file",
}


def listed(changes: Sequence[Provenance], zone: ZoneInfo, quote: Quote = escape) -> str:
    """A line a change, with the number that `undo` takes."""
    return "\n".join(f"- {_line(one, one.change, zone, quote)}" for one in changes if one.change is not None)


def explained(found: Provenance, zone: ZoneInfo, quote: Quote = escape) -> str:
    """Who noted it, when, and from which message."""
    entry = quote(found.entry)
    if found.change is None:
        return f"“{entry}” stands in the file; who put it there is not known."
    lines = [f"“{entry}”", _line(found, found.change, zone, quote, is_brief=True)]
    if found.said:
        said = found.said if len(found.said) <= SAID_CHARS else f"{found.said[:SAID_CHARS]} …"
        did = "said" if found.change.message_id is not None else "typed"
        lines.append(f"From what {quote(found.sender or 'the person')} {did}: “{quote(' '.join(said.split()))}”")
    if found.link:
        lines.append(f"The message: {found.link}")
    return "\n\n".join(lines)


def aside(
    waiting: Sequence[PendingNote], zone: ZoneInfo, files: Sequence[tuple[str, str]] = (), quote: Quote = escape
) -> str:
    """What was put aside, with the numbers that `approve` and `reject` take; and the owner's `files` that are left out,
    with the reason."""
    lines = ["These read like orders to me, so they stand in no prompt until you decide:"]
    lines += [f"- {name}, your own file: it contains {reason}. `/memory approve {name}`" for name, reason in files]
    for note in waiting:
        who = "" if note.account is None else f", for {note.account.platform}:{note.account.user_id}"
        where = ", stands in the file" if note.is_written else ""
        lines.append(f"- {note.id}: {_date(note.at, zone)}, {FILES[note.target]}{where}{who}; {note.reason}")
        for one in note.operations:
            content, old_text = quote(one.content), quote(one.old_text)
            old = f" “{old_text}” →" if one.action == "replace" else f" “{old_text}”" if old_text else ""
            done = "by hand" if note.is_written else one.action
            lines.append(f"  {done}{old}{f' “{content}”' if content else ''}")
    if waiting:
        lines += ["", "`/memory approve N` notes it, `/memory reject N` drops it."]
    if any(note.is_written for note in waiting):
        lines[-1] += " What stands in the file stays there when it is approved, and is taken out when it is rejected."
    return "\n".join(lines)


def plainly(sentences: str) -> str:
    """What the notebook says, as Markdown that reads so letter by letter; what it lists stays a list."""
    return "\n".join(
        f"- {escape(line[2:])}" if line.startswith("- ") else escape(line) for line in sentences.split("\n")
    )


def _line(one: Provenance, change: NoteChange, zone: ZoneInfo, quote: Quote, *, is_brief: bool = False) -> str:
    done = _DONE[change.action]
    if change.undoes is not None:
        done = f"change {change.undoes} undone"
    who = "" if change.account is None else f", by {change.account.platform}:{change.account.user_id}"
    how = f", though it reads like an order{_way(change)}" if change.is_insisted else _way(change)
    head = f"{change.id}: {_date(change.at, zone)}, {FILES[change.target]}, {done}{who}{how}"
    before, after = (None if text is None else quote(text) for text in (change.before, change.after))
    if is_brief:
        return f"Change {head}." + (f" Before: “{before}”." if before else "")
    link = f" ({one.link})" if one.link else ""
    if before is None or after is None:
        return f"{head}: {'+' if before is None else '-'} “{before or after}”{link}"
    return f"{head}: “{before}” → “{after}”{link}"


def _way(change: NoteChange) -> str:
    """How it was asked for."""
    if change.message_id is not None:
        return ", from a message"
    if change.address is not None:
        return f", typed in {'a room' if change.scope.is_room else 'a direct chat'}"
    return "" if change.account is None else ", on the command line"


def _date(at: datetime, zone: ZoneInfo) -> str:
    local = at.astimezone(zone)
    return f"{local.day} {local:%B %Y} {local:%H:%M}"
