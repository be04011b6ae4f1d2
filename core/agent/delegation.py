"""A task that the model hands to itself: a session of its own beside the conversation, with tools that only read. What
it answers is the result of a tool, so it is data.

Such a session is over from its first row on: nothing resumes it, also not after a crash, and it is in no list.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from config.settings import Delegation, ModelOptions
from core.agent.prompt import Prompt, request, serves
from core.agent.tool_runner import ToolRunner
from core.agent.turn import last_row, spoken, tool_calls
from core.errors import LimitReached, ModelError, StoreError, ToolError
from core.guard.fence import neutralise
from core.guard.guard import Arguments, tool_of
from core.memory.manager import MemoryManager
from core.ports import Clock, Model
from core.store.sessions import Conversations
from core.text.normalize import language_data, shortened
from core.types import Completion, Message, Payer, Sender, Session, Tool, ToolContext

NAME = "delegate"
AT_ONCE = 3
TITLE_CHARS = 60
_ASKING = Sender(id=NAME, name=NAME, is_nobody=True)
_told = partial(language_data, "prompts", "core.agent")


class _Arguments(Arguments):
    task: str
    context: str = ""
    tools: list[str] | None = None


@dataclass
class Delegate:
    """Works on tasks with `model` and those of `tools` that only read, as `options` has it (a model's name, its limits)
    and within `budget`; `memory` is told of what was done."""

    model: Model
    conversations: Conversations
    prompt: Prompt
    memory: MemoryManager
    tools: Sequence[Tool]
    clock: Clock
    options: ModelOptions
    budget: Delegation

    def __post_init__(self) -> None:
        self._tools = [tool for tool in self.tools if tool.is_reading]
        self._at_work: Counter[int] = Counter()

    def tool(self) -> Tool:
        """It writes a session of its own, so it is none that only reads: a delegated session has it not, nor has what
        is incognito. Its result may quote what is stored."""
        made = tool_of(NAME, _Arguments, self._run, "core.agent", is_quote=True, patience_s=self.budget.patience_s)
        made.schema["properties"]["tools"]["description"] += f": {', '.join(tool.name for tool in self._tools)}."
        return made

    async def _run(self, asked: _Arguments, context: ToolContext) -> str:
        here = context.session.id
        tools = self._chosen(asked.tools, context.session)
        if not asked.task.strip():
            raise ToolError("task: say what is to be done.")
        if self._at_work[here] >= AT_ONCE:
            raise ToolError(f"{AT_ONCE} tasks are being worked on already. Call this again when one of them is done.")
        self._at_work[here] += 1
        try:
            session, text = await self._work(asked, tools, context)
        except LimitReached:
            raise
        except (ModelError, StoreError) as error:
            raise ToolError(f"The task was not finished: {error}") from error
        finally:
            self._at_work[here] -= 1
        return json.dumps({"session_id": session.id, "result": neutralise(text)}, ensure_ascii=False)

    def _chosen(self, names: Sequence[str] | None, session: Session) -> list[Tool]:
        offered = {tool.name: tool for tool in self._tools if serves(tool, session)}
        if unknown := [name for name in names or () if name not in offered]:
            raise ToolError(f"tools: {unknown[0]!r} cannot be used there; it has {', '.join(offered)}.")
        return list(offered.values()) if names is None else [offered[name] for name in dict.fromkeys(names)]

    async def _work(self, asked: _Arguments, tools: Sequence[Tool], context: ToolContext) -> tuple[Session, str]:
        """The session of the task and its result. Raises ModelError, StoreError."""
        here = replace(context, session=await self._opened(asked.task, context), window=(), message_id=None)
        said = "\n\n".join(part.strip() for part in (asked.task, asked.context) if part.strip())
        (task,) = self.prompt.dated([self._row(here, said)], here)
        rows = await self.conversations.append([replace(task, sender=_ASKING)], epoch=here.epoch)
        runner, used = ToolRunner(tools, self.options.tool_timeout_s), 0
        for left in reversed(range(self.budget.max_rounds + 1)):
            is_last = not left or used >= self.budget.max_tokens
            completion = await self._ask([*rows, self._row(here, _told()["budget"])] if is_last else rows, tools, here)
            used += completion.usage.sent + completion.usage.output
            row = spoken(completion, here.session, runner, self.clock.now())
            calls = tool_calls(completion) if completion.stop_reason == "tool_use" else []
            if is_last or not calls:
                break
            # What it calls only reads, so it is stored with what that found.
            rows += await self.conversations.append([row, *await runner.run(calls, here)], epoch=here.epoch)
        (answer,) = await self.conversations.append([last_row(row, completion)], epoch=here.epoch)
        await self.memory.on_delegation(here.session)
        return here.session, answer.text

    async def _opened(self, task: str, context: ToolContext) -> Session:
        now, parent = self.clock.now(), context.session
        session = Session(
            address=parent.address,
            scope=context.scope,
            started_at=now,
            ended_at=now,
            system_prompt=_told()["delegated"],
            model=self.options.chat,
            title=shortened(task, TITLE_CHARS),
            parent_id=parent.id,
            is_delegated=True,
        )
        return await self.conversations.create(session, epoch=context.epoch)

    def _row(self, context: ToolContext, text: str) -> Message:
        now, here = self.clock.now(), context.session.id
        return Message(role="user", text=text, session_id=here, created_at=now, origin="tool")

    async def _ask(self, rows: Sequence[Message], tools: Sequence[Tool], context: ToolContext) -> Completion:
        """Paid for by whoever pays for the conversation."""
        payer = Payer(session_id=context.session.parent_id, scope=context.scope, user_id=context.sender.id)
        asked = request(context.session, rows, tools, self.options, payer, "delegation")
        return await self.model.complete(asked, lambda _: None, lambda _: None)
