"""Runs the tools that a model calls, concurrently and with timeouts.

Every call gets a result. If a call fails, the result describes the failure.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import structlog

from core.agent.prompt import is_tool_available
from core.errors import Refused, Sentence, StoreError, ToolError, UncertainCallError
from core.models.failures import WordSentence
from core.models.wrappers import take_call
from core.review.effects import find_effect_fault, list_effects
from core.review.pending import is_waiting_result
from core.store.ownership.people import TERMINAL
from core.store.tool_calls import CallOutcome
from core.types import (
    Account,
    Address,
    Effect,
    Json,
    Message,
    Session,
    Tool,
    ToolCallKey,
    ToolContext,
    TurnBudget,
)

if TYPE_CHECKING:
    from core.review.gate import Gate

# A longer result is cut, so that it doesn't fill the model's context window.
MAX_RESULT_CHARS = 30_000
# Replaces a result that may not be stored, because data was erased while the tool was running.
STRIPPED_RESULT = (
    "The tool has run, but its result was not stored, because data was erased meanwhile. "
    "Do not call it again for the same purpose."
)

# Further calls wait. The timeout of a call begins when the call starts to run. Otherwise, many
# calls at once could all time out on a slow machine.
MAX_CONCURRENT_CALLS = 8

# If a tool takes longer than this, its name is shown below the answer so far.
SLOW_TOOLS_S = 1.0

# The results of calls that a restart interrupted.
NOT_DONE = (
    "This was not done, because the assistant restarted first. "
    "Call the tool again if it is still wanted."
)
ALREADY_DONE = (
    "This was done before the assistant restarted, but the result was lost. "
    "Do not call the tool again."
)
STILL_WAITING = (
    "This isn't done yet. Before the assistant restarted, it was stored to wait for a yes, but the "
    "result was lost. Do not call the tool again; don't say that it's done."
)
# Used only for calls that an earlier version recorded.
DONE_OR_WAITING = (
    "Before the assistant restarted, this was done or was stored to wait for a yes, but the result "
    "was lost. Do not call the tool again; look up which it was before you tell the person."
)
_RESULTS_BY_OUTCOME = {
    CallOutcome.DONE: ALREADY_DONE,
    CallOutcome.WAITING: STILL_WAITING,
    CallOutcome.DONE_OR_WAITING: DONE_OR_WAITING,
}
_SCHEDULABLE_EFFECTS = frozenset({Effect.READ, Effect.SPEND})
UNKNOWN_OUTCOME = (
    "The assistant restarted during this call, so it may or may not have been done. "
    "Check that before you call the tool again."
)

# The sentence after the reason in the result of a call that was stopped or failed.
STOPPED_NOT_DONE = "This was not done."
STOPPED_DONE = "It was done, but its result was lost. Do not call the tool again."
STOPPED_WAITING = (
    "It isn't done yet: it was stored to wait for a yes, but its result was lost. "
    "Do not call the tool again; don't say that it's done."
)
STOPPED_UNKNOWN = (
    "It may or may not have been done. Check that before you call the tool again, "
    "and tell the person so if you can't check it."
)
RETRY = "Call the tool again if it is still wanted."
GIVE_UP = "Tell the person, or try another way."
_STOPPED_BY_OUTCOME = {
    CallOutcome.DONE: STOPPED_DONE,
    CallOutcome.WAITING: STOPPED_WAITING,
    CallOutcome.DONE_OR_WAITING: STOPPED_UNKNOWN,
}


SwitchCheck = Callable[[str, Json, Account], Awaitable[None]]
"""Raises ToolError if the account has switched off the tool of this name for these arguments."""

LoadOutcome = Callable[[ToolCallKey], Awaitable[CallOutcome | None]]
"""Returns the outcome that a stopped call has stored, after all its writes have ended. Raises
StoreError."""


class ToolRunner:
    """Runs the tool calls of a model.

    A call may take `timeout_s` seconds, or longer if the tool's own timeout is longer.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        timeout_s: float,
        gate: Gate | None = None,
        on_start: Callable[[Address, Sequence[str]], None] | None = None,
        check_switch: SwitchCheck | None = None,
        word: WordSentence | None = None,
        load_outcome: LoadOutcome | None = None,
    ) -> None:
        self.tools = {tool.name: tool for tool in tools}
        if len(self.tools) != len(tools):
            raise ValueError("two tools have the same name")
        for tool in tools:
            if fault := find_effect_fault(tool):
                raise ValueError(f"the tool {tool.name} can't be registered: {fault}")
        self._timeout_s = timeout_s
        # Decides which calls wait for approval. Without a gate, all tools must be read-only.
        self._gate = gate
        # Called with the address and the names of the tools whenever a round of calls starts.
        self._on_start = on_start
        self._check_switch = check_switch
        # Returns the sentence about running tools. None if the sentence isn't shown.
        self._word = word
        # Looks up whether a call that was stopped has been carried out.
        self._load_outcome = load_outcome
        self._log = structlog.get_logger("tools")

    def with_tools(self, names: Collection[str]) -> ToolRunner:
        """Return a runner that has only the tools with these names."""
        tools = [tool for tool in self.tools.values() if tool.name in names]
        return ToolRunner(
            tools,
            self._timeout_s,
            self._gate,
            self._on_start,
            self._check_switch,
            self._word,
            self._load_outcome,
        )

    def render_searchable_calls(self, calls: Sequence[Json]) -> str | None:
        """Return the names and arguments of tool calls as text for the search index.

        Tools that quote stored text are left out, because otherwise recall would find its own
        queries. Returns None if no other calls are left.
        """
        lines: list[str] = []
        for call in calls:
            tool = self.tools.get(call["name"])
            if tool is None or not tool.is_quote:
                arguments = json.dumps(call.get("input", {}), ensure_ascii=False)
                lines.append(f"{call['name']} {arguments}")
        return "\n".join(lines) or None

    def is_read_only(self, calls: Sequence[Json]) -> bool:
        """Return whether all calls are of read-only tools, so they may run again after a crash."""
        tools = [self.tools.get(call["name"]) for call in calls]
        return all(tool is not None and tool.is_read_only for tool in tools)

    async def run(self, calls: Sequence[Json], context: ToolContext) -> list[Message]:
        """Run ``tool_use`` blocks, and return a row with the role "tool" for each, in order."""
        names = list(dict.fromkeys(str(call["name"]) for call in calls))
        if self._on_start is not None:
            self._on_start(context.session.address, names)
        slots = asyncio.Semaphore(MAX_CONCURRENT_CALLS)

        async def run_call(call: Json) -> Message:
            async with slots:
                return await self._run_call(call, context)

        loop = asyncio.get_running_loop()
        timer = loop.call_later(SLOW_TOOLS_S, self._show_status, names, context)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(run_call(call)) for call in calls]
        finally:
            timer.cancel()
        return [task.result() for task in tasks]

    def _show_status(self, names: Sequence[str], context: ToolContext) -> None:
        """Show which tools are running.

        The terminal isn't informed, because it has its own status line.
        """
        is_terminal = context.session.address.platform == TERMINAL.platform
        if self._word is None or context.show_status is None or is_terminal:
            return
        sentence = Sentence("tools_at_work", {"tools": ", ".join(f"`{name}`" for name in names)})
        context.show_status(self._word(context.language, sentence))

    def build_missing_results(
        self,
        calls: Sequence[Json],
        outcomes: Mapping[str, CallOutcome],
        session: Session,
        now: datetime,
    ) -> list[Message]:
        """Build result rows for calls that a restart interrupted.

        Each row says whether its call was carried out. `outcomes` has the calls that were carried
        out or are waiting for approval, by id. For a call to an external service, the outcome is
        unknown.
        """
        rows = []
        for call in calls:
            tool = self.tools.get(call["name"])
            outcome = outcomes.get(call["id"])
            if outcome is not None:
                result = _RESULTS_BY_OUTCOME[outcome]
            elif tool is not None and tool.is_external and not tool.is_read_only:
                result = UNKNOWN_OUTCOME
            else:
                result = NOT_DONE
            is_error = outcome is None
            rows.append(self._build_row(call, result, session, now, is_error=is_error))
        return rows

    def strip_results(self, rows: Sequence[Message]) -> list[Message]:
        """Return the rows of `run` with `STRIPPED_RESULT` in place of each result.

        Use this when the results may not be stored. The rows tell the model not to repeat the
        calls. Failed calls and calls of read-only tools are left out, because they may be repeated.
        """
        stripped_rows: list[Message] = []
        for row in rows:
            (block,) = row.blocks or ({},)
            tool = self.tools.get(row.tool_name or "")
            if tool is None or tool.is_read_only or block.get("is_error"):
                continue
            blocks = ({**block, "content": STRIPPED_RESULT},)
            stripped_rows.append(replace(row, text=STRIPPED_RESULT, blocks=blocks, kind="quote"))
        return stripped_rows

    async def _run_call(self, call: Json, context: ToolContext) -> Message:
        """Run one call, and return its result as a row. A failure becomes an error result."""
        tool = self.tools.get(call["name"])
        is_error = True
        try:
            result = await self._call_tool(tool, call, context)
            is_error = False
        except UncertainCallError as error:
            result, is_error = await self._explain_outcome(call, context, str(error), RETRY)
        except (Refused, ToolError) as error:
            result = str(error)
        except Exception as error:
            self._log.exception("a tool failed", tool=call["name"])
            reason = f"{call['name']} failed ({type(error).__name__})."
            result, is_error = await self._explain_outcome(call, context, reason, GIVE_UP)

        result = result.encode("utf-8", "replace").decode("utf-8")
        if len(result) > MAX_RESULT_CHARS:
            missing_chars = len(result) - MAX_RESULT_CHARS
            result = f"{result[:MAX_RESULT_CHARS]}\n[cut: {missing_chars:,} more characters]"
        return self._build_row(call, result, context.session, context.now, is_error=is_error)

    async def _explain_outcome(
        self, call: Json, context: ToolContext, reason: str, advice: str
    ) -> tuple[str, bool]:
        """Return the result of a call that was stopped or failed unexpectedly.

        Also returns whether the result is an error. The result consists of `reason`, a sentence
        about whether the call was carried out, and `advice` if it wasn't.
        """
        tool = self.tools[call["name"]]
        if not may_change(tool, call):
            return f"{reason} {advice}", True
        try:
            outcome = await self._find_outcome(ToolCallKey(context.session.id, call["id"]))
        except StoreError as error:
            self._log.warning("the outcome of a call is unknown", tool=tool.name, error=str(error))
            return f"{reason} {STOPPED_UNKNOWN}", True
        if outcome is not None:
            return f"{reason} {_STOPPED_BY_OUTCOME[outcome]}", False
        if tool.is_external:
            # The store doesn't know what an external service has done.
            return f"{reason} {STOPPED_UNKNOWN}", True
        return f"{reason} {STOPPED_NOT_DONE} {advice}", True

    async def _find_outcome(self, key: ToolCallKey) -> CallOutcome | None:
        """Return the stored outcome of a call. Raises StoreError if it can't be read.

        Returns None if the call was never stored.
        """
        if self._load_outcome is None:
            raise StoreError("this tool runner has no store")
        return await self._load_outcome(key)

    def _build_row(
        self, call: Json, result: str, session: Session, now: datetime, *, is_error: bool
    ) -> Message:
        """Build the row of a call's result."""
        tool = self.tools.get(call["name"])
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call["id"]}
        if result.strip():
            block["content"] = result
        if is_error:
            block["is_error"] = True
        return Message(
            role="tool",
            text=result,
            blocks=(block,),
            session_id=session.id,
            created_at=now,
            kind="quote" if tool is not None and tool.is_quote else "chat",
            tool_name=call["name"],
        )

    async def _call_tool(self, tool: Tool | None, call: Json, context: ToolContext) -> str:
        """Call a tool, and return its text.

        Raises ToolError if the tool doesn't exist, if the session may not use it, or if it takes
        too long. Other errors of the tool are raised unchanged.
        """
        if tool is None:
            names = [
                name
                for name, other in self.tools.items()
                if is_tool_available(other, context.session)
            ]
            raise ToolError(f"There is no tool {call['name']}. The tools are {', '.join(names)}.")
        _check_session(tool, context.session)
        arguments = call.get("input") or {}
        if not isinstance(arguments, dict):
            raise ToolError("The arguments of a tool must be a JSON object.")
        await self._check_switched(tool, arguments, context)
        context = _mark_writes(context, call)
        if context.budget is not None and not tool.counts_own_calls:
            _charge_call(tool, arguments, context.budget)
        if self._gate is not None and not tool.is_read_only:
            context = await self._gate.check(tool, arguments, context, self.tools)
            if tool.is_external and not context.session.is_remembered:
                _check_scheduled(tool, arguments, context)
            if context.hold_reason and not tool.can_hold:
                return await self._gate.hold(tool, arguments, context)
        return await self._run_tool(tool, arguments, context)

    async def repeats_foreign_text(
        self, answer: str, rows: Sequence[Message], context: ToolContext
    ) -> bool:
        """Return whether the question at the end of an answer repeats text that wasn't typed.

        See `TranscriptReader.repeats_foreign_text`. Without a gate, no "yes" is needed.
        """
        if self._gate is None:
            return True
        return await self._gate.transcripts.repeats_foreign_text(answer, rows, context)

    async def _check_switched(self, tool: Tool, arguments: Json, context: ToolContext) -> None:
        """Raise ToolError if the person has switched off a tool of an external service."""
        if tool.is_external and self._check_switch is not None:
            await self._check_switch(tool.name, arguments, context.asker)

    async def run_approved(self, name: str, arguments: Json, context: ToolContext) -> str:
        """Run a call that the person has approved, and return its text.

        Raises ToolError if the tool no longer exists, fails or takes too long.
        """
        tool = self.tools.get(name)
        if tool is None or not is_tool_available(tool, context.session):
            raise ToolError("tool_gone", name=name)
        return await self._run_tool(tool, arguments, context)

    async def _run_tool(self, tool: Tool, arguments: Json, context: ToolContext) -> str:
        """Run a tool, and return its text. Raises ToolError if it takes too long.

        An external tool may claim in its result that the call is waiting for approval. Such a claim
        is changed, because it would suppress the receipt of the call.
        """
        timeout_s = max(self._timeout_s, tool.timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                result = await tool.run(arguments, context)
            if tool.is_external and is_waiting_result(result):
                return f"{tool.name}: {result}"
            return result
        except TimeoutError as error:
            raise UncertainCallError(
                "tool_too_slow", name=tool.name, seconds=f"{timeout_s:g}"
            ) from error


def may_change(tool: Tool, call: Json) -> bool:
    """Return whether a call may change something, here or elsewhere."""
    if tool.is_read_only or tool.is_lookup:
        return False
    try:
        return bool(list_effects(tool, call.get("input") or {}) - _SCHEDULABLE_EFFECTS)
    except ToolError:
        return True


def _check_session(tool: Tool, session: Session) -> None:
    """Raise ToolError if a session may not use a tool."""
    if tool.is_external and not is_tool_available(tool, session):
        raise ToolError(
            f"{tool.name} calls an external service, which this conversation may not do. "
            "Continue without it."
        )
    if session.is_incognito and not tool.is_read_only:
        raise ToolError(
            f"This conversation is incognito, so {tool.name} does nothing here. Tell the person."
        )


def _charge_call(tool: Tool, arguments: Json, budget: TurnBudget) -> None:
    """Count a call of a tool that costs money or queries an outside service.

    Raises TurnBudgetSpent if the turn has no call left.
    """
    is_spending = Effect.SPEND in tool.effects.values()
    if tool.is_lookup or (is_spending and Effect.SPEND in list_effects(tool, arguments)):
        take_call(budget)


def _check_scheduled(tool: Tool, arguments: Json, context: ToolContext) -> None:
    """Raise ToolError if a scheduled session may not make a call to an outside service.

    Scheduled sessions may only read, and look up data that the approval gate allows.
    """
    if not tool.is_lookup and list_effects(tool, arguments) - _SCHEDULABLE_EFFECTS:
        raise ToolError(
            "A scheduled question only reads and looks things up. "
            "Tell the person to ask for this in their chat."
        )
    if context.hold_reason:
        raise ToolError(
            f"This needs the approval of the person, because {context.hold_reason}. Nobody is here "
            "to approve it. Use only words and addresses of the question, or addresses that a "
            "search has returned."
        )


def _mark_writes(context: ToolContext, call: Json) -> ToolContext:
    """Return a context whose writes record that the call was carried out."""
    if context.epoch is None:
        return context
    key = ToolCallKey(context.session.id, call["id"])
    return replace(context, epoch=replace(context.epoch, call=key))
