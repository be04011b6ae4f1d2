"""Runs a turn: stores the question, asks the model, runs its tools, and stores the answer.

Every step is stored before the next step begins, so after a crash a turn continues without
repeating anything. This module doesn't call a platform. It passes a growing answer to
`RunningTurn.show`, and stores the finished answer in the turn's outbox item.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from functools import cached_property

from config.model_options import ModelOptions
from core.agent.compression import MAX_MESSAGES, Compressor
from core.agent.offline import OFFLINE_MODEL
from core.agent.prompt import (
    CHARS_PER_TOKEN,
    PromptWriter,
    build_request,
    with_attachments,
)
from core.agent.sessions import Turn, estimate_request_tokens
from core.agent.tool_runner import ToolRunner
from core.errors import MnemeError, ModelError, StaleReadError, word_clause
from core.guard.origin_and_fence import Scrubber, hide_citations, scrub, scrub_blocks
from core.media.intake import MediaIntake, Reception
from core.models.wrappers import TOO_LONG_STATUS, MeteredModel
from core.ports import Clock, TextCallback
from core.store.actions import ButtonAction
from core.store.incognito import INCOGNITO_BADGE
from core.store.rows import (
    find_answered_rows,
    find_open_calls,
    is_first_after_compression,
    is_first_turn,
    leave_out,
)
from core.store.sessions import Conversations
from core.store.usage_limits import ModelCall
from core.types import (
    Answer,
    Completion,
    Inbound,
    Json,
    Message,
    MessageKind,
    Quote,
    Session,
    ToolContext,
    TurnBudget,
    Usage,
)

# The mark at the end of an answer, by the stop reason of the Messages API. The marks are keys of
# `core/errors.toml`. The gateway words them for people.
_STOP_REASON_MARKS = {
    "max_tokens": "mark_cut_off",
    "refusal": "mark_declined",
    "model_context_window_exceeded": "mark_window_full",
}


class TurnProgress(Enum):
    """Whether a running turn can restart with new messages without the person noticing."""

    UNTOUCHED = "untouched"  # nothing was shown, and the model hasn't answered
    STARTED = "started"  # something was shown, or the model has answered at least once
    INTERRUPTED = "interrupted"  # the turn will restart; this attempt may not store anything else


@dataclass(kw_only=True)
class RunningTurn:
    """A turn while it's being answered, with its history and the answer so far."""

    turn: Turn
    session: Session
    # The history of the session, oldest first. Each stored row is added at the end.
    rows: list[Message]
    # Called with the whole answer so far whenever the answer grows.
    show: TextCallback = lambda _: None
    progress: TurnProgress = TurnProgress.UNTOUCHED
    # The texts of the finished model calls.
    finished_texts: list[str] = field(default_factory=list)
    # The text of the current model call so far, without memory fences.
    current_text: str = ""
    # How many model calls have been answered.
    answered_calls: int = 0
    # A model call is running. The call is charged even if it's cancelled.
    is_call_open: bool = False
    # Model calls that aren't in the usage log yet.
    unlogged_calls: list[ModelCall] = field(default_factory=list)
    # Limits the model calls of the turn's tools. None until a tool is called.
    budget: TurnBudget | None = None
    # The raw text of the current call, as the model client last reported it.
    _received_text: str = field(default="", init=False)
    _scrubber: Scrubber = field(default_factory=Scrubber, init=False)

    def begin_call(self) -> None:
        self._reset_text()
        self.is_call_open = True

    def end_call(self, call: ModelCall | None) -> None:
        """Record that the model has answered. `call` is None if no tokens were counted."""
        self._mark_started()
        if call is not None:
            is_first = self.answered_calls == 0
            self.unlogged_calls.append(replace(call, turns=1 if is_first else 0))
        self.answered_calls += 1
        self.is_call_open = False

    def on_text(self, text: str) -> None:
        """Record the whole text of the current call so far, and show the answer so far.

        If `text` doesn't begin with the previous text, the model client has repeated the request.
        """
        if not text.startswith(self._received_text):
            self._reset_text()
        self.current_text += self._scrubber.feed(text[len(self._received_text) :])
        self._received_text = text
        if self.current_text:
            self._mark_started()
        answer = self.render_answer(self.current_text.strip())
        self.show(hide_citations(answer, is_finished=False))

    def on_wait(self, sentence: str) -> None:
        """Show `sentence`, which says why the answer has to wait.

        If the turn is cancelled before the next request, this request counts no usage.
        """
        self._mark_started()
        self.is_call_open = False
        self.show(hide_citations(self.render_answer(f"_{sentence}_")))

    def interrupt(self) -> bool:
        """Mark the turn as interrupted so that it can restart. Returns False if it's too late."""
        if self.progress is TurnProgress.STARTED:
            return False
        self.progress = TurnProgress.INTERRUPTED
        return True

    def render_answer(self, last_text: str) -> str:
        """Return the answer as the person sees it: badge, heading, finished and last text."""
        badge = INCOGNITO_BADGE if self.session.is_incognito else ""
        heading = self.turn.entries[0].inbound.heading
        paragraphs = (badge, heading, *self.finished_texts, last_text)
        return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)

    def _reset_text(self) -> None:
        self._scrubber = Scrubber()
        self._received_text = ""
        self.current_text = ""

    def _mark_started(self) -> None:
        if self.progress is TurnProgress.UNTOUCHED:
            self.progress = TurnProgress.STARTED


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredTurn:
    """A turn with a stored answer, and the history of its session."""

    turn: Turn
    session: Session
    rows: Sequence[Message]
    answer: Answer
    # The conversation was just compressed automatically. The person gets a note, once.
    has_compressed: bool = False
    # Compression no longer makes the conversation short enough. The person gets a note, once.
    is_too_long: bool = False


AddReceipts = Callable[
    [Answer, Turn, Sequence[Message]], Awaitable[tuple[Answer, Sequence[ButtonAction]]]
]


@dataclass
class Agent:
    """Answers turns with a model and tools, and stores questions and answers."""

    model: MeteredModel
    conversations: Conversations
    compressor: Compressor
    prompt: PromptWriter
    tool_runner: ToolRunner
    clock: Clock
    options: ModelOptions
    # Adds a list of the tools' changes to an answer. Also returns the rows of the list's buttons.
    add_receipts: AddReceipts | None = None
    # Stores the files that people send. None if files aren't stored.
    media: MediaIntake | None = None

    def __post_init__(self) -> None:
        self.sessions = self.compressor.sessions
        # The turns that are being answered, by the key of the turn's outbox item.
        self._running: dict[str, RunningTurn] = {}

    async def answer(self, turn: Turn, show: TextCallback) -> AnsweredTurn:
        """Answer a turn, and store the question and the answer.

        On return, the inbox entries of `turn` are closed, and its outbox item contains the answer
        for the caller to deliver. Raises ModelError if the model doesn't answer, StoreError if the
        store fails, and StaleReadError if data was erased meanwhile or the turn was interrupted.
        """
        session, rows = await self.sessions.open(turn)
        session, rows = await self._compress_if_needed(session, rows, turn, turn.text)
        try:
            return await self._converse(
                RunningTurn(turn=turn, session=session, rows=rows, show=show)
            )
        except ModelError as error:
            if error.status != TOO_LONG_STATUS:
                raise
            # The model's window is smaller than assumed. Compress the session, and ask again.
            session, rows = await self.sessions.open(turn)
            continuation = await self.compressor.compress(session, rows, turn, is_exceeded=True)
            if continuation is None:
                raise
        session, rows = continuation
        return await self._converse(RunningTurn(turn=turn, session=session, rows=rows, show=show))

    async def receive_files(self, turn: Turn) -> tuple[Turn, Sequence[Reception]]:
        """Store the files of the turn's messages, and return the result for each file.

        Waits as long as the settings allow. The returned turn has the transcripts of voice
        messages.
        """
        if self.media is None:
            return turn, ()
        receptions = await asyncio.gather(
            *(self.media.receive(entry.inbound, turn.scope, turn.epoch) for entry in turn.entries)
        )
        entries = [
            replace(entry, inbound=reception.inbound)
            for entry, reception in zip(turn.entries, receptions, strict=True)
        ]
        return replace(turn, entries=tuple(entries)), receptions

    async def stop(self, turn: Turn, stored_answer: Answer | None = None) -> AnsweredTurn:
        """End a turn that the person stopped, and store its text so far with a mark.

        If the whole answer is already stored, pass it as `stored_answer`. In this case, nothing
        else is stored.
        """
        # The running turn is removed first. If an erasure makes the caller repeat `stop`, the text
        # from before the erasure is no longer there to be stored.
        cancelled_turn = self._running.pop(turn.outbox_item.key, None)
        session, rows = await self.sessions.open(turn)
        if stored_answer is not None:
            return AnsweredTurn(turn=turn, session=session, rows=rows, answer=stored_answer)
        running = RunningTurn(turn=turn, session=session, rows=rows)
        if cancelled_turn is not None:
            running.current_text = cancelled_turn.current_text
            running.finished_texts = cancelled_turn.finished_texts
            running.unlogged_calls = cancelled_turn.unlogged_calls
            if cancelled_turn.is_call_open:
                turns = 1 if cancelled_turn.answered_calls == 0 else 0
                running.unlogged_calls.append(self._estimate_open_call(cancelled_turn, turns=turns))
        await self._store_question(running)
        mark = word_clause("mark_stopped")
        text = f"{running.current_text.strip()}\n\n{mark}".strip()
        return await self._finish(running, self._plain_row(session, text))

    def interrupt(self, turn: Turn) -> bool:
        """Interrupt a turn so that it can restart together with new messages.

        Returns False if part of the answer was shown or the model has answered. The turn then
        continues. Otherwise returns True. After that, the turn stores nothing else, and `answer`
        raises StaleReadError unless the caller cancels it first.
        """
        running = self._running.get(turn.outbox_item.key)
        return running is None or running.interrupt()

    async def store_command(
        self,
        turn: Turn,
        session: Session,
        text: str,
        answer: Answer,
        actions: Sequence[ButtonAction] = (),
        *,
        is_silent: bool = False,
    ) -> None:
        """Store a command as `text` and its answer with buttons, and close its inbox entries.

        The answer of a silent command isn't delivered.
        """
        question = replace(_question_row(session, turn.entries[-1].inbound), text=text)
        reply = self._plain_row(session, answer.stored_text or answer.text)
        rows = [replace(question, kind="command"), replace(reply, kind="command")]
        await self._store_and_close(turn, rows, None if is_silent else answer, actions)

    async def store_unanswered(self, turn: Turn) -> None:
        """Store group messages that aren't answered."""
        session, _ = await self.sessions.open(turn)
        rows = await self._question_rows(session, turn)
        context = turn.build_tool_context(session, self.clock.now())
        # The sent form is stored, too, because later requests include these messages.
        rendered_rows = self.prompt.render_sent_form_without_memory(rows, context)
        await self._store_and_close(turn, rendered_rows, None)

    async def store_notice(
        self, turn: Turn, answer: Answer | None, actions: Sequence[ButtonAction] = ()
    ) -> None:
        """Store messages that can't be answered, and the notice for their sender."""
        session = await self.sessions.ensure_session(turn)
        rows = await self._question_rows(session, turn)
        if answer is not None:
            rows.append(replace(self._plain_row(session, answer.text), kind="notice"))
        await self._store_and_close(turn, rows, answer, actions)

    async def store_exchange(
        self, turn: Turn, answer: Answer, actions: Sequence[ButtonAction], tool_name: str | None
    ) -> AnsweredTurn:
        """Store messages with an answer that rules wrote, and close their inbox entries.

        The messages join the conversation: recall finds them, and facts are read from them.
        `tool_name` is the tool whose work the rules did, if they changed anything.
        """
        session, rows = await self.sessions.open(turn)
        question = await self._question_rows(session, turn, rows)
        new_rows = [replace(row, tool_name=tool_name) for row in question if not row.id]
        new_rows.append(replace(self._plain_row(session, answer.text), kind="quote"))
        paragraphs = filter(None, (turn.entries[0].inbound.heading, answer.text))
        answer = replace(answer, text="\n\n".join(paragraphs))
        stored_rows = await self._store_and_close(turn, new_rows, answer, actions)
        return AnsweredTurn(turn=turn, session=session, rows=[*rows, *stored_rows], answer=answer)

    async def _compress_if_needed(
        self, session: Session, rows: list[Message], turn: Turn, incoming_text: str = ""
    ) -> tuple[Session, list[Message]]:
        """Compress a session if its next request would be too long.

        Returns the session that continues the conversation and the history of that session. The
        compressor is called only if the request may be near a limit.
        """
        tokens = estimate_request_tokens(session, rows) + len(incoming_text)
        if tokens <= self.compressor.windows.safe_request_tokens and len(rows) <= MAX_MESSAGES:
            return session, rows
        return await self.compressor.compress_if_needed(session, rows, turn, incoming_text)

    async def _converse(self, running: RunningTurn) -> AnsweredTurn:
        """Ask the model and run its tools until it answers, in at most `max_rounds` requests."""
        key = running.turn.outbox_item.key
        earlier_attempt = self._running.get(key)
        if earlier_attempt is not None and earlier_attempt.is_call_open:
            running.unlogged_calls.append(self._estimate_open_call(earlier_attempt, turns=0))
        self._running[key] = running
        try:
            await self._settle_interrupted_calls(running)
            await self._store_question(running)
            for _ in range(self.options.max_rounds):
                completion = await self._ask(running)
                calls: list[Json] = []
                if completion.stop_reason == "tool_use":
                    calls = extract_tool_calls(completion)
                row = build_assistant_row(
                    completion, running.session, self.tool_runner, self.clock.now()
                )
                if not calls and completion.stop_reason != "pause_turn":
                    return await self._finish(running, build_last_row(row, completion))
                await self._run_tools(running, row, calls)
                running.session, running.rows = await self._compress_if_needed(
                    running.session, running.rows, running.turn
                )
            text = word_clause("mark_rounds", number=self.options.max_rounds)
            return await self._finish(running, self._plain_row(running.session, text))
        except MnemeError:
            self._running.pop(key, None)
            for call in running.unlogged_calls:
                await self.model.log_call(call)
            raise

    async def _run_tools(self, running: RunningTurn, row: Message, calls: Sequence[Json]) -> None:
        """Run the tool calls of `row`, and store the row and the results.

        The row is stored before the tools run, so that a crash doesn't make them run twice. If all
        tools are read-only, the row and the results are stored together.
        """
        if row.text:
            running.finished_texts = [*running.finished_texts, row.text]
        row = replace(row, text=hide_citations(row.text))
        running.current_text = ""
        context = running.turn.build_tool_context(running.session, self.clock.now(), running.rows)
        if running.budget is None:
            running.budget = await self._open_budget(running)
        context = replace(context, budget=running.budget, show_status=running.on_wait)
        if self.tool_runner.is_read_only(calls):
            await self._store(running, [row, *await self.tool_runner.run(calls, context)])
            return
        await self._store(running, [row])
        results = await self.tool_runner.run(calls, context)
        try:
            await self._store(running, results)
        except StaleReadError:
            # The results may contain erased data. Notes that the tools have run are stored instead,
            # so that the repeated turn doesn't run the tools again.
            await self.conversations.append(self.tool_runner.strip_results(results))
            raise

    async def _open_budget(self, running: RunningTurn) -> TurnBudget:
        """Return the budget of the turn's tools, including the calls before a restart."""
        turn_rows = find_answered_rows(running.rows, running.turn.message_ids)
        earlier_calls = [row.created_at for row in turn_rows if row.role == "assistant"]
        since = earlier_calls[0] if earlier_calls else None
        return await self.model.open_turn_budget(self.options, running.session, since)

    async def _settle_interrupted_calls(self, running: RunningTurn) -> None:
        """Store whether each tool call that a restart interrupted was carried out."""
        session = running.session
        calls = [] if session.is_incognito else find_open_calls(running.rows, session.id)
        if not calls:
            return
        outcomes = await self.conversations.load_call_outcomes(session.id)
        results = self.tool_runner.build_missing_results(calls, outcomes, session, self.clock.now())
        await self._store(running, results)

    async def _store_question(self, running: RunningTurn) -> None:
        """Store the messages of the turn in their sent form, and add them to the history.

        Earlier messages without a sent form get their sent form in the same transaction.
        """
        session, rows = running.session, running.rows
        context = running.turn.build_tool_context(session, self.clock.now(), rows)
        question = await self._question_rows(session, running.turn, rows)
        # `changed_rows` are the rows that get a sent form now, by id.
        earlier, changed_rows = await self.prompt.render_missing_sent_forms(
            leave_out(rows, question), context
        )
        rendered_rows = await self.prompt.render_sent_form(
            [row for row in question if row.sent_blocks is None], earlier, context
        )
        # New rows have no id yet. Rows with an id are stored already and get only their sent form.
        changed_rows |= {row.id: row for row in rendered_rows if row.id}
        stored_rows = await self.conversations.append(
            [row for row in rendered_rows if not row.id],
            outbox_item=running.turn.outbox_item,
            sent_blocks=[
                (row.id, row.sent_blocks or ())
                for row in changed_rows.values()
                if row.session_id == session.id
            ],
            epoch=context.epoch,
        )
        if changed_rows:
            running.rows = [changed_rows.get(row.id, row) for row in rows]
        await self._add_stored_messages(running, stored_rows, context)

    async def _question_rows(
        self, session: Session, turn: Turn, rows: Sequence[Message] = ()
    ) -> list[Message]:
        """Return the messages of the turn as rows.

        If a crash or a restart left a message among `rows`, the stored row is returned.
        """
        message_ids = {entry.inbound.message_id for entry in turn.entries}
        stored_rows = {
            row.external_id: row
            for row in rows
            if row.external_id in message_ids and row.session_id == session.id
        }
        question: list[Message] = []
        for entry in turn.entries:
            row = stored_rows.get(entry.inbound.message_id)
            if row is None:
                quote = await self.conversations.resolve_quote(entry.inbound, turn.scopes)
                row = _question_row(session, entry.inbound, quote)
            question.append(row)
        return question

    async def _add_stored_messages(
        self, running: RunningTurn, stored_rows: Sequence[Message], context: ToolContext
    ) -> None:
        """Add the messages of the turn that are already stored to its history.

        A message may be stored in an earlier session that has ended since. Such a message is copied
        to the current session, unless the history already has the message or a copy.
        """
        session_id = running.session.id
        running.rows += [row for row in stored_rows if row.session_id == session_id]
        if all(row.session_id == session_id for row in stored_rows):
            return
        history_ids = {row.id for row in running.rows}
        copied_texts = {
            (row.created_at, row.text)
            for row in running.rows
            if row.session_id == session_id and row.role == "user"
        }
        missing = [
            row
            for row in stored_rows
            if row.id not in history_ids and (row.created_at, row.text) not in copied_texts
        ]
        if not missing:
            return
        rendered_rows = await self.prompt.render_sent_form(missing, running.rows, context)
        copies = [
            replace(row, id=0, session_id=session_id, external_id=None) for row in rendered_rows
        ]
        running.rows += await self.conversations.append(copies, epoch=context.epoch)

    @cached_property
    def _offered_models(self) -> frozenset[str]:
        return frozenset(self.options.offered_models)

    async def _ask(self, running: RunningTurn) -> Completion:
        """Ask the model once, with the current history."""
        request = build_request(
            running.session,
            running.rows,
            self.tool_runner.tools.values(),
            self.options,
            running.turn.billing_scope(running.session),
            turn_key=running.turn.outbox_item.key,
        )
        # No person waits for a scheduled question, so its author gets the reason instead of quotes.
        is_scheduled = running.session.address.platform == "cron"
        language = running.turn.language
        request = replace(request, has_fallback=not is_scheduled, language=language)
        if request.model not in self._offered_models:
            # The conversation has a model that the settings no longer offer.
            request = replace(request, model=self.options.chat)
        running.begin_call()
        completion, call = await self.model.complete_unlogged(
            request, running.on_text, running.on_wait
        )
        running.end_call(call)
        return completion

    def _estimate_open_call(self, running: RunningTurn, *, turns: int) -> ModelCall:
        """Return the model call that was running when a turn was cancelled, with estimated usage.

        The provider charges a cancelled call, but doesn't report its usage.
        """
        session = running.session
        last_usage = Usage()
        for row in running.rows:
            if row.usage and row.session_id == session.id:
                last_usage = row.usage
        cached_tokens = last_usage.cache_read + last_usage.cache_write
        sent_tokens = int(estimate_request_tokens(session, running.rows))
        return ModelCall(
            kind="chat",
            model=session.model,
            usage=Usage(
                input=max(0, sent_tokens - cached_tokens),
                cache_read=cached_tokens,
                output=int(len(running.current_text) / CHARS_PER_TOKEN),
            ),
            at=self.clock.now(),
            billing=running.turn.billing_scope(session),
            turns=turns,
        )

    async def _finish(self, running: RunningTurn, row: Message) -> AnsweredTurn:
        """Store a turn's last row and the answer to deliver. Returns the answered turn."""
        answer = Answer(text=running.render_answer(row.text))
        shown_text = answer.text
        actions: Sequence[ButtonAction] = ()
        if self.add_receipts is not None and _may_have_receipts(answer, running.turn, running.rows):
            answer, actions = await self.add_receipts(answer, running.turn, running.rows)
        context = running.turn.build_tool_context(running.session, self.clock.now(), running.rows)
        check = self.tool_runner.repeats_foreign_text
        actions = await running.turn.add_yes(actions, shown_text, running.rows, context, check)
        answer = replace(answer, text=hide_citations(answer.text))
        session, windows = running.session, self.compressor.windows
        has_compressed = is_first_after_compression(session, running.rows)
        is_near_limit = estimate_request_tokens(session, running.rows) > windows.safe_request_tokens
        is_too_long = is_near_limit and self.compressor.pop_give_up_notice(session)
        await self._store(running, [replace(row, text=hide_citations(row.text))], answer, actions)
        self._running.pop(running.turn.outbox_item.key, None)
        return AnsweredTurn(
            turn=running.turn,
            session=session,
            rows=running.rows,
            answer=answer,
            has_compressed=has_compressed,
            is_too_long=is_too_long,
        )

    async def _store(
        self,
        running: RunningTurn,
        rows: Sequence[Message],
        answer: Answer | None = None,
        actions: Sequence[ButtonAction] = (),
    ) -> None:
        """Store rows, and log the model calls that produced them.

        The calls are removed from `running` before the write. A write continues even if its caller
        is cancelled, so the calls could otherwise be logged twice. Raises StaleReadError if the
        turn was interrupted.
        """
        if running.progress is TurnProgress.INTERRUPTED:
            raise StaleReadError("New messages arrived before anything was answered.")
        calls = running.unlogged_calls
        running.unlogged_calls = []
        try:
            if answer is None:
                running.rows += await self.conversations.append(
                    rows, calls=calls, epoch=running.turn.epoch
                )
            else:
                running.rows += await self._store_and_close(
                    running.turn, rows, answer, actions, calls
                )
        except MnemeError:
            running.unlogged_calls = calls
            raise

    async def _store_and_close(
        self,
        turn: Turn,
        rows: Sequence[Message],
        answer: Answer | None,
        actions: Sequence[ButtonAction] = (),
        calls: Sequence[ModelCall] = (),
    ) -> list[Message]:
        """Store the last rows, close the inbox entries and fill the outbox item at once."""
        outbox_item = None
        if answer is not None:
            outbox_item = replace(turn.outbox_item, answer=answer, next_at=None)
        return await self.conversations.append(
            rows,
            [entry.id for entry in turn.entries],
            outbox_item,
            actions=actions,
            calls=calls,
            epoch=turn.epoch,
        )

    def _plain_row(self, session: Session, text: str) -> Message:
        return Message(
            role="assistant", text=text, session_id=session.id, created_at=self.clock.now()
        )


def _question_row(session: Session, inbound: Inbound, quote: Quote | None = None) -> Message:
    """Return an incoming message as a row of the session, without a sent form."""
    files = inbound.attachments
    return Message(
        role="user",
        text=with_attachments(inbound.text, files) if files else inbound.text,
        session_id=session.id,
        created_at=inbound.sent_at,
        external_id=inbound.message_id,
        sender=inbound.sender,
        origin=inbound.origin,
        quote=quote,
    )


def _may_have_receipts(answer: Answer, turn: Turn, rows: Sequence[Message]) -> bool:
    """Return whether tools ran, the answer cites a source, or it's the first turn."""
    turn_rows = find_answered_rows(rows, turn.message_ids)
    # The result of an approved look-up is a pasted text.
    has_results = any(row.role == "tool" or row.origin == "pasted" for row in turn_rows)
    has_citations = hide_citations(answer.text) != answer.text
    return has_results or has_citations or is_first_turn(rows, turn_rows)


def build_assistant_row(
    completion: Completion, session: Session, tool_runner: ToolRunner, at: datetime
) -> Message:
    """Return the row that stores a completion in the session.

    Frames of memory and of foreign text that the model copied are removed from its text.
    """
    calls = extract_tool_calls(completion)
    tool_names = dict.fromkeys(str(call["name"]) for call in calls)
    return Message(
        role="assistant",
        text=scrub(completion.text).strip(),
        session_id=session.id,
        created_at=at,
        blocks=scrub_blocks(completion.blocks) or None,
        tool_name=", ".join(tool_names) or None,
        tools=tool_runner.render_searchable_calls(calls) if calls else None,
        usage=completion.usage,
    )


def extract_tool_calls(completion: Completion) -> list[Json]:
    return [block for block in completion.blocks if block.get("type") == "tool_use"]


def build_last_row(row: Message, completion: Completion) -> Message:
    """Return the row of a turn's last completion. An incomplete answer gets a mark."""
    mark = _STOP_REASON_MARKS.get(completion.stop_reason)
    text = "\n\n".join(part for part in (row.text, mark and word_clause(mark)) if part)
    if extract_tool_calls(completion) or not text:
        # A call that was cut off can't run, and the API rejects empty answers in later requests.
        row = replace(row, blocks=None)
    # An offline answer quotes recall. It isn't indexed, because recall would find its own results.
    kind: MessageKind = "quote" if completion.model == OFFLINE_MODEL else "chat"
    return replace(row, text=text or word_clause("mark_no_answer"), kind=kind)
