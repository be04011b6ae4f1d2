"""Finds or opens the session that a turn belongs to, and titles and ends sessions.

Each address has at most one open session. A turn continues this session or opens another one: a new
session, an earlier session, or a child of an earlier session. A child is opened after a
compression, at a boundary such as midnight, for a branch, and after a restart with other tools.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from itertools import takewhile

import structlog

from config.model_options import ModelOptions
from core.agent.prompt import (
    MAX_JOB_RESULTS,
    PromptWriter,
    estimate_row_tokens,
    estimate_text_tokens,
    with_attachments,
)
from core.agent.summary import HistoryParts, split_history
from core.errors import ModelError
from core.guard.origin_and_fence import scrub, typed_text
from core.memory.manager import MemoryManager
from core.models.wrappers import ask_model
from core.ports import Clock, Model
from core.store.actions import YES_TO_MODEL, YES_TO_REPETITION, ButtonAction, build_yes
from core.store.mailbox import InboxEntry, OutboxItem
from core.store.rows import find_last_turn, fold
from core.store.sessions import Conversations
from core.text.normalize import language_data, shorten
from core.text.terms import is_smalltalk
from core.types import (
    Address,
    BillingScope,
    CarryOver,
    EndReason,
    ErasureEpoch,
    Inbound,
    Json,
    Message,
    Scope,
    Session,
    SessionPrompt,
    ToolContext,
    Window,
)

# The largest possible id of a row.
MAX_ROW_ID = 2**63 - 1
# A session that is resumed at another address continues with its last turns, which may take this
# share of the context window.
RESUMED_TAIL_SHARE = 0.20

TITLE_CHARS = 60
# To suggest a title, the helper model reads this many characters of the question and of the answer.
TITLE_SOURCE_CHARS = 1500
TITLE_MAX_TOKENS = 64
_log = structlog.get_logger("sessions")
# The number of a continued session: "Trip #2".
_TITLE_NUMBER = re.compile(r" #(\d{1,9})\Z")


# Returns whether the question at the end of an answer repeats text that the person didn't type.
QuestionCheck = Callable[[str, Sequence[Message], ToolContext], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Messages that are answered together, with the scopes that the answer may use."""

    address: Address
    # The turn writes to this scope.
    scope: Scope
    # The turn may read these scopes, as of `epoch`.
    scopes: frozenset[Scope]
    # The messages, in order of arrival.
    entries: tuple[InboxEntry, ...]
    outbox_item: OutboxItem
    # The last sender is the owner.
    is_owner: bool = False
    epoch: ErasureEpoch | None = None
    # Describes the platform, for the system prompt of a new session.
    hint: str = ""
    # The turn gets a new session even if a session is open, as scheduled questions do.
    is_new_session: bool = False
    # The language of the answer, such as "de".
    language: str = ""
    # The time zone of the person who asks, as an IANA name. "" means the zone in settings.
    zone: str = ""

    @property
    def text(self) -> str:
        return "\n".join(entry.inbound.text for entry in self.entries)

    @property
    def message_ids(self) -> frozenset[str]:
        """The ids of the messages on their platform."""
        return frozenset(entry.inbound.message_id for entry in self.entries)

    async def add_yes(
        self,
        actions: Sequence[ButtonAction],
        answer: str,
        rows: Sequence[Message],
        context: ToolContext,
        repeats_foreign_text: QuestionCheck,
    ) -> Sequence[ButtonAction]:
        """Return the actions of an answer, with a row that says what a "yes" to it means.

        No row is added if the answer doesn't end with its only question, if something else waits
        for the person, or in a scheduled answer. `rows` is the history that the model has read.
        """
        has_mark = "?" in answer or "\uff1f" in answer
        if not has_mark or self.address.platform == "cron" or any(each.address for each in actions):
            return actions
        # Imported here because few answers ask something.
        from core.review.phrases import asks_for_yes

        if not asks_for_yes(answer):
            return actions
        is_repetition = await repeats_foreign_text(answer, rows, context)
        command = YES_TO_REPETITION if is_repetition else YES_TO_MODEL
        account, key = self.entries[-1].inbound.account, self.outbox_item.key
        yes = build_yes(command, account, self.scope, self.address, key, context.now)
        return [*actions, yes]

    def billing_scope(self, session: Session) -> BillingScope:
        return BillingScope(
            session_id=session.id,
            root_id=session.root_id,
            scope=session.scope,
            user_id=self.entries[-1].inbound.sender.id,
        )

    def build_tool_context(
        self, session: Session, now: datetime, rows: Sequence[Message] = ()
    ) -> ToolContext:
        """Build the context for the tools of this turn.

        `rows` is the history that the model reads.
        """
        questions = (row.id for row in reversed(rows) if row.role == "user" and row.kind == "chat")
        return ToolContext(
            session=session,
            scope=self.scope,
            scopes=self.scopes,
            sender=self.entries[-1].inbound.sender,
            now=now,
            message_id=next(questions, None),
            window=window_of(session, rows),
            epoch=self.epoch,
            language=self.language,
            zone=self.zone,
        )


FlushCallback = Callable[[Session, Sequence[Message], Turn], Awaitable[None]]
"""Lets the model store notes about a session (`core.agent.compression.Flush`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """The times at which a session ends and the conversation continues in a new one."""

    # A session ends after a pause of this length.
    idle: timedelta | None = None
    # Sessions end every day at this time in `zone`.
    daily_at: time | None = None
    zone: tzinfo = UTC

    def end_reason(self, last_at: datetime, now: datetime) -> EndReason | None:
        """Return why a session with its last message at `last_at` ends, or None if it continues."""
        if self.idle and now - last_at >= self.idle:
            return "idle"
        if self.daily_at is None:
            return None
        # Before `daily_at`, the latest boundary was yesterday: with 04:00, a day is 04:00 to 04:00.
        since_midnight = timedelta(hours=self.daily_at.hour, minutes=self.daily_at.minute)
        day = now.astimezone(self.zone) - since_midnight
        latest_boundary = datetime.combine(day, self.daily_at, self.zone)
        return "daily" if last_at < latest_boundary else None


@dataclass
class SessionTracker:
    """Opens, titles and ends sessions, and informs `memory` of each change.

    Without a `helper` model, the title is the beginning of the first question.
    """

    conversations: Conversations
    prompt: PromptWriter
    memory: MemoryManager
    clock: Clock
    options: ModelOptions
    helper: Model | None
    boundary: Boundary = Boundary()
    # Called before a session ends at a boundary.
    flush: FlushCallback | None = None
    # When the present tools replaced others. None if they never did. A session keeps its tools, so
    # an older session continues in a child.
    tools_since: datetime | None = None

    async def open(self, turn: Turn) -> tuple[Session, list[Message]]:
        """Return the session of a turn and its history, opening a session if necessary.

        The session has a system prompt for the scopes of the turn.
        """
        blank = self._blank_session(turn.address, turn.scope)
        if turn.is_new_session:
            return await self._open_scheduled(blank, turn)

        open_session = await self.conversations.load_open(turn.address, turn.scopes)
        if open_session is None:
            session = await self.conversations.ensure(blank)
            rows: list[Message] = []
        else:
            session, rows = open_session

        if session.scope != turn.scope or not session.prompt.visible_scopes <= turn.scopes:
            # The prompt and the recalled memory in the history contain data that this turn may not
            # read. Both stay in the old session.
            session = await self._open_next(session, blank, "rights", turn.epoch)
            return await self._with_stored_prompt(session, turn), []

        reason = await self._boundary_reason(session, rows, turn)
        if reason is not None:
            return await self._open_past_boundary(session, rows, blank, reason, turn)

        if self._has_other_tools(session) and rows and not _is_begun(turn, rows):
            child = await self._open_with_tools(session, rows, turn)
            return child, await self.conversations.load_history(child, turn.scopes)

        if not session.prompt.text:
            # A session without a prompt isn't always new: changed instructions or an erasure
            # remove the prompt, but they leave its `visible_scopes`.
            is_new = not (
                session.prompt.visible_scopes or session.parent_id or session.is_incognito
            )
            session = await self._with_stored_prompt(session, turn)
            if is_new:
                await self.memory.on_session_switch(session.id, None, "new")
        elif session.prompt.visible_scopes != turn.scopes:
            # Accounts were linked after the prompt was written. The new scopes are stored with the
            # prompt, so that memory recalled from them is dropped if the accounts are unlinked.
            session = await self.conversations.store_prompt(
                session.id, session.prompt.text, turn.scopes, turn.epoch
            )
        return session, rows

    async def _open_scheduled(self, blank: Session, turn: Turn) -> tuple[Session, list[Message]]:
        """Open a session for a scheduled question. Its history is the latest results of the job.

        If a process died while it was answering the question, the session of that answer continues,
        so that its tools don't run again.
        """
        results = await self.conversations.list_job_results(
            turn.address, turn.scopes, MAX_JOB_RESULTS
        )
        open_session = await self.conversations.load_open(turn.address, turn.scopes)
        if open_session is not None:
            session, rows = open_session
            if _is_begun(turn, rows) and session.prompt.visible_scopes == turn.scopes:
                return session, [*results, *rows]
        session = await self.conversations.create(blank, "cron")
        return await self._with_stored_prompt(session, turn), results

    async def _open_past_boundary(
        self,
        session: Session,
        rows: Sequence[Message],
        blank: Session,
        reason: EndReason,
        turn: Turn,
    ) -> tuple[Session, list[Message]]:
        """End a session at a boundary, open its child, and return the child and its history.

        The history consists of the job results at the end of the parent's history, because the
        person may be answering them now.
        """
        if self.flush is not None:
            await self.flush(session, rows, turn)
        job_rows = list(takewhile(lambda row: row.origin == "job", reversed(rows)))
        job_rows.reverse()
        child = replace(
            blank,
            model=self.options.keep_name(session.model),
            parent_id=session.id,
            title=next_title(session),
            carry_over=CarryOver(parent_from=job_rows[0].id if job_rows else None),
        )
        child = await self._open_next(session, child, reason, turn.epoch)
        return await self._with_stored_prompt(child, turn), job_rows

    def _has_other_tools(self, session: Session) -> bool:
        """Return whether the requests of a session so far had other tools than the present ones."""
        if self.tools_since is None or session.is_incognito:
            return False
        return session.started_at < self.tools_since

    async def _open_with_tools(
        self, session: Session, rows: Sequence[Message], turn: Turn
    ) -> Session:
        """End a session, and open a child that has the present tools and the whole history."""
        child = replace(
            self._with_history(session, rows),
            model=self.options.keep_name(session.model),
            title=next_title(session),
            prompt=SessionPrompt(),
            started_at=self.clock.now(),
        )
        summary = next((row for row in rows if row.kind == "summary"), None)
        child = await self._open_next(session, child, "tools", turn.epoch, summary)
        return await self._with_stored_prompt(child, turn)

    async def open_compressed_child(
        self,
        session: Session,
        parts: HistoryParts,
        summary: str,
        turn: Turn,
        *,
        is_by_hand: bool = False,
    ) -> Session:
        """End a session, and open a child that continues with a summary and some of its messages.

        `parts` says which messages the child keeps. If the person asked for the compression
        (`is_by_hand`), the child gets its system prompt in the next turn, because a command doesn't
        know the platform's hint for the prompt.
        """
        child = replace(
            self._child_session(session, session.address, session.scope, parts),
            title=next_title(session),
            is_incognito=session.is_incognito,
            prompt=SessionPrompt(visible_scopes=session.prompt.visible_scopes),
        )
        if not is_by_hand:
            child = await self._with_prompt(child, turn)
        summary_row = None
        if summary:
            summary_row = Message(
                role="user",
                kind="summary",
                text=summary,
                session_id=session.id,
                created_at=child.started_at,
                tool_name="compress" if is_by_hand else None,
            )
        return await self._open_next(
            session, child, "compression", turn.epoch, summary_row, parts.sent_blocks
        )

    async def end(self, session: Session) -> None:
        """End a session because the person starts a new one."""
        await self.conversations.end(session.id, "new", self.clock.now())
        await self._notify_end(session)

    async def finish_turn(self, turn: Turn, session: Session, rows: Sequence[Message]) -> None:
        """Title the session and inform memory, after the answer of a turn was delivered.

        `rows` is the history of the session. Raises StaleReadError if data was erased meanwhile.
        """
        if rows and not session.title and not session.is_incognito:
            await self._store_title(session, rows, turn)
        await self.memory.on_turn_end(session, rows)
        if not rows:
            return
        typed_words = "\n".join(typed_text(row) for row in find_last_turn(rows))
        context = turn.build_tool_context(session, rows[-1].created_at, rows)
        await self.memory.queue_prefetch(typed_words, context)

    async def ensure_session(self, turn: Turn) -> Session:
        """Return the open session of the turn's address.

        If there is none, open one without a prompt.
        """
        return await self.conversations.ensure(self._blank_session(turn.address, turn.scope))

    async def find_session(self, address: Address, scope: Scope) -> Session:
        """Return the open session of an address, or a new one that isn't stored."""
        session = await self.conversations.find_open(address)
        return session or self._blank_session(address, scope)

    async def amend(self, inbound: Inbound, scope: Scope) -> bool:
        """Apply an edit or a deletion on a platform to the stored message and to memory.

        `scope` is the scope of the message's chat. Returns False if the message isn't stored.
        """
        text = None
        judge = None
        if inbound.kind != "delete":
            # Imported here because few messages are edited.
            from core.review.edited_origin import make_edit_judge

            text = with_attachments(inbound.text, inbound.attachments)
            judge = await make_edit_judge(self.conversations, inbound, scope)
        message_id = await self.conversations.amend(
            inbound.address, inbound.message_id, text, judge
        )
        if message_id is None:
            return False
        await self.memory.resync_messages(message_id)
        return True

    async def branch(
        self,
        session: Session,
        scopes: frozenset[Scope],
        title: str | None,
        at: datetime,
        epoch: ErasureEpoch | None,
    ) -> Session:
        """Open a child that begins with the whole history of this session.

        The child has the same address, starts at the time `at`, and isn't part of the parent's
        lineage.
        """
        rows = await self.conversations.load_history(session, scopes)
        child = replace(self._with_history(session, rows), title=title, started_at=at)
        summary = next((row for row in rows if row.kind == "summary"), None)
        return await self._open_next(session, child, "branch", epoch, summary)

    def _with_history(self, session: Session, rows: Sequence[Message]) -> Session:
        """Return a child, not stored yet, that begins with the whole history of a session."""
        own_ids = [row.id for row in rows if row.session_id == session.id and row.kind != "summary"]
        first_id = session.carry_over.parent_from or min(own_ids, default=None)
        return replace(
            session,
            parent_id=session.id,
            carry_over=replace(session.carry_over, parent_from=first_id),
            external_id=None,
            last_at=None,
        )

    async def resume(
        self,
        session: Session,
        address: Address,
        scope: Scope,
        scopes: frozenset[Scope],
        epoch: ErasureEpoch | None,
    ) -> Session:
        """Continue an earlier session at `address`.

        At its own address, the session is reopened. At another address, a child continues with the
        session's last turns.
        """
        if session.address == address and session.scope == scope:
            return await self._reopen(session)
        parts = split_history(
            await self.conversations.load_history(session, scopes),
            RESUMED_TAIL_SHARE * self.options.window_tokens,
            0.0,
        )
        child = self._child_session(session, address, scope, parts)
        summary = parts.summary if session.prompt.visible_scopes <= scopes else None
        open_session = await self.conversations.find_open(address)
        return await self._open_next(open_session, child, "new", epoch, summary)

    async def _reopen(self, session: Session) -> Session:
        """Reopen a session at its own address, and end the session that is open there."""
        if session.end is None:
            return session
        open_session = await self.conversations.find_open(session.address)
        reopened_session = await self.conversations.reopen(session.id, self.clock.now())
        if open_session is not None:
            await self._notify_end(open_session)
        await self.memory.on_session_switch(session.id, None, "resume")
        return reopened_session

    def _blank_session(self, address: Address, scope: Scope) -> Session:
        return Session(
            address=address, scope=scope, started_at=self.clock.now(), model=self.options.chat
        )

    def _child_session(
        self, parent: Session, address: Address, scope: Scope, parts: HistoryParts
    ) -> Session:
        """Return a session, not stored yet, that begins with the head and tail of `parent`."""
        return replace(
            self._blank_session(address, scope),
            model=self.options.keep_name(parent.model),
            parent_id=parent.id,
            carry_over=CarryOver(
                parent_from=parts.tail[0].id if parts.tail else None,
                head_from=parts.head[0].id if parts.head else None,
                head_until=parts.head[-1].id if parts.head else None,
            ),
            title=parent.title,
        )

    async def _open_next(
        self,
        previous: Session | None,
        session: Session,
        reason: EndReason,
        epoch: ErasureEpoch | None,
        summary: Message | None = None,
        sent_blocks: Mapping[int, tuple[Json, ...]] | None = None,
    ) -> Session:
        """Store a session that replaces `previous` for `reason`, and inform memory.

        Returns the stored session. `Conversations.create` describes the other arguments.
        """
        new_session = await self.conversations.create(
            session, reason, epoch, summary=summary, sent_blocks=sent_blocks
        )
        if previous is not None:
            await self._notify_end(previous)
        if new_session.is_incognito:
            return new_session
        parent_id = session.parent_id or (previous.id if previous is not None else None)
        # A session that replaces another for the reason "new" is one that is resumed elsewhere.
        switch = "resume" if reason == "new" else reason
        await self.memory.on_session_switch(new_session.id, parent_id, switch)
        return new_session

    async def _boundary_reason(
        self, session: Session, rows: Sequence[Message], turn: Turn
    ) -> EndReason | None:
        """Return why the session ends before this turn, or None if it continues.

        The pause is measured from the last message or command of the session, without job results.
        A turn that is repeated, for example after a crash, stays in its session.
        """
        if session.is_incognito:
            return None
        now = self.clock.now()
        last_at = next((row.created_at for row in reversed(rows) if row.origin != "job"), now)
        if self.boundary.end_reason(last_at, now) is None:
            return None
        if _is_begun(turn, rows):
            return None
        last_message_at = await self.conversations.last_message_at(session)
        return self.boundary.end_reason(last_message_at or now, now)

    async def _notify_end(self, session: Session) -> None:
        rows = await self.conversations.load_history(session, frozenset({session.scope}))
        await self.memory.on_session_end(session, rows)

    async def _with_prompt(self, session: Session, turn: Turn) -> Session:
        """Return the session with a new system prompt, without storing the prompt."""
        context = turn.build_tool_context(session, session.started_at)
        prompt = await self.prompt.write_system_prompt(context, _prompt_hint(session, turn))
        session_prompt = SessionPrompt(text=prompt, visible_scopes=turn.scopes)
        return replace(session, prompt=session_prompt)

    async def _with_stored_prompt(self, session: Session, turn: Turn) -> Session:
        """Write and store a new system prompt, and return the session with that prompt."""
        prompt = (await self._with_prompt(session, turn)).prompt.text
        return await self.conversations.store_prompt(session.id, prompt, turn.scopes, turn.epoch)

    async def _store_title(self, session: Session, rows: Sequence[Message], turn: Turn) -> None:
        """Title a session with its first question, and later with the helper's suggestion.

        The suggestion is dropped if the person has changed the title meanwhile.
        """
        questions = [row.text for row in rows if row.role == "user" and row.kind == "chat"]
        answers = [row.text for row in rows if row.role == "assistant"]
        # A greeting says nothing about the conversation, so the title is made from a later message.
        question = _find_first_statement(questions)
        if not question:
            return
        provisional_title = shorten(question, TITLE_CHARS)
        await self.conversations.retitle(session.id, provisional_title, turn.epoch)
        if not answers or not answers[-1]:
            return
        title = await self._suggest_title(question, answers[-1], turn.billing_scope(session))
        if not title:
            return
        stored_session = await self.conversations.find(session.id, frozenset((session.scope,)))
        if stored_session is not None and stored_session.title == provisional_title:
            await self.conversations.retitle(session.id, title, turn.epoch)

    async def _suggest_title(self, question: str, answer: str, billing: BillingScope) -> str:
        """Return the helper model's title, or "" if there is no helper or it fails."""
        if self.helper is None:
            return ""
        exchange = (
            f"Person: {question[:TITLE_SOURCE_CHARS]}\n\nAssistant: {answer[:TITLE_SOURCE_CHARS]}"
        )
        try:
            completion = await ask_model(
                self.helper,
                self.options.helper,
                "title",
                language_data("prompts", "core.agent")["title"],
                (exchange,),
                max_tokens=TITLE_MAX_TOKENS,
                billing=billing,
            )
        except ModelError as error:
            _log.info("the helper model suggested no title", error=error.log_message)
            return ""
        return shorten(scrub(completion.text).strip().strip('"“”'), TITLE_CHARS)


def _is_begun(turn: Turn, rows: Sequence[Message]) -> bool:
    """Return whether a history contains messages of a turn, because the turn is repeated."""
    message_ids = {entry.inbound.message_id for entry in turn.entries}
    return any(row.external_id in message_ids for row in rows)


def _find_first_statement(texts: Sequence[str]) -> str:
    """Return the first text that isn't small talk, or "" if all texts are small talk."""
    for text in texts:
        if not is_smalltalk(text):
            return text
    return ""


def next_title(session: Session) -> str | None:
    """Return a title for the session that continues this one: ``Trip`` -> ``Trip #2``.

    Returns None if this session has no title.
    """
    if not session.title:
        return session.title
    number = _TITLE_NUMBER.search(session.title) if session.parent_id is not None else None
    if number is None:
        return f"{session.title} #2"
    return f"{session.title[: number.start()]} #{int(number[1]) + 1}"


def window_of(session: Session, rows: Sequence[Message]) -> Window:
    """Return the spans of messages that are in the model's context. Recall leaves these out.

    A span is (id of the session, id of its first message, id of its last message). Messages that
    were replaced by a summary belong to no span. The last span is that of the session itself. It
    has no end, because it includes the messages of this turn.
    """
    no_spans: Window = ()
    spans = fold(rows, _add_to_spans, no_spans)
    first_own_id = 0
    if spans and spans[-1][0] == session.id:
        first_own_id = spans[-1][1]
        spans = spans[:-1]
    earlier = sorted(span for span in spans if span[0])
    return (*earlier, (session.id, first_own_id, MAX_ROW_ID))


def _add_to_spans(spans: Window, row: Message) -> Window:
    if row.kind == "summary":
        # A summary ends the span before it. `window_of` removes this placeholder.
        return (*spans, (0, 0, 0))
    if row.origin == "job":
        return spans
    if spans and spans[-1][0] == row.session_id:
        return (*spans[:-1], (row.session_id, spans[-1][1], row.id))
    return (*spans, (row.session_id, row.id, row.id))


def estimate_request_tokens(session: Session, rows: Sequence[Message]) -> float:
    """Estimate the tokens of the next request.

    The estimate is the usage that the provider reported for the session's last call, plus an
    estimate of the rows after that call. The usage of a parent session doesn't count, because it
    includes the parent's longer history.
    """
    session_id, tokens, estimate = fold(rows, _add_tokens, (0, 0.0, 0.0))
    if session_id == session.id:
        return tokens
    return estimate_text_tokens(session.prompt.text) + estimate


def _add_tokens(value: tuple[int, float, float], row: Message) -> tuple[int, float, float]:
    """Add a row to the running totals of `estimate_request_tokens`.

    The totals are the id of the session with the last reported usage, the tokens based on that
    usage, and the tokens by estimate alone.
    """
    session_id, tokens, estimate = value
    more = estimate_row_tokens(row)
    if row.usage and row.usage.total_input:
        return row.session_id, row.usage.total_input + row.usage.output, estimate + more
    return session_id, tokens + more, estimate + more


def _prompt_hint(session: Session, turn: Turn) -> str:
    prompts = language_data("prompts", "core.agent")
    lines = [turn.hint]
    if session.scope.is_group:
        lines.append(prompts["group"])
    if turn.language not in ("", "en"):
        lines.append(prompts["language"].format(code=turn.language))
    if session.is_incognito:
        lines.append(prompts["incognito"])
    return "\n".join(lines)
