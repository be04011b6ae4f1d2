"""/forget erases, after a yes, something with all that was made of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

from core.errors import Refused
from core.markup.markdown import escape
from core.store.erasure import ErasureList
from core.text.normalize import shortened
from core.types import Answer, Command
from gateway import texts
from gateway.commands.registry import CommandContext, announced
from gateway.services import STATE, Services

CONFIRMED = "--confirmed "
"""Stands before the token in what a yes runs; the token is the person's secret."""
LINE_CHARS = 160


class ForgetCommands:
    specs = announced("forget")

    def __init__(self, services: Services) -> None:
        self._forgetting = services.forgetting
        self._zone = services.zone

    async def run(self, command: Command, context: CommandContext) -> Answer:
        request = context.erasure_request
        if command.arguments.startswith(CONFIRMED):
            token = command.arguments.removeprefix(CONFIRMED).strip()
            try:
                text = receipt_text(await self._forgetting.erase(token, request))
            except Refused as refusal:
                text = str(refusal)
            return Answer(text=text, has_erased=True)
        traces = await self._forgetting.look(command.arguments, request)
        if not traces.token:
            mine = " that you said here" if request.is_limited else ""
            nothing = f"I have nothing{mine} with all of these words, so there is nothing to forget."
            return Answer(text=" ".join([nothing, *_left(traces)]))
        confirm = Command(name="forget", arguments=CONFIRMED + traces.token)
        return Answer(text=f"{traces_text(traces, self._zone)}\n\n{texts.CONFIRM_ERASURE}", confirm=confirm)


def traces_text(traces: ErasureList, zone: tzinfo) -> str:
    whose = " of your own words here" if traces.request.is_limited else ""
    found = _things(traces, whose, "repeats" if traces.derived == 1 else "repeat")
    lines = [f"I would forget {found}{':' if traces.shown else '.'}", ""]
    for trace in traces.shown:
        head = texts.table("TRACE_KINDS").get(trace.kind, "")
        if trace.kind == "message":
            who = f"{escape(trace.who)}, " if trace.who else ""
            head = f"{who}{texts.day(trace.at, zone)}: "
        lines.append(f"- {head}{escape(shortened(trace.text, LINE_CHARS))}")
    more = sum(traces.counts.values()) - len(traces.shown)
    if more > 0:
        lines.append(f"- … and {more:,} more")
    if traces.derived:
        lines += ["", texts.DERIVED]
    return "\n".join(lines)


def receipt_text(receipt: ErasureList) -> str:
    said = [f"Forgotten: {_things(receipt, '', 'repeated')}.", *_left(receipt)]
    if not receipt.is_clean:
        said.append(texts.NOT_YET_ERASED)
    if receipt.asked:
        said.append(texts.ASKED.format(services=texts.listed(receipt.asked)))
    said += [f"`{name}` cannot be written, so some of it still stands there." for name in receipt.stuck]
    return " ".join([*said, texts.LEFT_TO_YOU if receipt.is_noted or receipt.is_done else texts.NOT_NOTED])


def _left(receipt: ErasureList) -> Iterator[str]:
    """What was found by looking for it once it was erased; of a list that was erased before, nothing is known."""
    if receipt.left is None:
        return
    left = [texts.counted(many, name) for name, many in receipt.left.items() if name != "name"]
    whose = "limited" if receipt.request.is_limited else "narrowed" if receipt.is_narrowed else "other"
    if left:
        yield texts.table("LEFT")[whose].format(things=texts.listed(left))
    elif receipt.token:
        yield texts.ERASED
    if "name" in receipt.left:
        yield texts.NAMES_STAY
    if receipt.files is not None:
        files = texts.listed([f"`{name}`" for name in receipt.files])
        yield texts.IN_HOME.format(files=files) if files else texts.NOT_IN_HOME
        if receipt.is_clean and STATE in receipt.files:
            yield texts.IN_STATE


def _things(found: ErasureList, whose: str, repeat: str) -> str:
    """``3 messages and 1 reminder, with 2 things that repeat it``."""
    names = {"job": "reminder", "room": "thing"}
    parts = [texts.counted(number, names.get(name, name)) for name, number in found.counts.items()]
    if "room" in found.counts:
        parts[-1] += " of yours in rooms"
    derived = f"{texts.counted(found.derived, 'thing')} that {repeat} it" if found.derived else ""
    return ", with ".join(filter(None, (texts.listed(parts) + whose if parts else "", derived)))
