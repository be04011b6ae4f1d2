"""Compresses conversations that become too long for the model.

A compressed conversation continues in a child session, which begins with the first exchange, a
summary and the last turns. The other messages stay in state.db, where recall finds them. A helper
model writes the summary. If no helper model is configured, or if its answer isn't a summary, rules
write it. The child session is stored in one transaction at the end. Until then, nothing changes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from zoneinfo import ZoneInfo

import structlog

from config.model_options import ModelOptions
from core.agent.prompt import (
    CHARS_PER_TOKEN,
    build_request,
    cut_to_tokens,
    estimate_row_tokens,
    estimate_text_tokens,
)
from core.agent.sessions import SessionTracker, Turn, estimate_request_tokens
from core.agent.summary import (
    HistoryParts,
    extract_summary,
    frame_summary,
    prune_parts,
    split_history,
    summarize_by_rules,
    unframe_summary,
    write_transcript,
)
from core.agent.tool_runner import ToolRunner
from core.errors import ModelError, Refused
from core.guard.origin_and_fence import neutralise
from core.media.descriptions import describe_old_pictures
from core.memory.manager import MemoryManager
from core.models.wrappers import MeteredModel, ask_model
from core.ports import Clock, Model
from core.store.media.files import Files
from core.store.sessions import Conversations
from core.text.normalize import language_data
from core.types import BillingScope, Message, Session

# Shares of the model's context window.
TAIL_SHARE = 0.2  # the last turns, at most
HEAD_SHARE = 0.05  # the first exchange, at most
SUMMARY_SHARE = 0.05  # the summary, at most
MAX_MESSAGE_SHARE = 0.4  # one message, at most
LOOK_UP_SHARE = 0.1  # for a longer request, the server is asked for the window's real size
# If the model refuses a history as too long, the window is assumed to be this share of the history.
REFUSED_SHARE = 0.5
MAX_SUMMARY_TOKENS = 6_000
# A conversation with more messages is compressed even if it has few tokens, because each answer
# loads all messages.
MAX_MESSAGES = 5_000
# A compression is futile if the conversation is still too long. After this many futile compressions
# in a row, automatic compression stops.
MAX_FUTILE_COMPRESSIONS = 2
# A conversation that is compressed on request, or because of its number of messages, may have few
# tokens. So its last turns may take at most this share of the conversation.
SHORT_TAIL_SHARE = 0.25
# The helper model reads at most this many tokens, and this share of its window, at once.
PART_TOKENS = 80_000
PART_SHARE = 0.5
FLUSH_ROUNDS = 2
FLUSH_TIMEOUT_S = 60.0
SUMMARY_TIMEOUT_S = 180.0
FOCUS_TOKENS = 200
# The tools that the model may call in a flush.
FLUSH_TOOLS = frozenset({"memory", "fact_store", "skill_manage", "skill_view", "skills_list"})
_log = structlog.get_logger("compression")


class ContextWindows:
    """The size of each model's context window, in tokens.

    The size comes from the settings (`model.windows`). If it's missing there, the model's server is
    asked once. The setting `model.window_tokens` limits a size from the server, and replaces it if
    the server doesn't report one. `fetch_window` asks the server; it returns None if the server
    doesn't report the size.
    """

    def __init__(
        self,
        options: ModelOptions,
        fetch_window: Callable[[str], Awaitable[int | None]] | None = None,
    ) -> None:
        self._options = options
        self._max_tokens = options.window_tokens
        self._fetch_window = fetch_window
        self._fetch_lock = asyncio.Lock()
        self._tokens_by_model = dict(options.windows)
        shortest = min([self._max_tokens, *self._tokens_by_model.values()])
        # A request with at most this many tokens is short enough for every known model.
        self.safe_request_tokens = LOOK_UP_SHARE * shortest

    def window_tokens(self, model: str) -> int:
        """Return the size of a model's window as far as it is known, without asking the server."""
        return self._tokens_by_model.get(model, self._max_tokens)

    def max_message_tokens(self, model: str) -> float:
        """Return the maximum number of tokens that the model gets of one message."""
        return MAX_MESSAGE_SHARE * self.window_tokens(model)

    async def look_up_again(self, model: str) -> None:
        """Ask the server for the size once more, after it has refused a request as too long.

        The refusal may have stated the real size. A size from the settings isn't changed.
        """
        if model not in self._options.windows:
            self._tokens_by_model.pop(model, None)
            await self.look_up(model)

    async def look_up(self, model: str) -> int:
        """Return the size of a model's window. If it isn't known yet, ask the server for it."""
        async with self._fetch_lock:
            if model not in self._tokens_by_model and self._fetch_window is not None:
                tokens = await self._fetch_window(model) or self._max_tokens
                tokens = min(tokens, self._max_tokens)
                self._tokens_by_model[model] = tokens
                self.safe_request_tokens = min(self.safe_request_tokens, LOOK_UP_SHARE * tokens)
        return self.window_tokens(model)


class Flush:
    """Asks the model to store notes before a conversation is compressed.

    After the compression, the model no longer sees the messages that the summary replaces.
    """

    def __init__(
        self, model: MeteredModel, tool_runner: ToolRunner, options: ModelOptions, clock: Clock
    ) -> None:
        self._model = model
        self._all_tools = tool_runner.tools
        self._tool_runner = tool_runner.with_tools(FLUSH_TOOLS)
        self._options = options
        self._clock = clock

    async def run(self, session: Session, rows: Sequence[Message], turn: Turn) -> None:
        """Let the model store notes about a session. A failure is logged and ignored.

        The model is interrupted after `FLUSH_TIMEOUT_S`.
        """
        can_write = any(not tool.is_read_only for tool in self._tool_runner.tools.values())
        if not can_write or not session.is_remembered or not session.prompt.text:
            return
        if turn.is_new_session:
            return
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT_S):
                await self._converse(session, rows, turn)
        except (ModelError, TimeoutError) as error:
            _log.info("the model stored nothing before a compression", error=_log_message(error))

    async def _converse(self, session: Session, rows: Sequence[Message], turn: Turn) -> None:
        """Ask the model and run the tools that it calls, in at most `FLUSH_ROUNDS` requests.

        The text of the model's answers is neither shown nor stored. Each request begins with the
        same conversation, so the provider reads it from its cache.
        """
        now = self._clock.now()
        context = turn.build_tool_context(session, now, rows)
        instruction = Message(
            role="user",
            kind="notice",
            text=_texts()["flush"],
            session_id=session.id,
            created_at=now,
        )
        messages = [*rows, instruction]
        for _ in range(FLUSH_ROUNDS):
            request = build_request(
                session,
                messages,
                self._all_tools.values(),
                self._options,
                turn.billing_scope(session),
                "compression",
                turn.outbox_item.key,
            )
            request = replace(request, model=self._options.keep_name(session.model))
            completion = await self._model.complete(request, lambda _: None, lambda _: None)
            calls = [block for block in completion.blocks if block.get("type") == "tool_use"]
            if not calls:
                return
            answer = Message(
                role="assistant",
                text="",
                blocks=completion.blocks,
                session_id=session.id,
                created_at=now,
            )
            messages += [answer, *await self._tool_runner.run(calls, context)]


@dataclass(frozen=True)
class Summarizer:
    """Writes summaries with the model `helper_name`, or by rules if `helper` is None."""

    helper: Model | None
    helper_name: str
    windows: ContextWindows
    clock: Clock
    zone: ZoneInfo

    async def summarize(
        self,
        session: Session,
        parts: HistoryParts,
        memory_text: str,
        billing: BillingScope,
        focus: str,
    ) -> str:
        """Summarize the parts that the child session leaves out, and frame the summary.

        `memory_text` has lines that memory providers add. `focus` is the subject that the summary
        should emphasize, as the person asked. If the helper fails, rules write the summary.
        """
        previous = unframe_summary(parts.summary)
        summary = previous
        if parts.middle:
            window_tokens = self.windows.window_tokens(session.model)
            max_tokens = min(SUMMARY_SHARE * window_tokens, MAX_SUMMARY_TOKENS)
            max_chars = int(max_tokens * CHARS_PER_TOKEN)
            summary = await self._ask_helper(parts.middle, previous, billing, max_chars, focus)
            if not summary:
                summary = await asyncio.to_thread(
                    summarize_by_rules, parts.middle, previous, self.zone, max_chars
                )
        now = self.clock.now().astimezone(self.zone)
        return frame_summary(summary, memory_text, now, is_kept=not session.is_incognito)

    async def _ask_helper(
        self,
        rows: Sequence[Message],
        previous: str,
        billing: BillingScope,
        max_chars: int,
        focus: str,
    ) -> str:
        """Return the helper model's summary, or "" if no helper is configured or a request fails.

        A long history is summarized in several requests. Each request contains a part of the
        history and the summary of the parts before it.
        """
        if self.helper is None:
            return ""
        texts = _texts()
        instruction = self._render_instruction(max_chars, focus)
        window_tokens = await self.windows.look_up(self.helper_name)
        part_tokens = min(PART_TOKENS, PART_SHARE * window_tokens)
        summary = previous
        try:
            async with asyncio.timeout(SUMMARY_TIMEOUT_S):
                for part in await asyncio.to_thread(write_transcript, rows, self.zone, part_tokens):
                    blocks = [f"{texts['said']}\n\n{part}", instruction]
                    if summary:
                        blocks.insert(0, f"{texts['before']}\n\n{summary}")
                    completion = await ask_model(
                        self.helper,
                        self.helper_name,
                        "compression",
                        texts["summary"],
                        blocks,
                        max_tokens=int(max_chars / CHARS_PER_TOKEN * 2),
                        billing=billing,
                    )
                    summary = extract_summary(completion, max_chars)
        except (ModelError, TimeoutError) as error:
            _log.warning("the helper gave no summary", error=_log_message(error))
            return ""
        return summary

    def _render_instruction(self, max_chars: int, focus: str) -> str:
        """Return the last block of the helper's request: the focus, the task and the length."""
        texts = _texts()
        today = self.clock.now().astimezone(self.zone)
        date = f"{today:%A} {today.day} {today:%B %Y}"
        instruction: str = texts["order"].format(today=date, chars=max_chars)
        if not focus:
            return instruction
        focus = neutralise(cut_to_tokens(focus, FOCUS_TOKENS))
        return f"{texts['focus'].format(focus=focus)}\n{instruction}"


@dataclass
class Compressor:
    """Compresses conversations that are too long, or that a person asks to compress."""

    conversations: Conversations
    sessions: SessionTracker
    memory: MemoryManager
    flush: Flush
    summarizer: Summarizer
    windows: ContextWindows
    # The share of the window that a request may take.
    threshold: float
    # The files of messages. None if no pictures are kept.
    files: Files | None = None
    # The number of futile compressions in a row, by the id of the lineage's first session.
    _futile_counts: Counter[int] = field(default_factory=Counter)

    async def compress_if_needed(
        self, session: Session, rows: list[Message], turn: Turn, incoming_text: str = ""
    ) -> tuple[Session, list[Message]]:
        """Compress a session if its next request would be too long.

        Returns the session that continues the conversation, and the history of that session. These
        are `session` and `rows` if no compression is needed. `incoming_text` is the new message,
        which isn't among `rows` yet. Raises StaleReadError if data was erased meanwhile, and
        StoreError if the store fails.
        """
        if self._futile_counts[_root_id(session)] >= MAX_FUTILE_COMPRESSIONS:
            return session, rows
        window_tokens = self.windows.window_tokens(session.model)
        incoming_tokens = estimate_text_tokens(incoming_text)
        incoming_tokens = min(incoming_tokens, self.windows.max_message_tokens(session.model))
        tokens = estimate_request_tokens(session, rows) + incoming_tokens
        if tokens > LOOK_UP_SHARE * window_tokens:
            window_tokens = await self.windows.look_up(session.model)
        if tokens <= self.threshold * window_tokens and len(rows) <= MAX_MESSAGES:
            return session, rows
        continuation = await self.compress(session, rows, turn)
        return (session, rows) if continuation is None else continuation

    def pop_give_up_notice(self, session: Session) -> bool:
        """Return True once after automatic compression has given up.

        Later calls return False until a compression succeeds or the person asks for one, so the
        person gets a single notice.
        """
        root_id = _root_id(session)
        if self._futile_counts[root_id] != MAX_FUTILE_COMPRESSIONS:
            return False
        # A count above the maximum means that the person has already got the notice.
        self._futile_counts[root_id] += 1
        return True

    async def compress(
        self, session: Session, rows: Sequence[Message], turn: Turn, *, is_exceeded: bool = False
    ) -> tuple[Session, list[Message]] | None:
        """Compress a session, and return the child session that continues it and its history.

        Returns None if nothing can be left out or shortened. `is_exceeded` means that the model has
        refused the history as too long. Raises StaleReadError if data was erased meanwhile, and
        StoreError if the store fails.
        """
        if is_exceeded:
            await self.windows.look_up_again(session.model)
        window_tokens = await self.windows.look_up(session.model)
        row_tokens = sum(map(estimate_row_tokens, rows))
        budget_tokens: float = window_tokens
        if is_exceeded:
            # The model's real window is unknown but shorter than the request.
            budget_tokens = min(window_tokens, REFUSED_SHARE * row_tokens)
        parts = _split_for_window(rows, budget_tokens)
        if not parts.middle and not parts.sent_blocks:
            self._futile_counts[_root_id(session)] += 1
            return None

        if parts.middle and not is_exceeded:
            await self.flush.run(session, rows, turn)
        child = await self._open_child(session, rows, parts, turn)
        history = await self.conversations.load_history(child, turn.scopes)

        # The system prompt and the tool definitions aren't rows, so a compression doesn't shorten
        # them.
        fixed_tokens = estimate_request_tokens(session, rows) - row_tokens
        tokens = fixed_tokens + sum(map(estimate_row_tokens, history))
        if tokens <= self.threshold * window_tokens and len(history) <= MAX_MESSAGES:
            self._futile_counts[_root_id(session)] = 0
        else:
            self._futile_counts[_root_id(session)] += 1
        _log.info(
            "a conversation was compressed",
            session=session.id,
            child=child.id,
            messages=len(parts.middle),
        )
        return child, history

    async def compress_on_request(self, session: Session, turn: Turn, focus: str) -> Session:
        """Compress a session because the person asks for it, and return the child session.

        Raises Refused if the conversation is too short to leave anything out.
        """
        rows = await self.conversations.load_history(session, turn.scopes)
        window_tokens = await self.windows.look_up(session.model)
        parts = _split_for_window(rows, window_tokens, has_short_tail=True)
        if not parts.middle or not session.prompt.visible_scopes <= turn.scopes:
            raise Refused("too_short_to_summarize")
        await self.flush.run(session, rows, turn)
        self._futile_counts[_root_id(session)] = 0
        return await self._open_child(session, rows, parts, turn, focus, is_by_hand=True)

    async def _open_child(
        self,
        session: Session,
        rows: Sequence[Message],
        parts: HistoryParts,
        turn: Turn,
        focus: str = "",
        *,
        is_by_hand: bool = False,
    ) -> Session:
        """Summarize a session, and return the child session that continues it."""
        memory_text = await self.memory.on_pre_compress(session, rows)
        if self.files is not None and not session.is_incognito:
            pictures = await describe_old_pictures(parts.middle, self.files, turn.scopes)
            memory_text = "\n".join(filter(None, (memory_text, *pictures)))
        billing = turn.billing_scope(session)
        summary = await self.summarizer.summarize(session, parts, memory_text, billing, focus)
        return await self.sessions.open_compressed_child(
            session, parts, summary, turn, is_by_hand=is_by_hand
        )


def _split_for_window(
    rows: Sequence[Message], window_tokens: float, *, has_short_tail: bool = False
) -> HistoryParts:
    """Split a history so that the first exchange and the last turns fit into their shares.

    The shares are fractions of the window. With `has_short_tail`, the share of the last turns is a
    fraction of the conversation instead.
    """
    tail_tokens = TAIL_SHARE * window_tokens
    if has_short_tail or len(rows) > MAX_MESSAGES:
        row_tokens = sum(map(estimate_row_tokens, rows))
        tail_tokens = min(tail_tokens, SHORT_TAIL_SHARE * row_tokens)
    parts = split_history(rows, tail_tokens, HEAD_SHARE * window_tokens)
    return prune_parts(parts, TAIL_SHARE * window_tokens, MAX_MESSAGE_SHARE * window_tokens)


def _root_id(session: Session) -> int:
    return session.root_id or session.id


def _log_message(error: ModelError | TimeoutError) -> str:
    return error.log_message if isinstance(error, ModelError) else "it took too long"


def _texts() -> Mapping[str, Any]:
    return language_data("compression", "core.agent")
