"""/forget: shows what there is of something, and after a yes erases it with everything that was made of it."""

from __future__ import annotations

from datetime import tzinfo
from zoneinfo import ZoneInfo

from core.markup.source import escape
from core.privacy.erasure_search import ErasureItem
from core.privacy.forgetting import ErasurePreview, ErasureReceipt
from core.types import Answer, Command, CommandSpec, Option
from gateway import texts
from gateway.commands.context import CommandContext
from gateway.services import Services

CONFIRMED = "--confirmed "
"""Stands before the name of the list in what a yes runs; the name is a secret of the person's."""
LINE_CHARS = 160


class ForgetCommands:
    """Over the forgetting of `services`."""

    specs = (
        CommandSpec(
            name="forget",
            description="Erase what was said about something, and all that I made of it",
            options=(
                Option(name="what", description="as for /recall: words, a phrase in quotes, filters like before:may"),
            ),
            is_private=True,
        ),
    )

    def __init__(self, services: Services) -> None:
        self._forgetting = services.forgetting
        self._zone = ZoneInfo(services.settings.general.zone)

    def is_reading(self, command: Command) -> bool:
        """Never: what is asked and what is erased must not change in between."""
        return False

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """See `gateway.commands.registry`."""
        request = context.erasure_request
        if command.arguments.startswith(CONFIRMED):
            token = command.arguments.removeprefix(CONFIRMED).strip()
            return Answer(text=receipt_text(await self._forgetting.erase(token, request)))
        traces = await self._forgetting.look(command.arguments, request)
        if traces is None:
            mine = " that you said here" if request.is_limited else ""
            return Answer(text=f"I have nothing{mine} with all of these words, so there is nothing to forget.")
        return Answer(
            text=f"{traces_text(traces, self._zone, is_limited=request.is_limited)}\n\n{texts.CONFIRM_ERASURE}",
            confirm=Command(name="forget", arguments=CONFIRMED + traces.token),
        )


def traces_text(traces: ErasurePreview, zone: tzinfo, *, is_limited: bool = False) -> str:
    """What would go, as Markdown."""
    parts = [texts.forgettable(traces.counts) + " of your own words here" * is_limited] if traces.counts else []
    if traces.derived:
        parts.append(f"{texts.counted(traces.derived, 'thing')} that repeat{'s' * (traces.derived == 1)} it")
    lines = [f"I would forget {', with '.join(parts)}{':' if traces.first else '.'}", ""]
    lines += [f"- {_line(trace, zone)}" for trace in traces.first]
    more = sum(number for _, number in traces.counts) - len(traces.first)
    if more > 0:
        lines.append(f"- … and {more:,} more")
    if traces.derived:
        lines += ["", texts.DERIVED]
    if traces.has_more:
        lines += ["", texts.MORE_TO_FORGET]
    return "\n".join(lines)


def receipt_text(receipt: ErasureReceipt) -> str:
    """What went, and what is left to somebody else, as Markdown."""
    parts = [texts.forgettable(receipt.counts)] if receipt.counts else []
    if receipt.derived:
        parts.append(f"{texts.counted(receipt.derived, 'thing')} that repeated it")
    erased = texts.ERASED if receipt.is_clean else texts.NOT_YET_ERASED
    return " ".join([f"Forgotten: {', with '.join(parts)}.", erased, *receipt.pending, texts.LEFT_TO_YOU])


def _line(trace: ErasureItem, zone: tzinfo) -> str:
    text = escape(texts.shortened(trace.text, LINE_CHARS))
    if trace.kind != "message":
        return f"{texts.TRACE_KINDS[trace.kind]}{text}"
    who = f"{escape(trace.who)}, " if trace.who else ""
    return f"{who}{texts.day(trace.at, zone)}: {text}"
