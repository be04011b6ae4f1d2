"""Compression: before a conversation is too long for the model, its earlier part is condensed, and it goes on in a
child that begins with its first exchange, a summary and its last turns. All of it stays in state.db, for recall.

Whatever fails on the way, the conversation goes on: without a helper, or with one that answers nonsense, the summary is
made by rules. Until the one transaction at the end nothing is changed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import structlog

from config.settings import ModelOptions
from core.agent.prompt import CHARS_PER_TOKEN, cut, request, tokens, tokens_in, tokens_of
from core.agent.sessions import SessionTracker, Turn
from core.agent.summary import Parts, checked, framed, parted, ruled, shown, transcript, unframed
from core.agent.tool_runner import ToolRunner
from core.errors import ModelError, Refused
from core.guard.fence import neutralise
from core.memory.manager import MemoryManager
from core.models.wrappers import MeteredModel, ask
from core.ports import Clock, Model
from core.store.sessions import Conversations
from core.text.normalize import language_data
from core.types import Message, Payer, Session

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
PART_TOKENS, PART_SHARE = 80_000, 0.5
"""What the helper reads at once, and of its window at most."""
FLUSH_ROUNDS = 2
FLUSH_S, SUMMARY_S = 60.0, 180.0
KEEPING = frozenset({"memory", "fact_store", "skill_manage", "skill_view", "skills_list"})
"""The tools that may be called before it."""
NOTHING = "There is nothing to condense yet: all of this conversation is short enough to stay as it is."
_log = structlog.get_logger("compression")


class Windows:
    """How many tokens a model reads: as the settings say by its name, else what its server says (`asked`, once), but no
    more than `window_tokens`."""

    def __init__(self, options: ModelOptions, asked: Callable[[str], Awaitable[int | None]] | None = None) -> None:
        self._most = options.window_tokens
        self._asked = asked
        self._asking = asyncio.Lock()
        self._known = dict(options.windows)
        self.near_tokens = FIRST_LOOK * min([self._most, *self._known.values()])
        """A request of fewer is far from the end of any."""

    def of(self, model: str) -> int:
        return self._known.get(model, self._most)

    def longest(self, model: str) -> float:
        """The most tokens of one message; what is more is left out of what is sent."""
        return LONGEST_SHARE * self.of(model)

    async def learn(self, model: str) -> int:
        async with self._asking:
            if model not in self._known and self._asked is not None:
                self._known[model] = min(await self._asked(model) or self._most, self._most)
                self.near_tokens = min(self.near_tokens, FIRST_LOOK * self._known[model])
        return self.of(model)


class Flush:
    """A turn of the model's own before a compression, in which it may keep what would have to be looked up later."""

    def __init__(self, model: MeteredModel, tool_runner: ToolRunner, options: ModelOptions, clock: Clock) -> None:
        self._model = model
        self._tools = tool_runner.tools
        keeping = [tool for tool in self._tools.values() if tool.name in KEEPING]
        self._keeping = ToolRunner(keeping, options.tool_timeout_s)
        self._options = options
        self._clock = clock

    async def run(self, session: Session, rows: Sequence[Message], turn: Turn) -> None:
        """What fails is left out."""
        is_keeping = not self._keeping.is_reading([{"name": name} for name in self._keeping.tools])
        if not session.is_remembered or turn.is_fresh or not session.system_prompt or not is_keeping:
            return
        try:
            async with asyncio.timeout(FLUSH_S):
                await self._converse(session, rows, turn)
        except (ModelError, TimeoutError) as error:
            _log.info("nothing was kept before", error=getattr(error, "logged", "it took too long"))

    async def _converse(self, session: Session, rows: Sequence[Message], turn: Turn) -> None:
        """Asks as the conversation does, so that it is read from the cache. What is said is shown to nobody."""
        now, order = self._clock.now(), _words()["flush"]
        context = turn.context(session, now, rows)
        said = [*rows, Message(role="user", kind="notice", text=order, session_id=session.id, created_at=now)]
        for _ in range(FLUSH_ROUNDS):
            payer, key = turn.payer(session), turn.outbox_item.key
            asked = request(session, said, self._tools.values(), self._options, payer, "compression", key)
            completion = await self._model.complete(asked, lambda _: None, lambda _: None)
            calls = [block for block in completion.blocks if block.get("type") == "tool_use"]
            if not calls:
                return
            answer = Message(role="assistant", text="", blocks=completion.blocks, session_id=session.id, created_at=now)
            said += [answer, *await self._keeping.run(calls, context)]


@dataclass(frozen=True)
class Summarizer:
    """Makes summaries, by `helper`, a model of this `name`, where there is one."""

    helper: Model | None
    name: str
    windows: Windows
    clock: Clock
    zone: ZoneInfo

    async def summary(self, session: Session, parts: Parts, kept: str, payer: Payer, focus: str) -> str:
        """As the model gets it, with what memory has `kept`; by rules where the helper makes none."""
        text = before = unframed(parts.summary)
        if parts.middle:
            chars = int(min(SUMMARY * self.windows.of(session.model), LONGEST_SUMMARY_TOKENS) * CHARS_PER_TOKEN)
            text = await self._by_helper(parts.middle, before, payer, chars, focus)
            text = text or await asyncio.to_thread(ruled, parts.middle, before, self.zone, chars)
        return framed(text, kept, self.clock.now().astimezone(self.zone), is_kept=not session.is_incognito)

    async def _by_helper(self, rows: Sequence[Message], text: str, payer: Payer, chars: int, focus: str) -> str:
        """Part after part, each together with the summary of those before; empty where one fails."""
        if self.helper is None:
            return ""
        words, today = _words(), self.clock.now().astimezone(self.zone)
        order = words["order"].format(today=f"{today:%A} {today.day} {today:%B %Y}", chars=chars)
        order = "\n".join([words["focus"].format(focus=neutralise(cut(focus, 200))), order]) if focus else order
        most_tokens = min(PART_TOKENS, PART_SHARE * await self.windows.learn(self.name))
        asked = partial(ask, self.helper, self.name, "compression", words["summary"], payer=payer)
        try:
            async with asyncio.timeout(SUMMARY_S):
                for part in await asyncio.to_thread(transcript, rows, self.zone, most_tokens):
                    earlier = [f"{words['before']}\n\n{text}"] if text else []
                    given = (*earlier, f"{words['said']}\n\n{part}", order)
                    text = checked(await asked(given, max_tokens=int(chars / CHARS_PER_TOKEN * 2)), chars)
        except (ModelError, TimeoutError) as error:
            _log.warning("the helper gave no summary", error=getattr(error, "logged", "it took too long"))
            return ""
        return text


@dataclass
class Compressor:
    """`threshold`: the share of the window that a request may take."""

    conversations: Conversations
    sessions: SessionTracker
    memory: MemoryManager
    flush: Flush
    summarizer: Summarizer
    windows: Windows
    threshold: float
    _futile: Counter[int] = field(default_factory=Counter)
    """By the first session of a lineage, how many compressions in a row did not help."""

    def __post_init__(self) -> None:
        self.sessions.flush = self.flush.run

    async def fitted(
        self, session: Session, rows: list[Message], turn: Turn, coming: str = ""
    ) -> tuple[Session, list[Message]]:
        """The session and its history, or its child where the next request, with what is `coming`, would be too long.
        Raises StaleReadError, StoreError."""
        if self._futile[_root(session)] >= FUTILE:
            return session, rows
        taken, window = tokens(session, rows), self.windows.of(session.model)
        taken += min(tokens_in(coming), self.windows.longest(session.model))
        if taken > FIRST_LOOK * window:
            window = await self.windows.learn(session.model)
        if taken <= self.threshold * window and len(rows) <= MOST_MESSAGES:
            return session, rows
        return await self.compressed(session, rows, turn) or (session, rows)

    def has_given_up(self, session: Session) -> bool:
        """Whether it has just been given up, which is told once."""
        is_new = self._futile[_root(session)] == FUTILE
        self._futile[_root(session)] += is_new
        return is_new

    async def compressed(
        self, session: Session, rows: Sequence[Message], turn: Turn, *, is_exceeded: bool = False
    ) -> tuple[Session, list[Message]] | None:
        """The child of the session, with its history; None where there is nothing to condense. `is_exceeded`: the model
        has refused the session as too long. Raises StaleReadError, StoreError."""
        window, taken = await self.windows.learn(session.model), sum(map(tokens_of, rows))
        # Whatever window the model has that refuses it: much less than what was sent.
        parts = _parts(rows, min(window, REFUSED_SHARE * taken) if is_exceeded else window)
        if not parts.middle and not parts.sent:
            self._futile[_root(session)] += 1
            return None
        if parts.middle and not is_exceeded:
            await self.flush.run(session, rows, turn)
        child = await self._continued(session, rows, parts, turn)
        history = await self.conversations.history(child, turn.scopes)
        # What the server has counted, tools among it, is in no estimate.
        left = tokens(session, rows) - taken + sum(map(tokens_of, history))
        helped = left <= self.threshold * window and len(history) <= MOST_MESSAGES
        self._futile[_root(session)] = 0 if helped else self._futile[_root(session)] + 1
        _log.info("a conversation was condensed", session=session.id, child=child.id, messages=len(parts.middle))
        return child, history

    async def by_hand(self, session: Session, turn: Turn, focus: str) -> Session:
        """For the person, whatever it takes now. Raises Refused where there is nothing to condense."""
        rows = await self.conversations.history(session, turn.scopes)
        parts = _parts(rows, await self.windows.learn(session.model), is_small=True)
        if not parts.middle or not session.sight <= turn.scopes:
            raise Refused(NOTHING)
        await self.flush.run(session, rows, turn)
        self._futile[_root(session)] = 0
        return await self._continued(session, rows, parts, turn, focus, is_by_hand=True)

    async def _continued(
        self,
        session: Session,
        rows: Sequence[Message],
        parts: Parts,
        turn: Turn,
        focus: str = "",
        *,
        is_by_hand: bool = False,
    ) -> Session:
        kept = await self.memory.on_pre_compress(session, rows)
        text = await self.summarizer.summary(session, parts, kept, turn.payer(session), focus)
        return await self.sessions.compress(session, parts, text, turn, is_by_hand=is_by_hand)


def _parts(rows: Sequence[Message], room: float, *, is_small: bool = False) -> Parts:
    tail = TAIL * room
    if is_small or len(rows) > MOST_MESSAGES:
        tail = min(tail, SHORT_TAIL * sum(map(tokens_of, rows)))
    return shown(parted(rows, tail, HEAD * room), TAIL * room, LONGEST_SHARE * room)


def _root(session: Session) -> int:
    return session.root_id or session.id


def _words() -> Mapping[str, Any]:
    return language_data("compression", "core.agent")
