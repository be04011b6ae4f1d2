"""/usage: what was spent on models, what the cache saved of it, and why a prefix missed, for people to read."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from core.errors import Refused
from core.markup.text import escape
from core.store.usage import CacheMisses
from core.types import Answer, Command, Session
from core.usage.report import Prices, Spending
from gateway import texts
from gateway.commands.context import CommandContext, announced, button
from gateway.services import Services

SESSIONS = 10
TITLE_CHARS = 40
COLUMNS = ("Calls", "In", "From the cache", "Written to it", "Out", "Cost")


class UsageCommands:
    specs = announced("usage")

    def __init__(self, services: Services) -> None:
        self._report = services.usage_report
        self._conversations = services.conversations
        self._zone = ZoneInfo(services.settings.general.zone)

    async def run(self, command: Command, context: CommandContext) -> Answer:
        match command.arguments.lower().split():
            case []:
                return await self._overview(context)
            case ["months"]:
                found = await self._report.months(context.scopes)
                rows = [(f"{day:%B %Y}", spending) for day, spending in found]
                return Answer(text=self._table("Month", rows, is_wide=context.is_wide))
            case ["sessions", *limit] if all(word.isdecimal() and len(word) < 5 for word in limit):
                sessions = await self._report.sessions(context.scopes, int(limit[0]) if limit else SESSIONS)
                rows = [(self._name(session), spending) for session, spending in sessions]
                buttons = tuple(button(str(session.id), "usage", str(session.id)) for session, _ in sessions)
                return Answer(text=self._table("Conversation", rows, is_wide=context.is_wide), buttons=buttons)
            case [number] if number.isdecimal() and len(number) < 19:
                if await self._conversations.find(int(number), context.scopes) is None:
                    raise Refused(f"There is no conversation {int(number)} here. `/usage sessions` lists the latest.")
                spending = await self._report.session(int(number), context.scopes)
                return Answer(text=self._details(f"Conversation {int(number)}", spending))
        raise Refused(texts.USAGE_USAGE)

    async def _overview(self, context: CommandContext) -> Answer:
        lately = await self._report.lately(context.scopes)
        parts = [self._details("The last 30 days", lately)]
        if context.session.is_incognito:
            parts.insert(0, "**This conversation** is incognito: its calls are in the sum below, and under no name.")
        elif not context.is_shell:
            here = await self._report.session(context.session.id, context.scopes)
            parts.insert(0, self._details("This conversation", here))
        buttons = (button("By month", "usage", "months"), button("By conversation", "usage", "sessions"))
        return Answer(text="\n\n".join(parts), buttons=buttons if lately.calls else ())

    def _details(self, name: str, spending: Spending) -> str:
        lines = [f"**{name}**: {_tokens(spending)}"]
        if spending.calls:
            purposes = ", ".join(f"{count:,} {texts.CALL_KINDS[kind]}" for kind, count in spending.kinds)
            lines.append(f"- {escape(_costs(spending, self._report.prices))}")
            lines.append(f"- {texts.counted(spending.calls, 'call')}: {purposes}.")
            for one in spending.bills if len(spending.bills) > 1 else ():
                *_, price = _figures(self._report.prices.spending([one]), self._report.prices)
                lines.append(f"  - {escape(one.model)}, {texts.CALL_KINDS[one.kind]}: {price}")
        if spending.calls and spending.misses:
            lines += ["- Not in the cache:", *(f"  - {_miss(miss)}" for miss in spending.misses)]
        return "\n".join(lines)

    def _name(self, session: Session) -> str:
        at = (session.last_at or session.started_at).astimezone(self._zone)
        title = " ".join((session.title or "").split())
        short = title if len(title) <= TITLE_CHARS else title[: TITLE_CHARS - 1].rstrip() + "…"
        return f"{session.id}{texts.titled(short)}, {at.day} {at:%b %Y}"

    def _table(self, head: str, rows: Sequence[tuple[str, Spending]], *, is_wide: bool) -> str:
        prices = self._report.prices
        if not rows:
            return texts.NO_MODEL_ASKED
        if is_wide:
            lines = [f"| {head} | {' | '.join(COLUMNS)} |", "|---" + "|--:" * len(COLUMNS) + "|"]
            cells = [(name.replace("|", "/"), *_figures(spending, prices)) for name, spending in rows]
            return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in cells)])
        return "\n".join(
            f"- {name}: {price}, {sent} tokens in, {read} from the cache, {written} written to it, {output} out"
            for name, spending in rows
            for _, sent, read, written, output, price in [_figures(spending, prices)]
        )


def _figures(spending: Spending, prices: Prices) -> tuple[str, ...]:
    usage = spending.usage
    price = "no price" if spending.cost is None else prices.amount(spending.cost)
    return (
        f"{spending.calls:,}",
        f"{usage.sent:,}",
        f"{usage.cache_read:,} ({100 * spending.cached:.0f} %)",
        f"{usage.cache_write:,}",
        f"{usage.output:,}",
        price + (" and more" if spending.unpriced and spending.cost is not None else ""),
    )


def _tokens(spending: Spending) -> str:
    usage = spending.usage
    if not spending.calls:
        return "no model was asked."
    read = f"{usage.cache_read:,} of them read from the cache ({100 * spending.cached:.0f} %)"
    hour = f" ({usage.cache_write_hour:,} for an hour)" if usage.cache_write_hour else ""
    written = f", {usage.cache_write:,} written to it{hour}" if usage.cache_write else ""
    return f"{usage.sent:,} tokens in{f', {read}{written}' if usage.sent else ''}; {usage.output:,} tokens out."


def _costs(spending: Spending, prices: Prices) -> str:
    unpriced = ", ".join(spending.unpriced)
    if spending.cost is None or spending.plain_cost is None:
        return f"I cannot say what it cost: usage.prices in mneme.toml has no price for {unpriced}."
    text = f"It cost {prices.amount(spending.cost)}"
    if spending.usage.cache_read:
        text += f"; without the cache it would have been {prices.amount(spending.plain_cost)}"
    return f"{text}." + (f" Besides, usage.prices in mneme.toml has no price for {unpriced}." if unpriced else "")


def _miss(miss: CacheMisses) -> str:
    return f"{miss.tokens:,} tokens in {texts.counted(miss.times, 'request')} {texts.MISS_CAUSES[miss.cause]}"
