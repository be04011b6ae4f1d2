"""The tool `memory`: the model keeps, changes and drops durable notes. One face of `Notebook`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from core.errors import Refused, ToolError
from core.facts.heard import EvidenceSearch
from core.memory.provider import is_remembered
from core.models.content_blocks import parsed
from core.notes.notebook import Notebook
from core.review.review import quoted, reason_to_wait
from core.store.notes import Author, Operation
from core.types import Account, Json, Tool, ToolContext


class _Operation(BaseModel):
    model_config = ConfigDict(extra="forbid")

    action: Literal["add", "replace", "remove"]
    content: str = Field(default="", description="add, replace: the note.")
    old_text: str = Field(default="", description="replace, remove: a part of the note that no other note has.")


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    target: Literal["memory", "user"] = Field(
        description="memory: what you learned (projects, decisions). user: who the person is and what they prefer."
    )
    action: Literal["add", "replace", "remove", "list"] | None = Field(
        default=None, description="What to do with the notes; leave it out when you give operations."
    )
    content: str = Field(default="", description="add, replace: the note, one declarative sentence.")
    old_text: str = Field(default="", description="replace, remove: a part of the note's text that no other note has.")
    operations: list[_Operation] = Field(
        default=[],
        description="Several changes of the target at once, done in this order: all or none, and only the final size "
        "has to fit. To make room, remove or shorten and add in one call.",
    )


def memory_note(notebook: Notebook, evidence: EvidenceSearch) -> Tool:
    """The tool over `notebook`; what `evidence` does not find in what people typed waits for a yes. Writes to the scope
    of the conversation, shows all that may be seen there."""

    async def run(arguments: Json, context: ToolContext) -> str:
        asked = parsed(_Arguments, arguments)
        try:
            return await _act(notebook, evidence, asked, context)
        except Refused as refusal:
            raise ToolError(str(refusal)) from refusal

    return Tool(
        name="memory",
        description=(
            "Keeps durable notes that are shown to you at the start of every conversation. Add facts that will still "
            "matter in a month (names, preferences, decisions, circumstances), as declarative sentences; never the "
            "progress of a task, never guesses. What a person has typed here is kept at once; "
            "anything else waits until they say yes. Replace or remove what is no longer true."
        ),
        schema=_Arguments.model_json_schema(),
        run=run,
        is_quote=True,
    )


async def _act(notebook: Notebook, evidence: EvidenceSearch, asked: _Arguments, context: ToolContext) -> str:
    if asked.operations and asked.action is not None:
        raise ToolError("Give either an action or operations, not both.")
    if not asked.operations and asked.action is None:
        raise ToolError("Say what to do: an action, or several operations.")
    if asked.action == "list":
        entries = await notebook.entries(context.scopes, asked.target)
        fullness = await notebook.heading(context.scopes, asked.target)
        return "\n".join([fullness, *(f"- {entry}" for entry in entries), *await notebook.troubles(context.scopes)])
    wanted = [Operation(**one.model_dump()) for one in asked.operations]
    if asked.action is not None:
        wanted = [Operation(action=asked.action, content=asked.content, old_text=asked.old_text)]
    return await _apply(notebook, evidence, asked.target, wanted, context)


async def _apply(
    notebook: Notebook, evidence: EvidenceSearch, target: str, operations: Sequence[Operation], context: ToolContext
) -> str:
    """Raises ToolError where the conversation may not change notes, or not this one."""
    if not is_remembered(context.session):
        raise ToolError("Nothing is noted in this conversation; look things up only.")
    account = Account(platform=context.session.address.platform, user_id=context.sender.id)
    author = Author(account=account, message_id=context.message_id)
    if context.scope.is_room and context.scopes == {context.scope}:
        for operation in operations:
            if operation.action == "add":
                continue
            noted = (await notebook.origin(context.scopes, operation.old_text)).change
            if noted is None or noted.account != account:
                raise ToolError("In a room only who had something noted, or the owner with /memory, changes it.")
        if any(one.content for one in operations):
            operations = quoted(context.sender.name, account, operations)
            author = replace(author, origin="member", reason="in a room the owner decides what stands in its notes")
            return await notebook.apply(context.scope, context.scopes, target, operations, author)
    reason = reason_to_wait(operations) or await evidence.unsaid(
        [one.content for one in operations if one.content.strip()],
        context,
        beside=[
            entry
            for entry in await notebook.entries(context.scopes, target)
            if any(one.old_text.strip() and one.old_text.strip() in entry for one in operations)
        ],
    )
    author = replace(author, origin="typed") if reason is None else replace(author, reason=reason)
    return await notebook.apply(context.scope, context.scopes, target, operations, author)
