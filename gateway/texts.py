"""What people read from the router, the commands, the notices and `mneme check`, to be proof-read in one place.

Markdown for a chat; the shell prints it as plain text and names its own commands. Nobody's gender is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, tzinfo

from core.errors import MnemeError
from core.guard.guard import marked_name
from core.markup.markdown import escape
from core.store.mailbox import OutboxCounts
from core.store.notes import Operation
from core.text.normalize import language_data
from core.types import Account


def __getattr__(name: str) -> str:
    """A text of `data/texts.toml`."""
    text = language_data("texts", "gateway").get(name)
    if not isinstance(text, str):
        raise AttributeError(name)
    return text


def table(name: str) -> Mapping[str, str]:
    """Texts by what they stand for."""
    names: dict[str, str] = language_data("texts", "gateway")[name]
    return names


def counted(number: int, noun: str) -> str:
    """``1 line``, ``2,000 lines``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def difference(operations: Sequence[Operation]) -> list[str]:
    """What would go and what would come, line by line."""
    gone = [f"  \N{MINUS SIGN} “{escape(one.old_text)}”" for one in operations if one.old_text]
    return gone + [f"  \\+ “{escape(one.content)}”" for one in operations if one.content]


def day(at: datetime, zone: tzinfo) -> str:
    local = at.astimezone(zone)
    return f"{local.day} {local:%B %Y}"


def moment(at: datetime, zone: tzinfo) -> str:
    """``3 May 2026, 10:30``."""
    local = at.astimezone(zone)
    return f"{local.day} {local:%b %Y, %H:%M}"


def person(name: str, account: Account) -> str:
    """``**Ana** (Telegram, id `42`)``, with a mark where the name may be mistaken for another one."""
    shown, findings = marked_name(name)
    mark = f"⚠ {listed(findings)}; " if findings else ""
    return f"**{escape(shown or account.user_id)}** ({mark}{account.platform.title()}, id `{account.user_id}`)"


def away(age: timedelta) -> str:
    hours = round(age.total_seconds() / 3600)
    ago = f"{age.days} days ago" if age.days >= 2 else f"{hours} hours ago" if hours > 1 else "a while ago"
    return f"I was away when you wrote this {ago}, so I have not answered it. Ask again if it still matters."


def failed(error: Exception, incident: str, *, is_kept: bool = True) -> str:
    """For a turn that failed; `incident` is its id in the log."""
    reason = str(error) if isinstance(error, MnemeError) else "Something went wrong on my side."
    kept = "What you wrote is kept." if is_kept else "🕶 This is incognito, so what you wrote is not kept."
    return f"{reason} {kept} Please try again; the log has the details under {incident}."


def unfinished(count: int) -> str:
    """Empty when there are none."""
    return f"Not finished: {counted(count, 'answer')}; this goes on after the next start." if count else ""


def titled(title: str | None) -> str:
    """A title to stand behind a noun; empty where there is none."""
    return f" “{escape(title)}”" if title else ""


def sync_state(counts: OutboxCounts) -> str:
    """How a service stands with what it is to be told; empty when it was told everything."""
    parts = []
    if waiting := counts.held + counts.due:
        tried = f" (the last try: {counts.error})" if counts.error and not counts.dead else ""
        parts.append(f"{counted(waiting, 'message')} to it wait{'s' * (waiting == 1)} to be delivered{tried}")
    if counts.dead:
        were = "was" if counts.dead == 1 else "were"
        parts.append(f"{counted(counts.dead, 'message')} to it {were} given up ({counts.error})")
    return "; ".join(parts)
