"""Runs the tools a model asks for, side by side, each with a time limit; every call gets a result, whatever happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

import structlog

from core.agent.prompt import serves
from core.errors import Refused, ToolError
from core.types import Json, Message, Tool, ToolContext

RESULT_CHARS = 30_000  # one tool must not fill the model's window
RAN = "It was done. What it gave is not kept, since something was forgotten meanwhile. Do not do the same again."


class ToolRunner:
    """All tools; `timeout_s` is the limit of a call, unless its tool asks for more."""

    def __init__(self, tools: Sequence[Tool], timeout_s: float) -> None:
        self.tools = {tool.name: tool for tool in tools}
        if len(self.tools) != len(tools):
            raise ValueError("two tools have the same name")
        self._timeout_s = timeout_s
        self._log = structlog.get_logger("tools")

    def shadow(self, calls: Sequence[Json]) -> str | None:
        """Names and arguments of calls in searchable form, without tools that only quote what is stored."""
        lines = [
            f"{call['name']} {json.dumps(call.get('input', {}), ensure_ascii=False)}"
            for call in calls
            if (tool := self.tools.get(call["name"])) is None or not tool.is_quote
        ]
        return "\n".join(lines) or None

    def is_reading(self, calls: Sequence[Json]) -> bool:
        """Whether all of these calls only read, so that they may be repeated."""
        tools = [self.tools.get(call["name"]) for call in calls]
        return all(tool is not None and tool.is_reading for tool in tools)

    async def run(self, calls: Sequence[Json], context: ToolContext) -> list[Message]:
        """One row of role tool for each tool_use block, in order."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._call(call, context)) for call in calls]
        return [task.result() for task in tasks]

    def bare(self, rows: Sequence[Message]) -> list[Message]:
        """Rows of `run` whose results may not be kept: only that the tools ran, where they did more than read."""
        bare: list[Message] = []
        for row in rows:
            (block,) = row.blocks or ({},)
            tool = self.tools.get(row.tool_name or "")
            if tool is not None and not tool.is_reading and not block.get("is_error"):
                bare.append(replace(row, text=RAN, blocks=({**block, "content": RAN},), kind="quote"))
        return bare

    async def _call(self, call: Json, context: ToolContext) -> Message:
        tool, is_error = self.tools.get(call["name"]), True
        try:
            result = await self._result(tool, call, context)
            is_error = False
        except (Refused, ToolError) as error:
            result = str(error)
        except Exception as error:
            self._log.exception("a tool failed", tool=call["name"])
            result = f"{call['name']} failed ({type(error).__name__}). Tell the person, or try another way."
        result = result.encode("utf-8", "replace").decode("utf-8")
        if len(result) > RESULT_CHARS:
            result = result[:RESULT_CHARS] + f"\n[cut: {len(result) - RESULT_CHARS:,} more characters]"
        block = {"type": "tool_result", "tool_use_id": call["id"]}
        block |= {"content": result} if result.strip() else {}
        block |= {"is_error": True} if is_error else {}
        return Message(
            role="tool",
            text=result,
            blocks=(block,),
            session_id=context.session.id,
            created_at=context.now,
            kind="quote" if tool is not None and tool.is_quote else "chat",
            tool_name=call["name"],
        )

    async def _result(self, tool: Tool | None, call: Json, context: ToolContext) -> str:
        """What a tool says. Raises ToolError for one that may not be called here or takes too long, and what it
        raises."""
        if tool is None:
            known = [name for name, one in self.tools.items() if serves(one, context.session)]
            raise ToolError(f"There is no tool {call['name']}; there are {', '.join(known)}.")
        if not context.session.is_remembered and tool.is_outside:
            raise ToolError(f"{tool.name} asks a service outside, which is not done here. Go on without it.")
        if context.session.is_incognito and not tool.is_reading:
            raise ToolError(f"This conversation is incognito, so {tool.name} does nothing here. Tell the person.")
        limit_s = max(self._timeout_s, tool.patience_s)
        try:
            async with asyncio.timeout(limit_s):
                return await tool.run(call.get("input") or {}, context)
        except TimeoutError as error:
            raise ToolError(f"{tool.name} took longer than {limit_s:g} s and was stopped.") from error
