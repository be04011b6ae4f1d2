"""What a model is given: the system prompt of a session, what a person said in the form in which it is sent (a time
line with its origin, what it answers or passes on, the text, the memory fence), and rows as turns of the Messages API.
Never writes.

The prompt is written once, stored with its session and sent verbatim ever after; nothing in it may depend on what
changes within a session. The sent form is stored before the first request and reused ever after; it is never shown,
indexed or exported. The same rows give the same bytes, always: the provider's prefix cache depends on it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from config.settings import CacheLife, ModelOptions
from core.agent.context_files import OwnerFiles
from core.guard.fence import ANSWERED, ANSWERING, DELIVERED, FORWARDED, MARK_LETTERS, fence, neutralise, said, told
from core.guard.fence import mark as account_mark
from core.memory.manager import MemoryManager
from core.types import Account, Attachment, CallKind, Json, Message, Payer, Quoted, Request, Session, Tool, ToolContext

CHARS_PER_TOKEN = 3.5  # no tokenizer exists outside the provider; real usage corrects this after the first call
LEFT_OUT = "[… {count:,} characters are left out here; nothing of it is lost …]"
SOUL_CHARS = AGENTS_CHARS = 20_000
LONG_CHARS = 2_000
"""A message of fewer is sent whole, whatever the model reads."""
ASKED_CHARS = 50_000
"""Of what was said, with what memory is asked."""

GUIDANCE = Path(__file__).with_name("guidance.md")
"""The part of the prompt that says how the assistant works, for every owner. What a line says of a ``{tool}``, which it
begins with, stands only where the session has it."""
_OF_TOOL = re.compile(r"^- \{(\w+)\} (.*)$")

REPORTS, REPORTS_CHARS = 3, 4_000
"""Most results of jobs that a turn frames, and how long they are together."""
_FORGED = re.compile(rf"[“”]|#\s*(?=[0-9a-f]{{{MARK_LETTERS}}}(?![^\W_]))", re.IGNORECASE)
_DELIVERED = f"[{DELIVERED} delivered this here since the last message:]"
_ANSWERED = f"[{ANSWERED} before:]"

INTERRUPTED = "The tool was interrupted and gave no result."
_MISSING: Json = {"type": "tool_result", "content": INTERRUPTED, "is_error": True}
_UNMARKABLE = ("thinking", "redacted_thinking")


Section = Callable[[ToolContext], Awaitable[str]]
"""A part of a prompt with its heading, as it is in one conversation; empty where there is nothing to say."""


Frames = Callable[[Sequence[Message], Sequence[Message], ToolContext], Awaitable[list[tuple[str, ...]]]]
"""What goes along with each of some messages, behind earlier ones."""
CALLS_MANY = 5
"""From so many calls of tools on, a turn may have been worth learning from."""


async def _nothing(context: ToolContext) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """Parts of a prompt that others write: the operator's words for the chat, the index of skills, context files; and
    `frames` of a turn where a message of it fits the `cue`, or the turn before made `CALLS_MANY`; and of any turn the
    `rules` that apply to what it names."""

    instructions: Section = _nothing
    skills: Section = _nothing
    context_files: Section = _nothing
    frames: Frames | None = None
    cue: re.Pattern[str] = re.compile(r"\A/")
    rules: Frames | None = None


@dataclass
class Prompt:
    """Writes system prompts, and the sent form of user rows with at most `budget_chars` of memory a turn. `soul`: the
    identity used without a SOUL.md; `zone`: IANA name; `tools`: all there are. `longest`: the most tokens of one
    message, by the name of the model."""

    owner_files: OwnerFiles
    soul: str
    zone: str
    memory: MemoryManager
    budget_chars: int = 0
    tools: Sequence[Tool] = ()
    sections: Sections = Sections()
    longest: Callable[[str], float] = lambda model: math.inf

    def __post_init__(self) -> None:
        self._guidance = GUIDANCE.read_text(encoding="utf-8").strip().split("\n")
        self._zone = ZoneInfo(self.zone)

    async def write(self, context: ToolContext, hint: str) -> str:
        """The prompt of a session. The time is not in it, so that what a chat begins with next is in the cache."""
        soul = await self.owner_files.text("SOUL.md", SOUL_CHARS)
        agents = await self.owner_files.text("AGENTS.md", AGENTS_CHARS)
        memory = await self.memory.system_prompt_block(context)
        sections = [
            soul or self.soul.strip(),
            self._guidance_in(context.session),
            await self.sections.instructions(context),
            f"# What you know\n{memory}" if memory else "",
            await self.sections.skills(context),
            f"# Instructions of your owner\n{agents}" if agents else "",
            await self.sections.context_files(context),
            f"# Where you are\n{hint.strip()}" if hint.strip() else "",
            f"# Your model\n{context.session.model}, when this was written." if context.session.model else "",
        ]
        return "\n\n".join(section for section in sections if section)

    def _guidance_in(self, session: Session) -> str:
        # In a schedule nothing is kept or planned.
        there = {one.name for one in self.tools if serves(one, session) and (one.is_reading or session.is_remembered)}
        lines = ((line, _OF_TOOL.fullmatch(line)) for line in self._guidance)
        return "\n".join(f"- {of[2]}" if of else line for line, of in lines if of is None or of[1] in there)

    async def seal(self, rows: Sequence[Message], earlier: Sequence[Message], context: ToolContext) -> list[Message]:
        """`rows`, answered together, as they are sent. A memory in one of the `earlier` rows is not repeated."""
        if not rows:
            return []
        text = "\n".join(row.text for row in rows)
        typed = "\n".join(map(said, rows))
        lines = await self.memory.prefetch(text[:ASKED_CHARS], context, typed) if text.strip() else ()
        framed = await self._frames(rows, earlier, context)
        *others, last = [
            replace(row, sent=(*(row.sent or ()), *map(_block, frames)))
            for row, frames in zip(self.dated(rows, context, earlier), framed, strict=True)
        ]
        if passages := self._chosen(lines, earlier):
            last = replace(last, sent=(*(last.sent or ()), _block(fence(passages))))
        return [*others, last]

    async def _frames(
        self, rows: Sequence[Message], earlier: Sequence[Message], context: ToolContext
    ) -> Sequence[tuple[str, ...]]:
        frames, cue = self.sections.frames, self.sections.cue
        is_cue = any(cue.match(row.text) for row in rows) or len(tool_calls_of(earlier)) >= CALLS_MANY
        asked = (frames if is_cue else None, self.sections.rules)
        found = [await one(rows, earlier, context) for one in asked if one is not None]
        return [tuple(chain(*framed)) for framed in zip(*found, strict=True)] if found else [()] * len(rows)

    def dated(self, rows: Sequence[Message], context: ToolContext, earlier: Sequence[Message] = ()) -> list[Message]:
        """The same without memory. The first frames what jobs delivered since the `earlier` rows were sent."""
        reports = self._reports(earlier, context)
        return [
            replace(row, sent=tuple(map(_block, self._sent(row, context, "" if place else reports))))
            for place, row in enumerate(rows)
        ]

    def _sent(self, row: Message, context: ToolContext, reports: str) -> Iterator[str]:
        """The blocks of a message in the order in which they are sent: its time line, what frames it, its text."""
        yield self._time_line(row, context)
        if row.quoted is not None:
            yield self._frame(row.quoted, row, context)
        if reports:
            yield reports
        # Where it is longer than the model can read: it is kept whole.
        is_long = len(row.text) > LONG_CHARS
        text = cut(row.text, self.longest(context.session.model)) if is_long else row.text
        yield neutralise(text) or "(no text)"

    def _reports(self, earlier: Sequence[Message], context: ToolContext) -> str:
        """The last results of jobs behind those that a turn has framed; of a scheduled question, those there are."""
        jobs = [row for row in earlier if row.origin == "job"]
        if not jobs:
            return ""
        opening = _ANSWERED if context.session.address.platform == "cron" else _DELIVERED
        texts = (str(block.get("text", "")) for row in earlier for block in row.sent or ())
        framed = "\n".join(text for text in texts if text.startswith(opening))
        heads = [f"[{self._moment(row.created_at)}, message {row.id}]" for row in jobs]
        last = max((at for at, head in enumerate(heads) if head in framed), default=-1)
        at = max(last + 1, len(jobs) - REPORTS)
        limit_chars = REPORTS_CHARS // max(1, len(jobs) - at)
        told = [f"{head}\n{_cut(row.text, limit_chars)}" for head, row in zip(heads[at:], jobs[at:], strict=True)]
        return "\n\n".join([opening, *told]) if told else ""

    def _chosen(self, lines: Sequence[str], earlier: Sequence[Message]) -> str:
        known = "".join(block["text"] for row in earlier for block in row.memory) if lines else ""
        chosen: list[str] = []
        left = self.budget_chars
        for line in lines:
            line = "- " + neutralise(" ".join(line.split()))
            if f"\n- {line.split(' ', 2)[1]} " not in known and len(line) <= left:
                left -= len(line)
                chosen.append(line)
        return "\n".join(chosen)

    def _time_line(self, row: Message, context: ToolContext) -> str:
        parts = [self._moment(row.created_at)]
        if context.scope.is_room and row.sender:
            parts.append(f"from {_called(row.sender.name, row.sender.id, context)}")
        return f"[{', '.join([*parts, *filter(None, [told(row)])])}]"

    def _moment(self, moment: datetime) -> str:
        at = moment.astimezone(self._zone)
        return f"{at:%A} {at.day} {at:%B %Y}, {at:%H:%M} {self._zone}"

    def _frame(self, quoted: Quoted, row: Message, context: ToolContext) -> str:
        """What `row` answers, each of its lines marked, or whose words it passes on."""
        if quoted.message_id is not None and not quoted.text:
            return f"[{ANSWERING} a message that is gone]"
        name = f"“{_called(quoted.name, quoted.user_id, context)}”" if quoted.name else ""
        at = f", {self._moment(quoted.at)}" if quoted.at else ""
        is_own = quoted.user_id == getattr(row.sender, "id", None)
        if quoted.kind == "forward":
            whose = "you" if quoted.is_ours else "themselves" if is_own else name or "somewhere else"
            return f"[{FORWARDED} {whose}{at}: not {'said now' if is_own else 'the words of the person who sent it'}]"
        what = "their own words" if is_own else f"what {name} wrote" if name else "a message"
        part = "this part of " if quoted.kind == "part" else ""
        lines = "\n> ".join(["", *neutralise(quoted.text).splitlines()])
        return f"[{ANSWERING} {part}{'what you wrote' if quoted.is_ours else what}{at}{lines and ':' + lines}]"


def tool_calls_of(rows: Sequence[Message]) -> list[Json]:
    """The calls of tools since a person has last said something."""
    found: list[Json] = []
    for row in reversed(rows):
        if row.role == "user":
            break
        found += [block for block in row.blocks or () if block.get("type") == "tool_use"]
    return found


def with_attachments(text: str, attachments: Sequence[Attachment]) -> str:
    """The text followed by one line for each attachment."""
    lines = []
    for item in attachments:
        size = f"{item.size_bytes:,} bytes" if item.size_bytes else ""
        details = ", ".join(filter(None, (item.mime, size)))
        lines.append(f"[attached {item.kind}: {_one_line(item.name)}{f' ({details})' if details else ''}]")
    return "\n".join([text, *lines] if text else lines)


def _cut(text: str, limit_chars: int) -> str:
    return neutralise(text if len(text) <= limit_chars else f"{text[:limit_chars].rstrip()} […]")


def _called(name: str, user_id: str, context: ToolContext) -> str:
    """A name on one line, which ends no quotes and brings along the mark of nobody else; in a room with its own."""
    called = _FORGED.sub("", _one_line(name))
    account = Account(platform=context.session.address.platform, user_id=user_id)
    return f"{called} {account_mark(account)}" if user_id and context.scope.is_room else called


def _block(text: str) -> Json:
    return {"type": "text", "text": text}


def _one_line(text: str) -> str:
    return neutralise(" ".join(text.replace("[", "(").replace("]", ")").split()))[:80]


def described(tools: Iterable[Tool], session: Session) -> tuple[Json, ...]:
    """The tool definitions of a session. They stand first in the cached prefix, so they stay the same with it."""
    return tuple(
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}
        for tool in tools
        if serves(tool, session)
    )


def serves(tool: Tool, session: Session) -> bool:
    """Whether a session has a tool. An incognito one has none that keeps or tells anything, a scheduled one none of
    an outside service."""
    if session.is_incognito:
        return tool.is_reading
    return not tool.is_outside or session.is_remembered


def request(
    session: Session,
    rows: Sequence[Message],
    tools: Iterable[Tool],
    options: ModelOptions,
    payer: Payer,
    kind: CallKind = "chat",
    turn: str = "",
) -> Request:
    """What the model of a session is asked behind these rows. Each extends the one before, for the provider's cache."""
    return Request(
        system=({"type": "text", "text": session.system_prompt, "cache_control": mark(options.cache)},),
        messages=marked(conversation(rows), options.cache),
        tools=described(tools, session),
        model=session.model,
        max_tokens=options.max_tokens,
        kind=kind,
        payer=payer,
        turn=turn,
    )


def conversation(rows: Sequence[Message]) -> list[dict[str, Any]]:
    """Rows (oldest first) as ``{"role", "content": [blocks]}``: beginning with user, roles alternating, every tool call
    answered at the head of the next user message, no empty text."""
    turns: list[dict[str, Any]] = []
    open_role = ""
    for row in rows:
        if row.origin == "job":
            continue  # the next turn frames it
        given = row.sent or row.blocks or (_block(row.text),)
        blocks = [block for block in given if block.get("type") != "text" or block["text"].strip()]
        if not blocks:
            continue
        role = "assistant" if row.role == "assistant" else "user"
        if role == open_role:
            turns[-1]["content"].extend(blocks)
        else:
            turns.append({"role": role, "content": blocks})
        # What follows a call that a crash left without its result must not join its message, or the request would not
        # extend the one before.
        is_call = role == "assistant" and any(block.get("type") == "tool_use" for block in blocks)
        open_role = "" if is_call else role
    return _answered(turns)


def mark(life: CacheLife) -> Json:
    """The ``cache_control`` mark of a cache life."""
    return {"type": "ephemeral"} if life == "5m" else {"type": "ephemeral", "ttl": life}


def marked(turns: Sequence[dict[str, Any]], life: CacheLife = "5m") -> tuple[Json, ...]:
    """The conversation with cache marks at the tail of the previous request and at its own tail: the server looks back
    only 20 blocks from a mark, and one round of parallel tool calls can be more."""
    requests = [index for index, turn in enumerate(turns) if turn["role"] == "user"]
    tails = {*requests[-2:], len(turns) - 1}
    return tuple(_mark(turn, mark(life)) if index in tails else turn for index, turn in enumerate(turns))


def _mark(turn: dict[str, Any], mark: Json) -> dict[str, Any]:
    content = list(turn["content"])
    markable = [index for index, block in enumerate(content) if block.get("type") not in _UNMARKABLE]
    for last in markable[-1:]:
        content[last] = {**content[last], "cache_control": mark}
    return {**turn, "content": content}


def _answered(turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A window may open with the assistant or with results of a call that is gone; the API wants a user first."""
    out: list[dict[str, Any]] = []
    called: list[str] = []
    for turn in (*turns, {"role": "user", "content": []}):
        content = turn["content"] if turn["role"] == "user" else []
        given = {block["tool_use_id"]: block for block in content if block.get("type") == "tool_result"}
        answer = [given.get(call) or {**_MISSING, "tool_use_id": call} for call in called]
        answer += [block for block in content if block.get("type") != "tool_result"]
        if answer:
            out.append({"role": "user", "content": answer})
        called = []
        if turn["role"] == "assistant" and out:
            out.append(turn)
            called = [block["id"] for block in turn["content"] if block.get("type") == "tool_use"]
    return out


def tokens_in(text: str) -> float:
    """An estimate, of bytes: what is not written in Latin letters takes more of them, and more tokens."""
    return (len(text) if text.isascii() else len(text.encode("utf-8", "replace"))) / CHARS_PER_TOKEN


def tokens_of(row: Message) -> float:
    """An estimate of what a row takes in a request."""
    blocks = row.sent or row.blocks
    if blocks is None:
        return tokens_in(row.text)
    taken = 0.0
    for block in blocks:
        text = block.get("text")
        # Nearly all are blocks of text, and a long history has hundreds.
        taken += tokens_in(text if isinstance(text, str) else str(block))
    return taken


def tokens(session: Session, rows: Sequence[Message]) -> float:
    """Tokens of the next request: the real usage of the last call and an estimate of the rest."""
    estimated = 0.0
    for row in reversed(rows):
        # What a carried row cost was the cost of its own, longer conversation.
        if row.usage and row.usage.sent and row.session_id == session.id:
            return row.usage.sent + row.usage.output + estimated
        estimated += tokens_of(row)
    return tokens_in(session.system_prompt) + estimated


def cut(text: str, limit_tokens: float) -> str:
    """`text` as it is sent where it is longer than the model can read: its beginning, its end, and how much is left out
    between them."""
    taken = tokens_in(text)
    if taken <= limit_tokens:
        return text
    chars = int(len(text) * limit_tokens / taken)
    first, last = chars * 3 // 4, chars // 4
    return f"{text[:first]}\n{LEFT_OUT.format(count=len(text) - first - last)}\n{text[len(text) - last :]}"
