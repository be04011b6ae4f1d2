"""Lets the model delegate a task to a separate session, with the tool `delegate`.

In that session, the same model works on the task with read-only tools. The model's answer is
returned as the result of the tool call, so the answer is data and never an instruction. The session
is stored as ended from the start. It isn't listed anywhere, and it's never resumed, not even after
a crash.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from config.model_options import ModelOptions
from config.settings import DelegationOptions
from core.agent.prompt import PromptWriter, build_request, is_tool_available
from core.agent.tool_runner import ToolRunner
from core.agent.turn import build_assistant_row, build_last_row, extract_tool_calls
from core.errors import LimitReached, ModelError, StoreError, ToolError, TurnBudgetSpent
from core.guard.origin_and_fence import neutralise
from core.guard.tool_definitions import ToolArguments, build_tool
from core.memory.manager import MemoryManager
from core.models.wrappers import take_call
from core.ports import Clock, Model
from core.store.sessions import Conversations
from core.text.normalize import language_data, shorten
from core.types import (
    BillingScope,
    Completion,
    Effect,
    Json,
    Message,
    Sender,
    Session,
    SessionEnd,
    SessionPrompt,
    Tool,
    ToolContext,
    TurnBudget,
)

TOOL_NAME = "delegate"
MAX_CONCURRENT_TASKS = 3
TITLE_CHARS = 60
# The sender of the task in the delegated session.
_SENDER = Sender(id=TOOL_NAME, name=TOOL_NAME, is_anonymous=True)
_prompt_texts = partial(language_data, "prompts", "core.agent")


class _Arguments(ToolArguments):
    task: str
    context: str = ""
    tools: list[str] | None = None


@dataclass
class _LastCall:
    """A model call that is reserved so that a task can still answer when the budget is used up."""

    budget: TurnBudget | None
    is_used: bool = False

    def release(self) -> None:
        """Return the reserved call to the budget unless the task has made it."""
        if self.budget is not None and not self.is_used:
            self.budget.calls -= 1


def _reserve_last_call(budget: TurnBudget | None) -> _LastCall:
    """Reserve a model call.

    Raises TurnBudgetSpent if the turn has fewer than two calls left.
    """
    if budget is not None:
        if not budget.has_calls_left(2):
            raise TurnBudgetSpent(budget.calls, budget.tokens)
        take_call(budget)
    return _LastCall(budget)


@dataclass
class Delegator:
    """Runs delegated tasks, and builds the tool that starts them."""

    model: Model
    conversations: Conversations
    prompt: PromptWriter
    # The hook `on_delegation` is called after each finished task.
    memory: MemoryManager
    # All tools. A task may use only the read-only tools.
    tools: Sequence[Tool]
    clock: Clock
    options: ModelOptions
    # The maximum rounds and tokens of a task, and its timeout.
    budget: DelegationOptions

    def __post_init__(self) -> None:
        self._tools = [tool for tool in self.tools if tool.is_read_only]
        # The number of running tasks, by the id of the session that delegated them.
        self._running_tasks: Counter[int] = Counter()

    def tool(self) -> Tool:
        """Build the tool that delegates a task.

        The tool isn't read-only, because it creates a session. So delegated and incognito sessions
        don't have it. The tool's result counts as a quote, because it may repeat stored text.
        """
        tool = build_tool(
            TOOL_NAME,
            _Arguments,
            self._delegate,
            "core.agent",
            Effect.SPEND,
            is_quote=True,
            timeout_s=self.budget.patience_s,
            counts_own_calls=True,
        )
        names = ", ".join(tool.name for tool in self._tools)
        tool.schema["properties"]["tools"]["description"] += f": {names}."
        return tool

    async def _delegate(self, arguments: _Arguments, context: ToolContext) -> str:
        """Run a task, and return the id of its session and its result as JSON.

        Raises ToolError if the arguments are invalid, too many tasks are running, or the task
        fails. Raises LimitReached if the person has used up a daily limit, and TurnBudgetSpent if
        the tools of the turn have used up its budget.
        """
        session_id = context.session.id
        if context.epoch is not None:
            # The task's own writes must not mark the call as carried out.
            context = replace(context, epoch=replace(context.epoch, call=None))
        tools = self._select_tools(arguments.tools, context.session)
        if not arguments.task.strip():
            raise ToolError("task: describe what to do.")
        if self._running_tasks[session_id] >= MAX_CONCURRENT_TASKS:
            raise ToolError(
                f"{MAX_CONCURRENT_TASKS} tasks are already running. "
                "Call this again when one of them is done."
            )
        last_call = _reserve_last_call(context.budget)
        self._running_tasks[session_id] += 1
        try:
            session, text = await self._run_task(arguments, tools, context, last_call)
        except (LimitReached, TurnBudgetSpent):
            raise
        except (ModelError, StoreError) as error:
            raise ToolError(f"The task wasn't finished: {error}") from error
        finally:
            self._running_tasks[session_id] -= 1
            last_call.release()
        result: dict[str, object] = {"session_id": session.id, "result": neutralise(text)}
        if last_call.is_used and context.budget is not None:
            result["note"] = str(TurnBudgetSpent(context.budget.calls, context.budget.tokens))
        return json.dumps(result, ensure_ascii=False)

    def _select_tools(self, names: Sequence[str] | None, session: Session) -> list[Tool]:
        """Return the tools with these names, or all tools that a task may use if `names` is None.

        Raises ToolError if a task may not use a tool with one of the names.
        """
        tools = {tool.name: tool for tool in self._tools if is_tool_available(tool, session)}
        if names is None:
            return list(tools.values())
        for name in names:
            if name not in tools:
                raise ToolError(f"tools: a task can't use {name!r}, only {', '.join(tools)}.")
        return [tools[name] for name in dict.fromkeys(names)]

    async def _run_task(
        self,
        arguments: _Arguments,
        tools: Sequence[Tool],
        context: ToolContext,
        last_call: _LastCall,
    ) -> tuple[Session, str]:
        """Run a task, and return its session and the text of its answer.

        The model is asked until it answers without calling a tool. When the budget of the task or
        of the turn is used up, a last request tells the model to answer now. Raises ModelError if
        the model doesn't answer, and StoreError if the store fails.
        """
        session = await self._open_session(arguments.task, context)
        task_context = replace(context, session=session, window=(), message_id=None)
        rows = await self._store_task(arguments, task_context)
        runner = ToolRunner(tools, self.options.tool_timeout_s)
        tokens_used = 0
        for round_number in range(self.budget.max_rounds + 1):
            is_last = (
                round_number == self.budget.max_rounds or tokens_used >= self.budget.max_tokens
            )
            try:
                completion = await self._ask(rows, tools, task_context, is_last=is_last)
            except TurnBudgetSpent:
                if round_number == 0:
                    raise
                is_last = last_call.is_used = True
                completion = await self._ask_for_last_answer(rows, tools, task_context)
            tokens_used += completion.usage.total_input + completion.usage.output
            row = build_assistant_row(completion, session, runner, self.clock.now())
            calls: list[Json] = []
            if completion.stop_reason == "tool_use":
                calls = extract_tool_calls(completion)
            if is_last or not calls:
                break
            # All tools are read-only, so the calls are stored together with their results.
            results = await runner.run(calls, task_context)
            rows += await self.conversations.append([row, *results], epoch=context.epoch)
        (answer,) = await self.conversations.append(
            [build_last_row(row, completion)], epoch=context.epoch
        )
        await self.memory.on_delegation(session)
        return session, answer.text

    async def _store_task(self, arguments: _Arguments, context: ToolContext) -> list[Message]:
        """Store the task and its context as the first message of the session. Returns the row."""
        paragraphs = (arguments.task.strip(), arguments.context.strip())
        text = "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
        (row,) = self.prompt.render_sent_form_without_memory(
            [self._user_row(context, text)], context
        )
        return await self.conversations.append([replace(row, sender=_SENDER)], epoch=context.epoch)

    async def _open_session(self, task: str, context: ToolContext) -> Session:
        """Create the session of a task.

        The session is stored as ended, so it never becomes the open session of an address.
        """
        now = self.clock.now()
        session = Session(
            address=context.session.address,
            scope=context.scope,
            started_at=now,
            end=SessionEnd(at=now),
            prompt=SessionPrompt(text=_prompt_texts()["delegated"]),
            model=self.options.chat,
            title=shorten(task, TITLE_CHARS),
            parent_id=context.session.id,
            is_delegated=True,
        )
        return await self.conversations.create(session, epoch=context.epoch)

    def _user_row(self, context: ToolContext, text: str) -> Message:
        return Message(
            role="user",
            text=text,
            session_id=context.session.id,
            created_at=self.clock.now(),
            origin="tool",
        )

    async def _ask(
        self,
        rows: Sequence[Message],
        tools: Sequence[Tool],
        context: ToolContext,
        *,
        is_last: bool,
    ) -> Completion:
        """Ask the model once, and charge the cost to the session that delegated the task.

        Raises TurnBudgetSpent if the budget of the turn has no call left.
        """
        if is_last:
            rows = [*rows, self._user_row(context, _prompt_texts()["budget"])]
        billing = BillingScope(
            session_id=context.session.parent_id,
            scope=context.scope,
            user_id=context.sender.id,
            budget=context.budget,
        )
        request = build_request(
            context.session, rows, tools, self.options, billing, kind="delegation"
        )
        return await self.model.complete(request, lambda _: None, lambda _: None)

    async def _ask_for_last_answer(
        self, rows: Sequence[Message], tools: Sequence[Tool], context: ToolContext
    ) -> Completion:
        """Use the reserved call to ask the model for the results so far."""
        completion = await self._ask(rows, tools, replace(context, budget=None), is_last=True)
        if context.budget is not None:
            context.budget.tokens += completion.usage.total_input + completion.usage.output
        return completion
