"""Compression: before a conversation is too long for the model, its earlier part is condensed, and it goes on in a
child that begins with its first exchange, a summary and its last turns. All of it stays in state.db, for recall.

Whatever fails on the way, the conversation goes on: without a helper, or with one that answers nonsense, the summary is
made by rules. Until the one transaction at the end nothing is changed.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import structlog

from config.settings import ModelOptions
from core.agent.prompt import (
    CHARS_PER_TOKEN,
    conversation,
    cut,
    described,
    mark,
    marked,
    tokens,
    tokens_in,
    tokens_of,
)
from core.agent.sessions import SessionTracker, Turn
from core.agent.summary import Parts, checked, framed, parted, pruned, ruled, transcript, unframed
from core.agent.tool_runner import ToolRunner
from core.errors import ModelError, Refused
from core.guard.fence import neutralise
from core.memory.manager import MemoryManager
from core.models.wrappers import MeteredModel, ask
from core.ports import Clock, Model
from core.store.rows import turns
from core.store.sessions import Conversations
from core.types import Json, Message, Payer, Request, Session

TAIL, HEAD, SUMMARY = 0.2, 0.05, 0.05
"""Of the model's window, at most: the last turns, the first exchange, the summary."""
LONGEST_SUMMARY_TOKENS = 6_000
FIRST_LOOK = 0.1
"""The share of the window from which on the server is asked how long it really is."""
LONGEST_SHARE = 0.4
"""Of the window, the most that one message may take."""
REFUSED_SHARE = 0.5
"""Of what the model has refused as too long, what may take the place of the window."""
MOST_MESSAGES = 5_000
"""A conversation of more is condensed as well: each of them is read for every answer."""
FUTILE = 2
"""After so many compressions in a row that did not help, none is made by itself."""
SHORT_TAIL = 0.25
"""Of what the conversation takes, the last turns that stay where it is small: the person asks, or messages are many."""
PART_TOKENS = 80_000
"""What the helper reads at once."""
KEPT_CHARS = 4_000
FLUSH_ROUNDS = 2
FLUSH_S, SUMMARY_S = 60.0, 180.0
KEEPING = frozenset({"memory", "fact_store", "skill_manage", "skill_view", "skills_list"})
"""The tools that may be called before it."""
NOT_NOW = "Not now: only what is to be kept for good is kept here."
NOTHING = "There is nothing to condense yet: all of this conversation is short enough to stay as it is."


class Windows:
    """How many tokens a model reads: as the settings say by its name, else what its server says (`asked`, once), but no
    more than `window_tokens`."""

    def __init__(self, options: ModelOptions, asked: Callable[[str], Awaitable[int | None]] | None = None) -> None:
        self._options = options
        self._asked = asked
        self._known: dict[str, int] = dict(options.windows)

    def of(self, model: str) -> int:
        return self._known.get(model, self._options.window_tokens)

    def longest(self, model: str) -> float:
        """The most tokens of one message; what is more is left out of what is sent."""
        return LONGEST_SHARE * self.of(model)

    async def learn(self, model: str) -> int:
        if model not in self._known and self._asked is not None:
            told = await self._asked(model)
            self._known[model] = min(told or self._options.window_tokens, self._options.window_tokens)
        return self.of(model)


class Flush:
    """A turn of the model's own before a compression, in which it may keep what would have to be looked up later."""

    def __init__(self, model: MeteredModel, tool_runner: ToolRunner, options: ModelOptions, clock: Clock) -> None:
        self._model = model
        self._tool_runner = tool_runner
        self._options = options
        self._clock = clock
        self._log = structlog.get_logger("compression")

    async def run(self, session: Session, rows: Sequence[Message], turn: Turn) -> None:
        """What fails is left out."""
        tools = [tool for tool in self._tool_runner.tools.values() if tool.name in KEEPING and not tool.is_reading]
        if not session.is_remembered or turn.is_fresh or not session.system_prompt or not tools:
            return
        order = _words("flush")
        now = self._clock.now()
        said = [*rows, Message(role="user", kind="notice", text=order, session_id=session.id, created_at=now)]
        try:
            async with asyncio.timeout(FLUSH_S):
                for _ in range(FLUSH_ROUNDS):
                    done = await self._round(session, said, turn)
                    if not done:
                        return
                    said += done
        except (ModelError, TimeoutError) as error:
            self._log.info("nothing was kept before", error=getattr(error, "logged", "it took too long"))

    async def _round(self, session: Session, said: Sequence[Message], turn: Turn) -> list[Message]:
        """What the model calls, with the results; empty where it calls nothing."""
        now = self._clock.now()
        completion = await self._model.complete(self._request(session, said, turn), _unheard, _unheard)
        calls = [block for block in completion.blocks if block.get("type") == "tool_use"]
        allowed = [call for call in calls if call["name"] in KEEPING]
        results = await self._tool_runner.run(allowed, turn.context(session, now, said))
        results += [_refusal(call, session, now) for call in calls if call not in allowed]
        answer = Message(role="assistant", text="", blocks=completion.blocks, session_id=session.id, created_at=now)
        return [answer, *results] if calls else []

    def _request(self, session: Session, rows: Sequence[Message], turn: Turn) -> Request:
        """That of the conversation, so that it is read from the cache."""
        return Request(
            system=({"type": "text", "text": session.system_prompt, "cache_control": mark(self._options.cache)},),
            messages=marked(conversation(rows), self._options.cache),
            tools=described(self._tool_runner.tools.values(), session),
            model=session.model,
            max_tokens=self._options.max_tokens,
            kind="compression",
            payer=turn.payer(session),
            turn=turn.outbox_item.key,
        )


class Summarizer:
    """Makes summaries, by `helper`, a model of this name, where there is one. `zone`: an IANA name."""

    def __init__(self, helper: Model | None, name: str, clock: Clock, zone: str) -> None:
        self._helper = helper
        self._name = name
        self._clock = clock
        self._zone = ZoneInfo(zone)
        self._log = structlog.get_logger("compression")

    def framed(self, text: str, session: Session) -> str:
        """A summary as the model gets it."""
        return framed(text, self._clock.now(), self._zone, is_kept=not session.is_incognito)

    async def summary(self, parts: Parts, chars: int, payer: Payer, focus: str) -> str:
        """By the helper, part after part; by rules where it does not."""
        before = unframed(parts.summary)
        if not parts.middle:
            return before
        if self._helper is not None:
            try:
                async with asyncio.timeout(SUMMARY_S):
                    if text := await self._asked(self._helper, parts.middle, before, payer, chars, focus):
                        return text
                self._log.warning("the helper gave no summary")
            except (ModelError, TimeoutError) as error:
                self._log.warning("the helper gave no summary", error=getattr(error, "logged", "it took too long"))
        return await asyncio.to_thread(ruled, parts.middle, before, self._zone, chars)

    async def _asked(
        self, helper: Model, rows: Sequence[Message], text: str, payer: Payer, chars: int, focus: str
    ) -> str:
        """Empty where an answer is no summary. Raises ModelError."""
        words, today = _words("ask"), self._clock.now().astimezone(self._zone)
        order = words["order"].format(today=f"{today:%A} {today.day} {today:%B %Y}", chars=chars)
        wish = words["focus"].format(focus=neutralise(cut(focus, 200))) if focus else ""
        for part in _in_parts(transcript(rows, self._zone)):
            earlier = [f"{words['before']}\n\n{text}"] if text else []
            given = (*earlier, f"{words['said']}\n\n{part}", "\n".join(filter(None, (wish, order))))
            completion = await ask(
                helper,
                self._name,
                "compression",
                _words("summary"),
                given,
                max_tokens=int(chars / CHARS_PER_TOKEN * 2),
                payer=payer,
            )
            text = "" if completion.stop_reason == "refusal" else checked(completion.text, chars)
            if not text:
                return ""
        return text


class Compressor:
    """`threshold`: the share of the window that a request may take."""

    def __init__(
        self,
        conversations: Conversations,
        sessions: SessionTracker,
        memory: MemoryManager,
        flush: Flush,
        summarizer: Summarizer,
        windows: Windows,
        threshold: float,
    ) -> None:
        self.sessions = sessions
        self._conversations = conversations
        self._memory = memory
        self._flush = flush
        sessions.flush = flush.run
        self._summarizer = summarizer
        self._windows = windows
        self._threshold = threshold
        self._futile: dict[int, int] = {}
        """By the first session of a lineage, how many compressions in a row did not help."""
        self._log = structlog.get_logger("compression")

    async def fitted(
        self, session: Session, rows: list[Message], turn: Turn, coming: str = ""
    ) -> tuple[Session, list[Message]]:
        """The session and its history, or its child where the next request, with what is `coming`, would be too long.
        Raises StaleReadError, StoreError."""
        if self._futile.get(_root(session), 0) >= FUTILE:
            return session, rows
        taken, window = tokens(session, rows), self._windows.of(session.model)
        taken += min(tokens_in(coming), self._windows.longest(session.model))
        if taken > FIRST_LOOK * window:
            window = await self._windows.learn(session.model)
        if taken <= self._threshold * window and len(rows) <= MOST_MESSAGES:
            return session, rows
        return await self.compressed(session, rows, turn) or (session, rows)

    def has_given_up(self, session: Session) -> bool:
        """Whether it has just been given up, which is told once."""
        is_new = self._futile.get(_root(session), 0) == FUTILE
        if is_new:
            self._futile[_root(session)] += 1
        return is_new

    async def compressed(
        self, session: Session, rows: Sequence[Message], turn: Turn, focus: str = "", *, is_exceeded: bool = False
    ) -> tuple[Session, list[Message]] | None:
        """The child of the session, with its history; None where there is nothing to condense. `is_exceeded`: the model
        has refused the session as too long. Raises StaleReadError, StoreError."""
        window = self._windows.of(session.model)
        # Whatever window the model has that refuses it: much less than what was sent.
        room = min(window, REFUSED_SHARE * sum(map(tokens_of, rows))) if is_exceeded else window
        parts = _parts(rows, room, 0.0 if is_exceeded else HEAD)
        sent = self._sent(parts, session, LONGEST_SHARE * room)
        if not parts.middle and not sent:
            self._futile[_root(session)] = self._futile.get(_root(session), 0) + 1
            return None
        if not is_exceeded:
            await self._flush.run(session, rows, turn)
        child = await self._continued(session, rows, parts, sent, turn, focus)
        history = await self._conversations.history(child, turn.scopes)
        helped = tokens(child, history) <= self._threshold * window and len(history) <= MOST_MESSAGES
        self._futile[_root(session)] = 0 if helped else self._futile.get(_root(session), 0) + 1
        self._log.info("a conversation was condensed", session=session.id, child=child.id, messages=len(parts.middle))
        return child, history

    async def by_hand(self, session: Session, turn: Turn, focus: str) -> Session:
        """For the person, whatever it takes now. Raises Refused where there is nothing to condense."""
        rows = await self._conversations.history(session, turn.scopes)
        window = self._windows.of(session.model)
        parts = _parts(rows, window, HEAD, is_small=True)
        if not parts.middle or not session.sight <= turn.scopes:
            raise Refused(NOTHING)
        await self._flush.run(session, rows, turn)
        self._futile.pop(_root(session), None)
        sent = self._sent(parts, session, LONGEST_SHARE * window)
        return await self._continued(session, rows, parts, sent, turn, focus, is_by_hand=True)

    async def _continued(
        self,
        session: Session,
        rows: Sequence[Message],
        parts: Parts,
        sent: Mapping[int, tuple[Json, ...]],
        turn: Turn,
        focus: str,
        *,
        is_by_hand: bool = False,
    ) -> Session:
        kept = await self._memory.on_pre_compress(session, rows)
        chars = int(min(SUMMARY * self._windows.of(session.model), LONGEST_SUMMARY_TOKENS) * CHARS_PER_TOKEN)
        text = await self._summarizer.summary(parts, chars, turn.payer(session), focus)
        if kept:
            text = f"{text}\n\n## From memory\n{neutralise(kept)[:KEPT_CHARS]}".strip()
        text = self._summarizer.framed(text, session) if text else ""
        return await self.sessions.compress(session, parts, text, sent, turn, is_by_hand=is_by_hand)

    def _sent(self, parts: Parts, session: Session, longest: float) -> Mapping[int, tuple[Json, ...]]:
        """What is sent of the rows that stay, where it is not what was sent before; of one message not more tokens than
        `longest`."""
        whole = [row for turn in turns(parts.tail)[-1:] for row in turn]
        if sum(map(tokens_of, whole)) > TAIL * self._windows.of(session.model):
            asked = [place for place, row in enumerate(whole) if row.role == "assistant"]
            whole = whole[asked[-1] :] if asked else whole
        before = {row.id: row.sent for row in (*parts.head, *parts.tail)}
        after = pruned([*parts.head, *parts.tail], whole, longest)
        return {row.id: row.sent for row in after if row.sent is not None and row.sent != before[row.id]}


def _parts(rows: Sequence[Message], room: float, head: float, *, is_small: bool = False) -> Parts:
    tail = SHORT_TAIL * sum(map(tokens_of, rows)) if is_small or len(rows) > MOST_MESSAGES else room
    return parted(rows, min(TAIL * room, tail), head * room)


def _root(session: Session) -> int:
    return session.root_id or session.id


def _unheard(text: str) -> None:
    """What is said before a compression is shown to nobody."""


def _refusal(call: Json, session: Session, now: Any) -> Message:
    block = {"type": "tool_result", "tool_use_id": call["id"], "content": NOT_NOW, "is_error": True}
    return Message(role="tool", text=NOT_NOW, blocks=(block,), session_id=session.id, created_at=now)


def _in_parts(lines: Sequence[str]) -> list[str]:
    """As much as the helper reads at once, each."""
    parts: list[list[str]] = [[]]
    left = float(PART_TOKENS)
    for line in lines:
        left -= tokens_in(line)
        if left < 0 and parts[-1]:
            parts.append([])
            left = PART_TOKENS - tokens_in(line)
        parts[-1].append(line)
    return ["\n".join(part) for part in parts]


@cache
def _words(name: str) -> Any:
    return tomllib.loads(Path(__file__).with_name("compression.toml").read_text("utf-8"))[name]
