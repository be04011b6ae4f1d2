"""The tool `memory`: the model keeps, changes and drops durable notes. One face of `Notebook`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from core.errors import Refused, ToolError
from core.memory.notebook import Notebook
from core.records import Author
from core.tools.arguments import parsed
from core.types import Account, Json, Tool, ToolContext


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    target: Literal["memory", "user"] = Field(
        description="memory: what you learned (projects, decisions). user: who the person is and what they prefer."
    )
    action: Literal["add", "replace", "remove", "list"] = Field(description="What to do with the notes.")
    content: str = Field(default="", description="add, replace: the note, one declarative sentence.")
    old_text: str = Field(default="", description="replace, remove: a part of the note's text that no other note has.")


def memory_note(notebook: Notebook) -> Tool:
    """The tool over `notebook`; writes to the scope of the conversation, shows all that may be seen there."""

    async def run(arguments: Json, context: ToolContext) -> str:
        asked = parsed(_Arguments, arguments)
        try:
            return await _act(notebook, asked, context)
        except Refused as refusal:
            raise ToolError(str(refusal)) from refusal

    return Tool(
        name="memory",
        description=(
            "Keeps durable notes that are shown to you at the start of every conversation. Add facts that will still "
            "matter in a month (names, preferences, decisions, circumstances), as declarative sentences; never the "
            "progress of a task, never guesses. Replace or remove what is no longer true."
        ),
        schema=_Arguments.model_json_schema(),
        run=run,
        is_quote=True,
    )


async def _act(notebook: Notebook, asked: _Arguments, context: ToolContext) -> str:
    account = Account(platform=context.session.address.platform, user_id=context.sender.id)
    author = Author(account=account, message_id=context.message_id)
    match asked.action:
        case "add":
            return await notebook.add(context.scope, context.scopes, asked.target, asked.content, author)
        case "replace":
            return await notebook.replace(
                context.scope, context.scopes, asked.target, asked.old_text, asked.content, author
            )
        case "remove":
            return await notebook.remove(context.scope, context.scopes, asked.target, asked.old_text, author)
        case "list":
            entries = await notebook.entries(context.scopes, asked.target)
            fullness = await notebook.heading(context.scopes, asked.target)
            return "\n".join([fullness, *(f"- {entry}" for entry in entries)])
