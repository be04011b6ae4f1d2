"""Texts for people: `data/texts.toml`, and functions that build texts with a plural or a list.

The texts are Markdown for a chat; the command line prints them as plain text. No text assumes a
gender.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, tzinfo

from core.errors import MnemeError, StoreLostError
from core.guard.guard import inspect_name
from core.markup.markdown import escape
from core.store.mailbox import DeadItem, OutboxCounts
from core.store.notes import Operation
from core.text.normalize import language_data
from core.types import Account


def __getattr__(name: str) -> str:
    """Return a text of `data/texts.toml`. Raises AttributeError if there is no such text."""
    text = language_data("texts", "gateway").get(name)
    if not isinstance(text, str):
        raise AttributeError(name)
    return text


def table(name: str) -> Mapping[str, str]:
    """Return a table of `data/texts.toml`: texts by their keys."""
    texts: dict[str, str] = language_data("texts", "gateway")[name]
    return texts


def format_count(number: int, noun: str) -> str:
    """Format a number of things: ``1 line``, ``2,000 lines``."""
    plural = "" if number == 1 else "s"
    return f"{number:,} {noun}{plural}"


def join_list(parts: Sequence[str]) -> str:
    """Join parts to a list for a sentence: ``a, b and c``."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def render_changes(operations: Sequence[Operation]) -> list[str]:
    """Render one line for each text that is removed, then one for each that is added."""
    old_texts = [operation.old_text for operation in operations if operation.old_text]
    new_texts = [operation.content for operation in operations if operation.content]
    lines = [f"  \N{MINUS SIGN} “{escape(text)}”" for text in old_texts]
    lines += [f"  \\+ “{escape(text)}”" for text in new_texts]
    return lines


def format_day(at: datetime, zone: tzinfo) -> str:
    """Format a day: ``3 March 2026``."""
    local = at.astimezone(zone)
    return f"{local.day} {local:%B %Y}"


def format_moment(at: datetime, zone: tzinfo) -> str:
    """Format a time with its day: ``3 May 2026, 10:30``."""
    local = at.astimezone(zone)
    return f"{local.day} {local:%b %Y, %H:%M}"


def format_person(name: str, account: Account) -> str:
    """Format a person: ``**Ana** (Telegram, id `42`)``, with a warning if the name may deceive."""
    clean_name, findings = inspect_name(name)
    warning = f"⚠ {join_list(findings)}; " if findings else ""
    platform = account.platform.title()
    return (
        f"**{escape(clean_name or account.user_id)}** ({warning}{platform}, id `{account.user_id}`)"
    )


def away_notice(age: timedelta) -> str:
    """Return a notice that a message wasn't answered because it's too old."""
    hours = round(age.total_seconds() / 3600)
    if age.days >= 2:
        ago = f"{age.days} days ago"
    elif hours > 1:
        ago = f"{hours} hours ago"
    else:
        ago = "a while ago"
    return (
        f"I was away when you wrote this {ago}, so I haven't answered it. "
        "Ask again if it still matters."
    )


def failure_notice(
    error: Exception, incident: str, *, is_kept: bool = True, is_scheduled: bool = False
) -> str:
    """Return a notice that a turn failed. The log has the details under the id `incident`.

    If the turn answers a scheduled question (`is_scheduled`), there is no message to send again.
    """
    reason = "Something went wrong on my side."
    if isinstance(error, MnemeError):
        reason = str(error)
    if is_scheduled:
        return f"{reason} The log has the details under {incident}."
    storage = "Your message is saved."
    if isinstance(error, StoreLostError):
        storage = "I can't tell whether your message is saved."
    if not is_kept:
        storage = "🕶 This is incognito, so your message is not saved."
    return f"{reason} {storage} Please try again; the log has the details under {incident}."


def unfinished_notice(count: int) -> str:
    """Say how many answers the process hasn't finished; empty if it has finished all."""
    if count == 0:
        return ""
    verb = "isn't" if count == 1 else "aren't"
    return f"{format_count(count, 'answer')} {verb} finished. I'll continue after the next start."


def quote_title(title: str | None) -> str:
    """Quote a title, with a space in front: `` “Ferry”``; empty without a title."""
    return f" “{escape(title)}”" if title else ""


def describe_dead_item(dead_item: DeadItem, zone: tzinfo) -> str:
    """Describe an item that couldn't be delivered: its kind, its address, when it failed and why.

    Its text is left out.
    """
    item = dead_item.item
    moment = format_moment(dead_item.dead_at, zone)
    return f"{item.id}: {item.kind} for {item.address.key}, {moment}: {dead_item.error}"


def describe_sync_state(counts: OutboxCounts) -> str:
    """Say how many messages a memory service hasn't received; empty if it has received all."""
    clauses = []
    waiting_count = counts.held + counts.due
    if waiting_count:
        verb = "waits" if waiting_count == 1 else "wait"
        clause = f"{format_count(waiting_count, 'message')} {verb} to be sent to it"
        if counts.error and not counts.dead:
            clause += f" (last error: {counts.error})"
        clauses.append(clause)
    if counts.dead:
        messages = format_count(counts.dead, "message")
        clauses.append(f"{messages} couldn't be sent to it ({counts.error})")
    return "; ".join(clauses)
