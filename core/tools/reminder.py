"""The tool `reminder`: the model sets, lists and changes reminders and schedules."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from core.dates.schedule import Reading
from core.errors import ToolError
from core.facts.evidence import EvidenceSearch
from core.guard.fence import told
from core.memory.provider import parsed
from core.review.pending import Review
from core.scheduling.appointments import Appointments
from core.store.notes import QUESTION, REMINDER, Author, Operation
from core.store.sessions import Conversations
from core.types import Json, Message, Sender, Tool, ToolContext


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    action: Literal["add", "list", "pause", "resume", "remove"] = Field(description="What to do.")
    when: str = Field(
        default="",
        description=(
            "add: the time alone, in the person's zone: 'tomorrow at 09:00', 'in 20 minutes', '2026-12-01 10:00', "
            "'every monday at 8:30', 'every 2 hours', or five cron fields like '0 9 * * 1-5'."
        ),
    )
    text: str = Field(default="", description="add: what to be reminded of, or with is_prompt what to do then.")
    job_id: int | None = Field(default=None, description="pause, resume, remove: the number of the reminder.")
    is_prompt: bool = Field(
        default=False,
        description=(
            "add: false delivers the text as it stands. true gives the text to you as a task at that time, in a fresh "
            "session, and delivers your answer."
        ),
    )


Ask = Callable[[Reading, ToolContext, str | None], Awaitable[str]]
"""Lets a reading wait for the person's yes, and returns the question; the last is the origin of what it makes."""


def reminder(
    appointments: Appointments, conversations: Conversations, evidence: EvidenceSearch, review: Review, ask: Ask
) -> Tool:
    """What `evidence` does not find in what people typed waits for a yes where other texts were read as well. A whole
    line that allows another reading (`core.agent.offline` passes such lines on) is asked about."""

    async def add(asked: _Arguments, context: ToolContext) -> str:
        address, account = context.session.address, None if context.sender.is_nobody else context.account
        if address.platform == "cron":
            raise ToolError("A scheduled session cannot make reminders or schedules. Say in your answer what to set.")
        if not asked.when.strip():
            raise ToolError("add needs when, the time of the reminder. Ask the person if you do not know it.")
        text = asked.text if asked.text.strip() else None
        when = f"remind me {asked.when}" if text is None else asked.when
        reading = await appointments.read(when, text, is_prompt=asked.is_prompt and text is not None)
        rows = await conversations.history(context.session, context.scopes)
        has_others = any(_is_foreign(row, context.sender) for row in rows)
        if has_others and (reason := await evidence.unsaid([reading.text], context)):
            author = Author(account=account, message_id=context.message_id, address=address, epoch=context.epoch)
            line = Operation(action="add", content=appointments.exact(reading))
            target = QUESTION if asked.is_prompt else REMINDER
            return await review.put_aside(context.scope, target, [line], author, reason)
        origin = _origin(asked, context)
        if not reading.is_certain and text is None:
            return await ask(reading, context, origin)
        receipt = await appointments.add(
            reading, address, context.scope, account=account, origin=origin, epoch=context.epoch
        )
        doubt = "" if reading.is_certain else " (The words allow another reading: ask whether that time is meant.)"
        return receipt + doubt

    async def run(arguments: Json, context: ToolContext) -> str:
        asked = parsed(_Arguments, arguments)
        if asked.action == "add":
            return await add(asked, context)
        if asked.action == "list":
            jobs = await appointments.list(context.scopes)
            return "\n".join(map(appointments.describe, jobs)) or "There are no reminders here."
        if asked.job_id is None:
            raise ToolError(f"{asked.action} needs job_id, the number of the reminder; action 'list' shows them.")
        return await appointments.change(asked.action, asked.job_id, context.scopes, context.account)

    return Tool(
        name="reminder",
        description=(
            "Sets reminders and recurring schedules, and lists, pauses, resumes or removes them. Use it whenever the "
            "person asks to be reminded or wants something done at a time. Tell the person the exact time it answers."
        ),
        schema=_Arguments.model_json_schema(),
        run=run,
    )


def _is_foreign(row: Message, asker: Sender) -> bool:
    """Whether the model has read something there that its asker has not typed: a result, a forward, a paste, a file,
    another member."""
    if row.role == "user":
        return bool(told(row)) or (row.sender is not None and row.sender.id != asker.id)
    return row.role == "tool" and row.tool_name != "reminder"


def _origin(asked: _Arguments, context: ToolContext) -> str | None:
    """The same for the same request in one turn, so that a turn repeated after a crash makes no second reminder."""
    if context.message_id is None:
        return None
    request = json.dumps([asked.when, asked.text, asked.is_prompt])
    return f"tool:{context.message_id}:{hashlib.sha256(request.encode('utf-8', 'replace')).hexdigest()[:16]}"
