"""/usage: what was spent on models, what the cache saved of it, and why a prefix missed, for people to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from zoneinfo import ZoneInfo

from core.errors import Refused
from core.markup.render import escape
from core.store.usage import MissCause
from core.types import Answer, Button, CallKind, Command, CommandSpec, Option, Session
from core.usage.report import Prices, Spending, UsageReport
from gateway.commands.context import CommandContext

SESSIONS = 10
TITLE_CHARS = 40
_WIDE = frozenset({"terminal"})
"""Platforms that have room for a table."""
_USAGE = CommandSpec(
    name="usage",
    description="What the model has cost, and how much came from the cache",
    options=(
        Option(
            name="list",
            description="by month or by conversation",
            choices=("months", "sessions"),
        ),
    ),
    is_private=True,
)
CAUSES: Mapping[MissCause, str] = {
    "first": "at the first request of a conversation",
    "length": "when a long conversation was continued in a fresh one",
    "rights": "when less might be seen than before",
    "resumed": "when an earlier conversation was gone on with",
    "forget": "after something was forgotten",
    "edit": "after a message was edited or deleted",
    "model": "because another model was asked",
    "system": "because the system prompt had changed",
    "tools": "because the tools had changed",
    "messages": "because what was said before had changed",
    "idle": "after a pause longer than the server keeps it",
    "evicted": "although nothing had changed: the server had dropped it",
}
"""Why a prefix was not in the cache, to stand behind the number of tokens."""
KINDS: Mapping[CallKind, str] = {
    "chat": "for answers",
    "title": "for titles",
    "summary": "for summaries",
    "expansion": "for more searches of a question",
    "facts": "to find facts",
}


class UsageCommands:
    """`zone` is the IANA name for the dates that are shown."""

    specs = (_USAGE,)

    def __init__(self, books: UsageReport, zone: str) -> None:
        self._books = books
        self._zone = ZoneInfo(zone)

    def is_reading(self, command: Command) -> bool:
        """Always."""
        return True

    async def run(self, command: Command, caller: CommandContext) -> Answer:
        """See `gateway.commands.registry`."""
        is_wide = caller.inbound.address.platform in _WIDE
        prices = self._books.prices
        match command.arguments.strip().lower():
            case "":
                return await self._overview(caller)
            case "months":
                found = await self._books.months(caller.scopes)
                rows = [(month_name(day), spending) for day, spending in found]
                return Answer(text=_listed("Month", rows, prices, is_wide=is_wide))
            case "sessions":
                sessions = await self._books.sessions(caller.scopes, SESSIONS)
                rows = [(self._name(session), spending) for session, spending in sessions]
                buttons = tuple(_button(str(session.id), str(session.id)) for session, _ in sessions)
                return Answer(text=_listed("Conversation", rows, prices, is_wide=is_wide), buttons=buttons)
            case number if number.isdecimal() and len(number) < 19:
                spending = await self._books.session(int(number), caller.scopes)
                return Answer(text=self._told(f"Conversation {int(number)}", spending))
            case _:
                raise Refused(
                    "Write /usage, /usage months, /usage sessions, or /usage and the number of a conversation."
                )

    async def _overview(self, caller: CommandContext) -> Answer:
        lately = await self._books.lately(caller.scopes)
        parts = [self._told("The last 30 days", lately)]
        if caller.session.is_incognito:
            parts.insert(0, "**This conversation** is incognito: its calls are in the sum below, and under no name.")
        else:
            here = await self._books.session(caller.session.id, caller.scopes)
            parts.insert(0, self._told("This conversation", here))
        buttons = (_button("By month", "months"), _button("By conversation", "sessions"))
        return Answer(text="\n\n".join(parts), buttons=buttons if lately.calls else ())

    def _told(self, name: str, spending: Spending) -> str:
        return "\n".join([f"**{name}**: {tokens(spending)}", *_details(spending, self._books.prices)])

    def _name(self, session: Session) -> str:
        local = (session.last_at or session.started_at).astimezone(self._zone)
        title = " ".join((session.title or "").split())
        short = title if len(title) <= TITLE_CHARS else title[: TITLE_CHARS - 1].rstrip() + "…"
        name = f" “{escape(short)}”" if short else ""
        return f"{session.id}{name}, {local.day} {local:%b %Y}"


def tokens(spending: Spending) -> str:
    """The tokens of some calls in a sentence."""
    usage = spending.usage
    if not spending.calls:
        return "no model was asked."
    read = f"{usage.cache_read:,} of them read from the cache ({100 * spending.cached:.0f} %)"
    hour = f" ({usage.cache_write_hour:,} for an hour)" if usage.cache_write_hour else ""
    written = f", {usage.cache_write:,} written to it{hour}" if usage.cache_write else ""
    return f"{usage.sent:,} tokens in{f', {read}{written}' if usage.sent else ''}; {usage.output:,} tokens out."


def costs(spending: Spending, prices: Prices) -> str:
    """What it came to in a sentence; empty where no model was asked."""
    without = ", ".join(spending.unpriced)
    if not spending.calls:
        return ""
    if spending.cost is None or spending.plain_cost is None:
        return f"What it cost I cannot say: usage.prices in mneme.toml has no price for {without}."
    told = f"It cost {prices.amount(spending.cost)}"
    if spending.usage.cache_read:
        told += f"; without the cache it would have been {prices.amount(spending.plain_cost)}"
    return f"{told}." + (f" Besides, usage.prices in mneme.toml has no price for {without}." if without else "")


def calls(spending: Spending) -> str:
    """How often a model was asked, and what for."""
    parts = [f"{count:,} {KINDS[kind]}" for kind, count in spending.kinds]
    return f"{_counted(spending.calls, 'call')}: {', '.join(parts)}."


def misses(spending: Spending) -> list[str]:
    """Why tokens were sent anew, a line for each cause."""
    return [
        f"{miss.tokens:,} tokens in {_counted(miss.times, 'request')} {CAUSES[miss.cause]}" for miss in spending.misses
    ]


def month_name(day: date) -> str:
    """``November 2026``."""
    return f"{day:%B %Y}"


def _button(label: str, arguments: str) -> Button:
    return Button(label=label, command=Command(name="usage", arguments=arguments))


def _details(spending: Spending, prices: Prices) -> list[str]:
    if not spending.calls:
        return []
    lines = [f"- {escape(costs(spending, prices))}", f"- {calls(spending)}"]
    anew = misses(spending)
    return [*lines, "- Not in the cache:", *(f"  - {line}" for line in anew)] if anew else lines


def _listed(head: str, rows: Sequence[tuple[str, Spending]], prices: Prices, *, is_wide: bool) -> str:
    if not rows:
        return "No model was asked yet."
    if not is_wide:
        return "\n".join(
            f"- {name}: {_price(spending, prices)}, {spending.usage.sent:,} tokens in, {_read(spending)} from the "
            f"cache, {spending.usage.cache_write:,} written to it, {spending.usage.output:,} out"
            for name, spending in rows
        )
    lines = [f"| {head} | Calls | In | From the cache | Written to it | Out | Cost |", "|---|--:|--:|--:|--:|--:|--:|"]
    lines += [
        f"| {name.replace('|', '/')} | {spending.calls:,} | {spending.usage.sent:,} | {_read(spending)} | "
        f"{spending.usage.cache_write:,} | {spending.usage.output:,} | {_price(spending, prices)} |"
        for name, spending in rows
    ]
    return "\n".join(lines)


def _read(spending: Spending) -> str:
    return f"{spending.usage.cache_read:,} ({100 * spending.cached:.0f} %)"


def _price(spending: Spending, prices: Prices) -> str:
    if spending.cost is None:
        return "no price"
    return prices.amount(spending.cost) + (" and more" if spending.unpriced else "")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
