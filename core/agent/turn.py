"""One turn: write down what was said, recall, ask the model, run its tools, write down the answer.

Every step is a row before the next begins, so that a crash anywhere is continued and not repeated. Speaks to nobody:
what is shown goes through `show`, what is sent is in the turn's outbox item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from config.settings import ModelOptions
from core.agent.compression import MOST_MESSAGES, Compressor
from core.agent.offline import MODEL as OFFLINE
from core.agent.prompt import CHARS_PER_TOKEN, Prompt, request, tokens, with_attachments
from core.agent.sessions import Turn
from core.agent.tool_runner import ToolRunner
from core.errors import MnemeError, ModelError, StaleReadError
from core.guard.fence import Scrubber, scrub
from core.models.wrappers import TOO_LONG, MeteredModel
from core.ports import Clock, Tell
from core.store.actions import ButtonAction
from core.store.sessions import Conversations
from core.store.usage import ModelCall
from core.types import Answer, Completion, Inbound, Json, Message, Quoted, Session, ToolContext, Usage

STOPPED = "[stopped]"
BADGE = "🕶 _incognito_"  # above every answer of such a conversation
_ENDINGS = {
    "max_tokens": "[cut off: the answer reached its length limit; say “go on” for the rest]",
    "refusal": "[The model declined to answer this.]",
    "model_context_window_exceeded": "[cut off: the model's window is full; say “go on” for the rest]",
}


@dataclass(kw_only=True)
class RunningTurn:
    """A turn that is being answered, with the history of its session so far, and the answer so far: the texts of the
    finished model calls, and that of the present one. `answer`: once it is stored. `calls`: of the model, not logged
    yet. `is_untouched`: nothing was shown, and the model has not answered, so it may be begun anew without a trace.
    The person is told once: `has_condensed`, that the earlier part was; `is_too_long`, that this does not help."""

    turn: Turn
    session: Session
    rows: list[Message]
    show: Tell = lambda _: None
    answer: Answer | None = None
    texts: list[str] = field(default_factory=list)
    calls: list[ModelCall] = field(default_factory=list)
    is_untouched: bool = True
    is_interrupted: bool = False
    has_asked: bool = False
    has_condensed: bool = False
    is_too_long: bool = False
    is_asking: bool = False
    present: str = ""

    def begin_call(self) -> None:
        self._scrubber, self._read, self.present = Scrubber(), "", ""

    def on_text(self, text: str) -> None:
        if not text.startswith(self._read):
            self.begin_call()
        self.present += self._scrubber.feed(text[len(self._read) :])
        self._read = text
        self.is_untouched = self.is_untouched and not self.present
        self.show(self.with_last(self.present.strip()))

    def on_wait(self, sentence: str) -> None:
        self.is_untouched = self.is_asking = False
        self.show(self.with_last(f"_{sentence}_"))

    def with_last(self, text: str) -> str:
        badge = BADGE if self.session.is_incognito else ""
        heading = self.turn.entries[0].inbound.heading
        return "\n\n".join(part for part in (badge, heading, *self.texts, text) if part)


@dataclass
class Agent:
    """Answers turns with `model` and its tools, within what `options` allow."""

    model: MeteredModel
    conversations: Conversations
    compressor: Compressor
    prompt: Prompt
    tool_runner: ToolRunner
    clock: Clock
    options: ModelOptions

    def __post_init__(self) -> None:
        self.sessions = self.compressor.sessions
        self._running: dict[str, RunningTurn] = {}  # by the key of the outbox item

    async def answer(self, turn: Turn, show: Tell) -> RunningTurn:
        """When it returns, question and answer are stored, the entries of `turn` are closed and its outbox item is
        filled; the caller delivers it. Raises ModelError, StoreError."""
        session, rows = await self._fitted(*await self.sessions.open(turn), turn, turn.text)
        try:
            return await self._converse(RunningTurn(turn=turn, session=session, rows=rows, show=show))
        except ModelError as error:
            if error.status != TOO_LONG:
                raise
            found = await self.compressor.compressed(*await self.sessions.open(turn), turn, is_exceeded=True)
            if found is None:
                raise
        session, rows = found
        return await self._converse(RunningTurn(turn=turn, session=session, rows=rows, show=show))

    async def stop(self, turn: Turn, stored: Answer | None = None) -> RunningTurn:
        """The person cancelled the turn: what the model had said is kept as the answer, marked; unless the whole answer
        was `stored` before."""
        # Taken at once: a stop repeated after an erasure must not keep what was said before it.
        before = self._running.pop(turn.outbox_item.key, None)
        session, rows = await self.sessions.open(turn)
        running = RunningTurn(turn=turn, session=session, rows=rows, answer=stored)
        if stored is not None:
            return running
        if before is not None:
            running.present, running.texts, running.calls = before.present, before.texts, before.calls
            running.calls += self._broken_off(before, turns=int(not before.has_asked))
        await self._take(running)
        text = f"{running.present.strip()}\n\n{STOPPED}".strip()
        return await self._finish(running, self._plain(session, text))

    def interrupt(self, turn: Turn) -> bool:
        """False where something of the answer under way was shown, a tool has run, or the model has answered; else
        nothing of it is stored any more, and `answer` raises StaleReadError if it is not cancelled before."""
        running = self._running.get(turn.outbox_item.key)
        if running is None:
            return True
        running.is_interrupted = running.is_untouched
        return running.is_untouched

    async def keep(
        self,
        turn: Turn,
        session: Session,
        text: str,
        answer: Answer,
        actions: Sequence[ButtonAction] = (),
        *,
        is_silent: bool = False,
    ) -> None:
        """Keeps a command, as `text`, with its answer, which is not delivered where it `is_silent`, and its buttons;
        closes its entries."""
        asked = replace(_message(session, turn.entries[-1].inbound), text=text, kind="command")
        spoken = replace(self._plain(session, answer.kept or answer.text), kind="command")
        await self._end(turn, [asked, spoken], None if is_silent else answer, actions)

    async def listen(self, turn: Turn) -> None:
        """Keeps what was said in the room without answering."""
        session, _ = await self.sessions.open(turn)
        # In the form in which it will be sent if the model is ever asked about it.
        said = self.prompt.dated(await self._asked(session, turn), turn.context(session, self.clock.now()))
        await self._end(turn, said, None)

    async def notify(self, turn: Turn, answer: Answer | None) -> None:
        """Keeps what the person said where it could not be answered, with what they are told instead; closes the
        entries."""
        session = await self.sessions.place(turn)
        rows = await self._asked(session, turn)
        if answer is not None:
            rows.append(replace(self._plain(session, answer.text), kind="notice"))
        await self._end(turn, rows, answer)

    async def _fitted(
        self, session: Session, rows: list[Message], turn: Turn, coming: str = ""
    ) -> tuple[Session, list[Message]]:
        """See `Compressor.fitted`, which is not asked where a request is far from any limit."""
        taken = tokens(session, rows) + len(coming)
        if taken <= self.compressor.windows.near_tokens and len(rows) <= MOST_MESSAGES:
            return session, rows
        return await self.compressor.fitted(session, rows, turn, coming)

    async def _converse(self, running: RunningTurn) -> RunningTurn:
        before = self._running.get(running.turn.outbox_item.key)
        running.calls += self._broken_off(before, turns=0)
        self._running[running.turn.outbox_item.key] = running
        try:
            await self._take(running)
            for _ in range(self.options.max_rounds):
                completion = await self._ask(running)
                calls = tool_calls(completion) if completion.stop_reason == "tool_use" else []
                row = spoken(completion, running.session, self.tool_runner, self.clock.now())
                if not calls and completion.stop_reason != "pause_turn":
                    return await self._finish(running, last_row(row, completion))
                await self._go_on(running, row, calls)
                found = await self._fitted(running.session, running.rows, running.turn)
                running.session, running.rows = found
            ending = f"[stopped after {self.options.max_rounds} rounds of tools; say “go on” to continue]"
            return await self._finish(running, self._plain(running.session, ending))
        except MnemeError:
            self._running.pop(running.turn.outbox_item.key, None)
            for call in running.calls:
                await self.model.keep(call)
            raise

    async def _go_on(self, running: RunningTurn, row: Message, calls: Sequence[Json]) -> None:
        """Runs the tools that the model calls. Its call is stored before they do anything; where they only read, with
        what they found."""
        running.texts, running.present = [*running.texts, row.text] if row.text else running.texts, ""
        context = running.turn.context(running.session, self.clock.now(), running.rows)
        if self.tool_runner.is_reading(calls):
            await self._store(running, [row, *await self.tool_runner.run(calls, context)])
            return
        await self._store(running, [row])
        results = await self.tool_runner.run(calls, context)
        try:
            await self._store(running, results)
        except StaleReadError:
            # A mark that they ran is kept all the same, so that the repeated turn does not run them again.
            await self.conversations.append(self.tool_runner.bare(results))
            raise

    async def _take(self, running: RunningTurn) -> None:
        """Puts the person's messages at the end of the history, stored, every message of a person in its sent form."""
        session, rows = running.session, running.rows
        context = running.turn.context(session, self.clock.now(), rows)
        asked = await self._asked(session, running.turn, rows)
        asked_ids = {row.id for row in asked}
        earlier = [row for row in rows if row.id not in asked_ids]
        earlier, changed = self._sent_anew(earlier, context)
        sealed = await self.prompt.seal([row for row in asked if row.sent is None], earlier, context)
        changed |= {row.id: row for row in sealed if row.id}
        stored = await self.conversations.append(
            [row for row in sealed if not row.id],
            outbox_item=running.turn.outbox_item,
            sent=[(row.id, row.sent or ()) for row in changed.values() if row.session_id == session.id],
            epoch=context.epoch,
        )
        running.rows = [changed.get(row.id, row) for row in rows]
        await self._adopt(running, stored, context)

    async def _asked(self, session: Session, turn: Turn, rows: Sequence[Message] = ()) -> list[Message]:
        """What the turn answers; after a crash, and where it is begun anew, as it is stored already among `rows`."""
        known = {row.external_id: row for row in rows if row.role == "user" and row.session_id == session.id}
        return [
            known.get(inbound.message_id)
            or _message(session, inbound, await self.conversations.quoted(inbound, turn.scopes))
            for inbound in (entry.inbound for entry in turn.entries)
        ]

    def _sent_anew(self, rows: list[Message], context: ToolContext) -> tuple[list[Message], dict[int, Message]]:
        """The rows as they are sent from now on; by id, those that were edited since they were sent, and those of a
        parent whose memory may not be seen."""
        rows = [*rows]
        bare = [at for at, row in enumerate(rows) if row.role == "user" and row.kind == "chat" and row.sent is None]
        has_jobs = bool(bare) and any(row.origin == "job" for row in rows)
        for at in bare:
            (rows[at],) = self.prompt.dated([rows[at]], context, rows[:at] if has_jobs else ())
        return rows, {rows[at].id: rows[at] for at in bare}

    async def _adopt(self, running: RunningTurn, stored: Sequence[Message], context: ToolContext) -> None:
        """Takes up what was stored. Messages that stand in a session which has ended since are copied, to be asked
        again here, unless they are carried over or a crash came after they were copied."""
        session_id = running.session.id
        running.rows += [row for row in stored if row.session_id == session_id]
        there = {row.id for row in running.rows}
        own = [row for row in running.rows if row.session_id == session_id and row.role == "user"]
        copied = {(row.created_at, row.text) for row in own}
        missing = [row for row in stored if row.id not in there and (row.created_at, row.text) not in copied]
        copies = [
            replace(row, id=0, session_id=session_id, external_id=None)
            for row in await self.prompt.seal(missing, running.rows, context)
        ]
        running.rows += await self.conversations.append(copies, epoch=context.epoch) if copies else []

    async def _ask(self, running: RunningTurn) -> Completion:
        running.begin_call()
        session = running.session
        payer, key = running.turn.payer(session), running.turn.outbox_item.key
        asked = request(session, running.rows, self.tool_runner.tools.values(), self.options, payer, turn=key)
        running.is_asking = True
        completion, call = await self.model.measured(asked, running.on_text, running.on_wait)
        running.is_untouched = False
        running.calls += [] if call is None else [replace(call, turns=int(not running.has_asked))]
        running.has_asked, running.is_asking = True, False
        return completion

    def _broken_off(self, running: RunningTurn | None, *, turns: int) -> list[ModelCall]:
        """Its call is paid for as well; the server does not say any more what it used, so that is estimated."""
        if running is None or not running.is_asking:
            return []
        session, rows = running.session, running.rows
        last = next((row.usage for row in reversed(rows) if row.usage and row.session_id == session.id), Usage())
        cached, sent = last.cache_read + last.cache_write, int(tokens(session, rows))
        used = Usage(input=max(0, sent - cached), cache_read=cached, output=int(len(running.present) / CHARS_PER_TOKEN))
        at, payer = self.clock.now(), running.turn.payer(session)
        return [ModelCall(kind="chat", model=session.model, usage=used, at=at, payer=payer, turns=turns)]

    async def _finish(self, running: RunningTurn, row: Message) -> RunningTurn:
        answer = Answer(text=running.with_last(row.text))
        running.has_condensed = _is_first_since_condensed(running.session, running.rows)
        is_near = tokens(running.session, running.rows) > self.compressor.windows.near_tokens
        running.is_too_long = is_near and self.compressor.has_given_up(running.session)
        await self._store(running, [row], answer)
        self._running.pop(running.turn.outbox_item.key, None)
        running.answer = answer
        return running

    async def _store(self, running: RunningTurn, rows: Sequence[Message], answer: Answer | None = None) -> None:
        """With what the model used. A write goes on when its caller is stopped, so it is logged once."""
        if running.is_interrupted:
            raise StaleReadError("More was said before anything was answered.")
        calls, running.calls = running.calls, []
        try:
            if answer is None:
                running.rows += await self.conversations.append(rows, calls=calls, epoch=running.turn.epoch)
            else:
                running.rows += await self._end(running.turn, rows, answer, calls=calls)
        except MnemeError:
            running.calls = calls
            raise

    async def _end(
        self,
        turn: Turn,
        rows: Sequence[Message],
        answer: Answer | None,
        actions: Sequence[ButtonAction] = (),
        calls: Sequence[ModelCall] = (),
    ) -> list[Message]:
        """Stores the last rows, closes the entries and fills the outbox item, in one transaction."""
        outbox_item = None if answer is None else replace(turn.outbox_item, answer=answer, next_at=None)
        closing, epoch = [entry.id for entry in turn.entries], turn.epoch
        return await self.conversations.append(rows, closing, outbox_item, actions=actions, calls=calls, epoch=epoch)

    def _plain(self, session: Session, text: str) -> Message:
        return Message(role="assistant", text=text, session_id=session.id, created_at=self.clock.now())


def _message(session: Session, inbound: Inbound, quoted: Quoted | None = None) -> Message:
    return Message(
        role="user",
        text=with_attachments(inbound.text, inbound.attachments),
        session_id=session.id,
        created_at=inbound.sent_at,
        external_id=inbound.message_id,
        sender=inbound.sender,
        origin=inbound.origin,
        quoted=quoted,
    )


def _is_first_since_condensed(session: Session, rows: Sequence[Message]) -> bool:
    """Whether a turn is the first one of a session that a compression has opened, without being asked to."""
    if not any(row.kind == "summary" and row.session_id == session.id and not row.tool_name for row in rows):
        return False
    roles = [row.role for row in rows if row.session_id == session.id and row.kind != "summary"]
    return "user" not in roles[roles.index("assistant") :] if "assistant" in roles else True


def spoken(completion: Completion, session: Session, tool_runner: ToolRunner, at: datetime) -> Message:
    """What the model says, as a row of the session."""
    calls = tool_calls(completion)
    return Message(
        role="assistant",
        text=scrub(completion.text).strip(),
        session_id=session.id,
        created_at=at,
        blocks=_clean_blocks(completion.blocks) or None,
        tool_name=", ".join(dict.fromkeys(str(call["name"]) for call in calls)) or None,
        tools=tool_runner.shadow(calls) if calls else None,
        usage=completion.usage,
    )


def tool_calls(completion: Completion) -> list[Json]:
    return [block for block in completion.blocks if block.get("type") == "tool_use"]


def last_row(row: Message, completion: Completion) -> Message:
    """The row of a turn's last completion, with a mark where it was cut off."""
    text = "\n\n".join(part for part in (row.text, _ENDINGS.get(completion.stop_reason)) if part)
    if tool_calls(completion) or not text:
        # A call that was cut off cannot be run, and an empty answer cannot be sent back.
        row = replace(row, blocks=None)
    # What was said offline quotes recall or is always the same: indexed, recall would find itself.
    return replace(row, text=text or "(no answer)", kind="quote" if completion.model == OFFLINE else "chat")


def _clean_blocks(blocks: Sequence[Json]) -> tuple[Json, ...]:
    """The blocks without a memory fence that the model repeated in their text, since they are sent again."""
    scrubber = Scrubber()
    clean: list[dict[str, Any]] = [dict(block) for block in blocks]
    texts = [block for block in clean if block.get("type") == "text"]
    for block in texts:
        block["text"] = scrubber.feed(block["text"])
    if texts:
        texts[-1]["text"] += scrubber.close()
    return tuple(block for block in clean if block.get("type") != "text" or block["text"].strip())
