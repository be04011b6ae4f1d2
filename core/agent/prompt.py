"""Builds the requests to the model: the system prompt, the messages, and the recalled memory.

The system prompt is written once, stored with its session and sent unchanged from then on. So it
must not contain anything that changes within a session, such as the time.

A person's message is sent as text blocks: a time line, a frame with the message that it replies to
or forwards, the text, and a fence with recalled memory. These blocks are the message's sent form.
They are stored before the first request and reused in all later requests. People never see them,
and they are neither indexed nor exported.

The provider's prefix cache needs identical bytes, so the same rows must always produce the same
request. This module doesn't write to the store.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from config.model_options import CacheLife, ModelOptions
from core.agent.context_files import OwnerFiles
from core.guard.origin_and_fence import (
    EARLIER_ANSWERS_LEAD,
    FORWARD_LEAD,
    JOB_RESULTS_LEAD,
    MARK_LETTERS,
    QUOTE_LEAD,
    account_mark,
    fence,
    neutralise,
    origin_label,
    typed_text,
)
from core.markup.markdown import run_off_loop
from core.memory.manager import MemoryManager
from core.store.rows import (
    History,
    find_missing_sent_forms,
    has_pictures,
    join_memory,
    list_job_results,
)
from core.types import (
    Account,
    Attachment,
    BillingScope,
    CallKind,
    Json,
    Message,
    Quote,
    Request,
    Session,
    Tool,
    ToolContext,
)

# An estimate until the provider reports the usage of a session's first call. There is no local
# tokenizer.
CHARS_PER_TOKEN = 3.5
# A picture of 1568 by 1045 pixels, which is the largest that is sent in this form.
PICTURE_TOKENS = 2_200
OMISSION_NOTICE = "[… {count:,} characters are left out here; nothing of it is lost …]"
OWNER_FILE_CHARS = 20_000
# Messages up to this length are always sent whole, even to a model with a small window.
LONG_CHARS = 2_000
# The memory providers get at most this many characters of the messages as a query.
MAX_MEMORY_QUERY_CHARS = 50_000
NAME_CHARS = 80

# Instructions that are the same for every owner. A line such as "- {memory} Use it for …" is part
# of the prompt only if the session has the tool `memory`.
GUIDANCE_FILE = Path(__file__).with_name("guidance.md")
_TOOL_LINE = re.compile(r"^- \{(\w+)\} (.*)$")

# The frame with job results has at most this many results, and this many characters in total.
MAX_JOB_RESULTS = 3
MAX_JOB_RESULTS_CHARS = 4_000
# Removed from names: quotation marks, and a "#" that would make text look like an account's mark.
_FORGED_MARK = re.compile(rf"[“”]|#\s*(?=[0-9a-f]{{{MARK_LETTERS}}}(?![^\W_]))", re.IGNORECASE)
_JOB_RESULTS_HEADING = f"[{JOB_RESULTS_LEAD} delivered this here since the last message:]"
_EARLIER_ANSWERS_HEADING = f"[{EARLIER_ANSWERS_LEAD} before:]"

INTERRUPTED_RESULT = "The tool was interrupted and gave no result."
_MISSING_RESULT: Json = {"type": "tool_result", "content": INTERRUPTED_RESULT, "is_error": True}
# Block types on which the Messages API rejects cache breakpoints.
_TYPES_WITHOUT_BREAKPOINTS = ("thinking", "redacted_thinking", "reasoning")

Section = Callable[[ToolContext], Awaitable[str]]
"""Returns a part of the system prompt with its heading, or "" to leave the part out."""

Frames = Callable[
    [Sequence[Message], Sequence[Message], ToolContext], Awaitable[list[tuple[str, ...]]]
]
"""Returns the extra blocks for each row of a turn, given these rows and all earlier rows."""

MediaBlocks = Callable[
    [Sequence[Message], Sequence[Message], ToolContext], Awaitable[list[tuple[Json, ...]]]
]
"""Returns the blocks of files for each row of a turn, given these rows and all earlier rows."""
ATTACHMENT_MARK = "[attached "  # Begins the line for an attachment (`with_attachments`).

# A turn with this many tool calls may contain a procedure that is worth saving as a skill.
MANY_TOOL_CALLS = 5


async def _no_section(context: ToolContext) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSections:
    """The parts of prompts and sent messages that other modules write. Each part is optional."""

    instructions: Section = _no_section  # The owner's instructions for the chat.
    skills: Section = _no_section  # The index of skills.
    context_files: Section = _no_section
    # Adds the text of a called skill, or a nudge to save a skill. The callback is called only if a
    # message matches `skill_cue` or if the last turn made at least `MANY_TOOL_CALLS` tool calls.
    skill_frames: Frames | None = None
    skill_cue: re.Pattern[str] = re.compile(r"\A/")
    # Adds the project rules for the files that a message names.
    rule_frames: Frames | None = None
    # Adds pictures and the text of documents. It's called only if a message or the message that it
    # replies to has an attachment.
    media_blocks: MediaBlocks | None = None


@dataclass
class PromptWriter:
    """Writes system prompts and the sent form of people's messages."""

    owner_files: OwnerFiles
    soul: str  # The assistant's identity if there is no SOUL.md.
    zone: str  # The IANA time zone of people who have set none.
    memory: MemoryManager
    budget_chars: int = 0  # The maximum length of the recalled memory that a turn gets.
    tools: Sequence[Tool] = ()  # All tools. A session may have fewer.
    sections: PromptSections = PromptSections()
    # Returns the maximum number of tokens of one message, given the name of the model.
    max_message_tokens: Callable[[str], float] = lambda model: math.inf

    def __post_init__(self) -> None:
        self._guidance_lines = GUIDANCE_FILE.read_text(encoding="utf-8").strip().split("\n")

    async def write_system_prompt(self, context: ToolContext, hint: str) -> str:
        """Return the system prompt of a session. `hint` describes the platform.

        The prompt doesn't contain the time. So the prompt of a chat's next session begins with the
        same text, which the provider reads from its cache.
        """
        soul = await self.owner_files.read_text("SOUL.md", OWNER_FILE_CHARS)
        agents = await self.owner_files.read_text("AGENTS.md", OWNER_FILE_CHARS)
        memory = await self.memory.system_prompt_block(context)
        hint = hint.strip()
        model = context.session.model
        sections = [
            soul or self.soul.strip(),
            self._render_guidance(context.session),
            await self.sections.instructions(context),
            f"# What you know\n{memory}" if memory else "",
            await self.sections.skills(context),
            f"# Instructions of your owner\n{agents}" if agents else "",
            await self.sections.context_files(context),
            f"# Where you are\n{hint}" if hint else "",
            f"# Your model\n{model}, when this was written." if model else "",
        ]
        return "\n\n".join(section for section in sections if section)

    def _render_guidance(self, session: Session) -> str:
        """Return the guidance without the lines about tools that the session doesn't have.

        A scheduled session stores nothing, so it gets only the lines about read-only tools.
        """
        tool_names = {
            tool.name
            for tool in self.tools
            if is_tool_available(tool, session) and (tool.is_read_only or session.is_remembered)
        }
        lines: list[str] = []
        for line in self._guidance_lines:
            tool_line = _TOOL_LINE.fullmatch(line)
            if tool_line is None:
                lines.append(line)
            elif tool_line[1] in tool_names:
                lines.append(f"- {tool_line[2]}")
        return "\n".join(lines)

    async def render_sent_form(
        self, rows: Sequence[Message], earlier: Sequence[Message], context: ToolContext
    ) -> list[Message]:
        """Return the rows of a turn with their sent form.

        The last row also gets the recalled memory that none of the `earlier` rows contains yet.
        """
        if not rows:
            return []
        text = "\n".join(row.text for row in rows)
        typed_words = "\n".join(map(typed_text, rows))
        memory_lines: Sequence[str] = ()
        if text.strip():
            memory_lines = await self.memory.prefetch(
                text[:MAX_MEMORY_QUERY_CHARS], context, typed_words
            )
        frames = await self._render_frames(rows, earlier, context)
        plain_rows = await run_off_loop(
            lambda _: self.render_sent_form_without_memory(rows, context, earlier), text
        )
        plain_rows = await self._add_media(plain_rows, earlier, context)
        sent_rows = [
            _append_blocks(row, row_frames)
            for row, row_frames in zip(plain_rows, frames, strict=True)
        ]
        memory_text = self._select_memory(memory_lines, earlier)
        if memory_text:
            sent_rows[-1] = _append_blocks(sent_rows[-1], [fence(memory_text)])
        return sent_rows

    async def render_missing_sent_forms(
        self, rows: Sequence[Message], context: ToolContext
    ) -> tuple[Sequence[Message], dict[int, Message]]:
        """Render the sent form of each chat message that lacks it.

        The sent form is missing after an edit, or if it comes from a parent session with memory
        that may not be shown here. Returns all rows, and the changed rows by id.
        """
        missing = find_missing_sent_forms(rows)
        if not missing:
            return rows, {}
        rows = list(rows)
        has_jobs = bool(list_job_results(rows))
        for index in missing:
            earlier = rows[:index] if has_jobs else ()
            rendered_rows = self.render_sent_form_without_memory([rows[index]], context, earlier)
            (rows[index],) = await self._add_media(rendered_rows, rows[:index], context)
        return rows, {rows[index].id: rows[index] for index in missing}

    async def _add_media(
        self, rows: list[Message], earlier: Sequence[Message], context: ToolContext
    ) -> list[Message]:
        """Add blocks for the files of the rows and of the messages that they reply to."""
        render = self.sections.media_blocks
        if render is None or not any(map(_has_attachment, rows)):
            return rows
        blocks = await render(rows, earlier, context)
        return [
            replace(row, sent_blocks=(*(row.sent_blocks or ()), *row_blocks))
            for row, row_blocks in zip(rows, blocks, strict=True)
        ]

    async def _render_frames(
        self, rows: Sequence[Message], earlier: Sequence[Message], context: ToolContext
    ) -> list[tuple[str, ...]]:
        """Return the extra blocks of each row: skills first, then project rules."""
        sources: list[Frames] = []
        if self.sections.skill_frames is not None and self._may_concern_skills(rows, earlier):
            sources.append(self.sections.skill_frames)
        if self.sections.rule_frames is not None:
            sources.append(self.sections.rule_frames)

        frames: list[tuple[str, ...]] = [() for _ in rows]
        for render_frames in sources:
            more = await render_frames(rows, earlier, context)
            frames = [first + second for first, second in zip(frames, more, strict=True)]
        return frames

    def _may_concern_skills(self, rows: Sequence[Message], earlier: Sequence[Message]) -> bool:
        if any(self.sections.skill_cue.match(row.text) for row in rows):
            return True
        return len(list_recent_tool_calls(earlier)) >= MANY_TOOL_CALLS

    def render_sent_form_without_memory(
        self, rows: Sequence[Message], context: ToolContext, earlier: Sequence[Message] = ()
    ) -> list[Message]:
        """Return rows with their sent form, but without recalled memory, skills and rules.

        If the model hasn't read some job results among the `earlier` rows yet, they are added to
        the first row, in a frame.
        """
        job_results = self._render_job_results(earlier, context)
        sent_rows: list[Message] = []
        for row in rows:
            texts = self._render_message(row, context, job_results)
            sent_rows.append(replace(row, sent_blocks=tuple(map(_text_block, texts))))
            job_results = ""
        return sent_rows

    def _render_message(self, row: Message, context: ToolContext, job_results: str) -> list[str]:
        """Return the blocks of a message in order: time line, quote or forward, job results, text.

        A text that is too long for the model is cut in the block only. The stored text isn't cut.
        """
        blocks = [self._render_time_line(row, context)]
        if row.quote is not None:
            blocks.append(self._render_quote_frame(row.quote, row, context))
        if job_results:
            blocks.append(job_results)
        text = row.text
        if len(text) > LONG_CHARS:
            text = cut_to_tokens(text, self.max_message_tokens(context.session.model))
        blocks.append(neutralise(text) or "(no text)")
        return blocks

    def _render_job_results(self, earlier: Sequence[Message], context: ToolContext) -> str:
        """Return a frame with the latest job results that no earlier frame contains, or "".

        For a scheduled question, the frame contains the question's own earlier answers.
        """
        jobs = list_job_results(earlier)
        if not jobs:
            return ""
        is_scheduled = context.session.address.platform == "cron"
        heading = _EARLIER_ANSWERS_HEADING if is_scheduled else _JOB_RESULTS_HEADING

        earlier_frames: list[str] = []
        for row in earlier:
            for block in row.sent_blocks or ():
                text = str(block.get("text", ""))
                if text.startswith(heading):
                    earlier_frames.append(text)
        framed_text = "\n".join(earlier_frames)
        moments = [self._format_moment(row.created_at, context) for row in jobs]
        labels = [f"[{at}, message {row.id}]" for at, row in zip(moments, jobs, strict=True)]
        # The index of the first new job result. Earlier ones are framed or too old.
        new_from = 0
        for index, label in enumerate(labels):
            if label in framed_text:
                new_from = index + 1

        first = max(new_from, len(jobs) - MAX_JOB_RESULTS)
        if first == len(jobs):
            return ""
        limit_chars = MAX_JOB_RESULTS_CHARS // (len(jobs) - first)
        paragraphs = [heading]
        for label, row in zip(labels[first:], jobs[first:], strict=True):
            paragraphs.append(f"{label}\n{_shorten_result(row.text, limit_chars)}")
        return "\n\n".join(paragraphs)

    def _select_memory(self, lines: Sequence[str], earlier: Sequence[Message]) -> str:
        """Return the memory lines that fit into the budget and that no earlier row contains.

        Every line begins with an id, such as "m12". Two lines with the same id count as equal.
        """
        if not lines:
            return ""
        earlier_memory = join_memory(earlier)
        selection: list[str] = []
        remaining_chars = self.budget_chars
        for line in lines:
            item = "- " + neutralise(" ".join(line.split()))
            token = item.split(" ", 2)[1]
            if f"\n- {token} " not in earlier_memory and len(item) <= remaining_chars:
                remaining_chars -= len(item)
                selection.append(item)
        return "\n".join(selection)

    def _render_time_line(self, row: Message, context: ToolContext) -> str:
        """Return the line before a message with its time and origin and, in a group, its sender.

        For example: ``[Friday 20 November 2026, 12:05 Europe/Lisbon, from Ana #3f2a, forwarded]``.
        """
        parts = [self._format_moment(row.created_at, context)]
        if context.scope.is_group and row.sender:
            parts.append(f"from {_render_name(row.sender.name, row.sender.id, context)}")
        label = origin_label(row)
        if label:
            parts.append(label)
        return f"[{', '.join(parts)}]"

    def _format_moment(self, moment: datetime, context: ToolContext) -> str:
        local = moment.astimezone(ZoneInfo(context.zone or self.zone))
        return f"{local:%A} {local.day} {local:%B %Y}, {local:%H:%M} {local.tzinfo}"

    def _render_quote_frame(self, quote: Quote, row: Message, context: ToolContext) -> str:
        """Return a frame with the message that `row` replies to, or the author of a forward.

        Each quoted line begins with ``>``.
        """
        if quote.message_id is not None and not quote.text:
            return f"[{QUOTE_LEAD} a message that is gone]"
        name = f"“{_render_name(quote.name, quote.user_id, context)}”" if quote.name else ""
        at = f", {self._format_moment(quote.at, context)}" if quote.at else ""
        is_own = row.sender is not None and quote.user_id == row.sender.id
        if quote.kind == "forward":
            return _render_forward_frame(quote, name, at, is_own=is_own)

        if quote.is_ours:
            source = "what you wrote"
        elif is_own:
            source = "their own words"
        elif name:
            source = f"what {name} wrote"
        else:
            source = "a message"
        part = "this part of " if quote.kind == "part" else ""
        lines = [f"\n> {line}" for line in neutralise(quote.text).splitlines()]
        colon = ":" if lines else ""
        return f"[{QUOTE_LEAD} {part}{source}{at}{colon}{''.join(lines)}]"


def _render_forward_frame(quote: Quote, name: str, at: str, *, is_own: bool) -> str:
    """Return a frame that names the author of a forwarded message. `name` and `at` may be empty."""
    if quote.is_ours:
        author = "you"
    elif is_own:
        author = "themselves"
    else:
        author = name or "somewhere else"
    warning = "said now" if is_own else "the words of the person who sent it"
    return f"[{FORWARD_LEAD} {author}{at}: not {warning}]"


def list_recent_tool_calls(rows: Sequence[Message]) -> list[Json]:
    """Return the tool calls after the last message of a person, latest row first."""
    calls: list[Json] = []
    for row in reversed(rows):
        if row.role == "user":
            break
        calls += [block for block in row.blocks or () if block.get("type") == "tool_use"]
    return calls


def with_attachments(text: str, attachments: Sequence[Attachment]) -> str:
    """Return the text, followed by a line for each attachment.

    For example: ``[attached photo: boat.jpg (image/jpeg, 20 bytes)]``.
    """
    lines = [text] if text else []
    for item in attachments:
        size = f"{item.size_bytes:,} bytes" if item.size_bytes else ""
        details = ", ".join(filter(None, (item.mime, size)))
        suffix = f" ({details})" if details else ""
        lines.append(f"[attached {item.kind}: {_clean_name(item.name)}{suffix}]")
    return "\n".join(lines)


def _has_attachment(row: Message) -> bool:
    is_quoted = row.quote is not None and ATTACHMENT_MARK in row.quote.text
    return is_quoted or ATTACHMENT_MARK in row.text


def _shorten_result(text: str, limit_chars: int) -> str:
    if len(text) > limit_chars:
        text = f"{text[:limit_chars].rstrip()} […]"
    return neutralise(text)


def _render_name(name: str, user_id: str, context: ToolContext) -> str:
    """Return a person's name on one line. In a group, the mark of their account follows.

    The result can't close quotation marks or imitate the mark of an account.
    """
    safe_name = _FORGED_MARK.sub("", _clean_name(name))
    if not user_id or not context.scope.is_group:
        return safe_name
    account = Account(platform=context.session.address.platform, user_id=user_id)
    return f"{safe_name} {account_mark(account)}"


def _clean_name(text: str) -> str:
    """Return the name of a person or file on one short line.

    Square brackets become round ones, because they enclose time lines and frames.
    """
    text = text.replace("[", "(").replace("]", ")")
    return neutralise(" ".join(text.split()))[:NAME_CHARS]


def _text_block(text: str) -> Json:
    return {"type": "text", "text": text}


def _append_blocks(row: Message, texts: Iterable[str]) -> Message:
    return replace(row, sent_blocks=(*(row.sent_blocks or ()), *map(_text_block, texts)))


def describe_tools(tools: Iterable[Tool], session: Session) -> tuple[Json, ...]:
    """Return the definitions of a session's tools for the Messages API.

    The cached prefix begins with the definitions, so they must stay the same within a session.
    """
    return tuple(
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}
        for tool in tools
        if is_tool_available(tool, session)
    )


def is_tool_available(tool: Tool, session: Session) -> bool:
    """Return whether the model may see and call a tool in a session.

    An incognito session has only read-only tools. A scheduled session has only those tools of
    external services that allow it. Some tools are only for groups of one platform.
    """
    platform = session.address.platform if session.scope.is_group else ""
    if tool.group_platform and tool.group_platform != platform:
        return False
    if session.is_incognito:
        return tool.is_read_only
    return session.is_remembered or not tool.is_external or tool.is_schedulable


def build_request(
    session: Session,
    rows: Sequence[Message],
    tools: Iterable[Tool],
    options: ModelOptions,
    billing: BillingScope,
    kind: CallKind = "chat",
    turn_key: str = "",
) -> Request:
    """Build the next request of a session with the history `rows`.

    Each request extends the previous one, so the provider can read the beginning from its cache.
    """
    system_block = {
        "type": "text",
        "text": session.prompt.text,
        "cache_control": build_cache_control(options.cache),
    }
    return Request(
        system=(system_block,),
        messages=add_cache_breakpoints(build_conversation(rows), options.cache),
        tools=describe_tools(tools, session),
        model=session.model,
        max_tokens=options.max_tokens,
        kind=kind,
        billing=billing,
        turn_key=turn_key,
        has_pictures=has_pictures(rows),
    )


def build_conversation(rows: Sequence[Message]) -> list[dict[str, Any]]:
    """Convert rows, oldest first, to turns of the Messages API: ``{"role", "content": [blocks]}``.

    The first turn is the user's, and the roles alternate. A user turn after tool calls begins with
    their results. No text block is empty. Copies of a `History` share finished turns.
    """
    history = rows if isinstance(rows, History) else History()
    # The first row that isn't shared, the turns before it, and their open tool calls.
    first_row, shared_turns, call_ids = history.shared_values.get(build_conversation, (0, [], []))
    turns, first_rows = _group_rows(rows, first_row)
    # The last turn isn't complete, because later rows may be added to it.
    complete_count = max(bisect_left(first_rows, history.shared_count) - 1, 0)
    conversation = list(shared_turns)
    for index, turn in enumerate(turns):
        if 0 < complete_count == index:
            value = (first_rows[index], list(conversation), call_ids)
            history.shared_values[build_conversation] = value
        call_ids = _add_turn(conversation, turn, call_ids)
    if call_ids:
        conversation.append({"role": "user", "content": _put_results_first([], call_ids)})
    return conversation


def _group_rows(rows: Sequence[Message], first: int) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the turns from the index `first` on, and the index of the first row of each turn."""
    turns: list[dict[str, Any]] = []
    first_rows: list[int] = []
    # The role of the last turn if the next row may be added to that turn.
    open_role = ""
    for index in range(first, len(rows)):
        row = rows[index]
        if row.origin == "job":
            # The frame of job results in the next message contains this row.
            continue
        row_blocks = row.sent_blocks or row.blocks or (_text_block(row.text),)
        blocks = [
            block for block in row_blocks if block.get("type") != "text" or block["text"].strip()
        ]
        if not blocks:
            continue
        role = "assistant" if row.role == "assistant" else "user"
        if role == open_role:
            turns[-1]["content"].extend(blocks)
        else:
            turns.append({"role": role, "content": blocks})
            first_rows.append(index)
        # A crash can leave a tool call without its result. The next assistant row begins a turn of
        # its own. If it joined the turn of the call, the cached prefix would change.
        has_call = role == "assistant" and any(block.get("type") == "tool_use" for block in blocks)
        open_role = "" if has_call else role
    return turns, first_rows


def _add_turn(
    conversation: list[dict[str, Any]], turn: dict[str, Any], call_ids: list[str]
) -> list[str]:
    """Add a turn in a form that the Messages API accepts, and return the ids of its tool calls.

    `call_ids` are the calls of the turn before this one. A call without a result gets an error
    result. An assistant turn at the beginning is dropped, and so are results without a call,
    because they belong to messages that were left out of the history.
    """
    is_user = turn["role"] == "user"
    blocks = _put_results_first(turn["content"] if is_user else [], call_ids)
    if blocks:
        conversation.append({"role": "user", "content": blocks})
    if is_user or not conversation:
        return []
    conversation.append(turn)
    return [block["id"] for block in turn["content"] if block.get("type") == "tool_use"]


def _put_results_first(blocks: Sequence[Json], call_ids: Sequence[str]) -> list[Json]:
    """Return the results of the calls, in the order of the calls, followed by the other blocks.

    A call without a result gets an error result.
    """
    results = {
        block["tool_use_id"]: block for block in blocks if block.get("type") == "tool_result"
    }
    blocks_in_order: list[Json] = []
    for call_id in call_ids:
        blocks_in_order.append(results.get(call_id) or {**_MISSING_RESULT, "tool_use_id": call_id})
    blocks_in_order += [block for block in blocks if block.get("type") != "tool_result"]
    return blocks_in_order


def build_cache_control(life: CacheLife) -> Json:
    """Return the value of ``cache_control`` for a cache entry with this lifetime."""
    return {"type": "ephemeral"} if life == "5m" else {"type": "ephemeral", "ttl": life}


def add_cache_breakpoints(
    turns: Sequence[dict[str, Any]], life: CacheLife = "5m"
) -> tuple[Json, ...]:
    """Set breakpoints at the end of the previous request and of this one. Returns the turns.

    A breakpoint at the end of this request isn't enough: from there, the server searches at most 20
    blocks backwards, and one round of parallel tool calls can have more. If this request ends with
    an unfinished answer, the turn before that answer also gets a breakpoint.
    """
    cache_control = build_cache_control(life)
    marked_turns = list(turns)
    # Both requests end with a user turn, except that this one may end with an unfinished answer.
    user_indexes = (
        index for index in reversed(range(len(turns))) if turns[index]["role"] == "user"
    )
    for index in {*islice(user_indexes, 2), len(turns) - 1} - {-1}:
        marked_turns[index] = _set_breakpoint(turns[index], cache_control)
    return tuple(marked_turns)


def _set_breakpoint(turn: dict[str, Any], cache_control: Json) -> dict[str, Any]:
    """Return a copy of the turn with a breakpoint on the last block that may have one."""
    content = list(turn["content"])
    for index in reversed(range(len(content))):
        if content[index].get("type") not in _TYPES_WITHOUT_BREAKPOINTS:
            content[index] = {**content[index], "cache_control": cache_control}
            break
    return {**turn, "content": content}


def estimate_text_tokens(text: str) -> float:
    """Estimate the tokens of a text from its size in bytes.

    Bytes are better than characters, because a non-ASCII letter usually takes more tokens.
    """
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return size / CHARS_PER_TOKEN


def estimate_row_tokens(row: Message) -> float:
    """Estimate how many tokens a row takes in a request."""
    blocks = row.sent_blocks or row.blocks
    if blocks is None:
        return estimate_text_tokens(row.text)
    tokens = 0.0
    for block in blocks:
        text = block.get("text")
        if block.get("type") == "image":
            tokens += PICTURE_TOKENS
            continue
        # Only blocks that aren't text are converted, because a history can have hundreds of blocks.
        tokens += estimate_text_tokens(text if isinstance(text, str) else str(block))
    return tokens


def cut_to_tokens(text: str, limit_tokens: float) -> str:
    """Return a text without its middle if it has more than `limit_tokens`.

    Three quarters of the result are the beginning of the text, and one quarter is its end. A notice
    between them says how many characters are missing.
    """
    tokens = estimate_text_tokens(text)
    if tokens <= limit_tokens:
        return text
    limit_chars = int(len(text) * limit_tokens / tokens)
    first, last = limit_chars * 3 // 4, limit_chars // 4
    notice = OMISSION_NOTICE.format(count=len(text) - first - last)
    return f"{text[:first]}\n{notice}\n{text[len(text) - last :]}"
