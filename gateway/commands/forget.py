"""/forget: shows what there is of something, and after a yes erases it with everything that was made of it."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from core.markup.render import escape
from core.privacy.erasure_search import ErasureItem
from core.privacy.forgetting import ErasurePreview, ErasureReceipt, Forgetting
from core.store.erasure import ErasureRequest
from core.types import Answer, Command, CommandSpec, Option
from gateway.commands.context import CommandContext

CONFIRMED = "--confirmed "
"""Stands before the name of the list in what a yes runs; the name is a secret of the person's."""
LINE_CHARS = 160
_FORGET = CommandSpec(
    name="forget",
    description="Erase what was said about something, and all that I made of it",
    options=(Option(name="what", description="as for /recall: words, a phrase in quotes, filters like before:may"),),
    is_private=True,
)
_KINDS = {"fact": "What I knew: ", "note": "Noted: ", "job": "Planned: "}


class ForgetCommands:
    """`zone` is the IANA name for the dates that are shown."""

    specs = (_FORGET,)

    def __init__(self, forgetting: Forgetting, zone: str) -> None:
        self._forgetting = forgetting
        self._zone = ZoneInfo(zone)

    def is_reading(self, command: Command) -> bool:
        """Never: what is asked and what is erased must not change in between."""
        return False

    async def run(self, command: Command, caller: CommandContext) -> Answer:
        """See `gateway.commands.registry`."""
        claim = ErasureRequest(
            account=caller.account,
            scope=caller.scope,
            scopes=caller.scopes,
            address=caller.inbound.address,
            is_owner=caller.is_owner,
        )
        if command.arguments.startswith(CONFIRMED):
            token = command.arguments.removeprefix(CONFIRMED).strip()
            return Answer(text=receipt_text(await self._forgetting.erase(token, claim)))
        traces = await self._forgetting.look(command.arguments, claim)
        if traces is None:
            mine = " that you said here" if claim.is_limited else ""
            return Answer(text=f"I have nothing{mine} with all of these words, so there is nothing to forget.")
        return Answer(
            text=f"{traces_text(traces, self._zone, is_limited=claim.is_limited)}\n\nAnswer **yes** to erase it for "
            "good; anything else leaves it as it is.",
            confirm=Command(name=_FORGET.name, arguments=CONFIRMED + traces.token),
        )


def traces_text(traces: ErasurePreview, zone: ZoneInfo, *, is_limited: bool = False) -> str:
    """What would go, as Markdown."""
    whose = " of your own words here" if is_limited else ""
    things = (
        f"{traces.derived:,} {'thing' if traces.derived == 1 else 'things'} that repeat{'s' * (traces.derived == 1)}"
    )
    what = [_counted(traces.counts) + whose if traces.counts else "", f"{things} it" if traces.derived else ""]
    lines = [f"I would forget {', with '.join(filter(None, what))}:" if traces.first else f"I would forget {what[1]}."]
    lines += ["", *(f"- {_line(trace, zone)}" for trace in traces.first)]
    more = sum(number for _, number in traces.counts) - len(traces.first)
    if more > 0:
        lines.append(f"- … and {more:,} more")
    if traces.derived:
        lines += [
            "",
            "What repeats it are answers, results of tools, commands, titles, prompts, old versions of notes.",
        ]
    if traces.has_more:
        lines += ["", "There is more than goes at once: ask me again after it."]
    return "\n".join(lines)


def receipt_text(receipt: ErasureReceipt) -> str:
    """What went, and what is left to somebody else, as Markdown."""
    things = f"{receipt.derived:,} {'thing' if receipt.derived == 1 else 'things'} that repeated it"
    parts = [_counted(receipt.counts), things if receipt.derived else ""]
    lines = [f"Forgotten: {', with '.join(filter(None, parts))}."]
    if receipt.is_clean:
        lines.append("Nothing of it is left in state.db.")
    else:
        lines.append(
            "No search finds it any more. Its bytes are not all out of state.db yet: another program reads it, or an "
            "index is being mended. They go as soon as that is done."
        )
    lines += receipt.pending
    lines.append(
        "What stands in the chats of your platforms, in backups and in files you exported is yours to delete; a file "
        "that is imported again brings its words back."
    )
    return " ".join(lines)


def _line(trace: ErasureItem, zone: ZoneInfo) -> str:
    text = " ".join(trace.text.split())
    if len(text) > LINE_CHARS:
        text = text[:LINE_CHARS].rsplit(" ", 1)[0] + " …"
    if trace.kind != "message":
        return f"{_KINDS[trace.kind]}{escape(text)}"
    who = f"{escape(trace.who)}, " if trace.who else ""
    return f"{who}{_date(trace.at, zone)}: {escape(text)}"


def _date(at: datetime, zone: ZoneInfo) -> str:
    local = at.astimezone(zone)
    return f"{local.day} {local:%B %Y}"


def _counted(counts: tuple[tuple[str, int], ...]) -> str:
    words = {"job": "reminder"}
    parts = [f"{number:,} {words.get(name, name)}{'' if number == 1 else 's'}" for name, number in counts]
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
