"""One turn: write down what was said, recall, ask the model, run its tools, write down the answer.

Every step is a row before the next begins, so that a crash anywhere is continued and not repeated. Speaks to nobody:
what is shown goes through `show`, what is sent is in the turn's parcel.

What one turn may spend on the model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from config.settings import CacheLife, ModelOptions
from core.agent.history import conversation, mark, marked
from core.agent.offline import MODEL as OFFLINE
from core.agent.sessions import SessionTracker, window_of
from core.agent.tool_runner import ToolRunner
from core.agent.user_message import Turn, UserMessages, with_attachments
from core.errors import ModelError, StaleReadError
from core.guard.scrubber import Scrubber, scrub
from core.models.fallback import TOO_LONG
from core.ports import Clock, Conversations, Model
from core.store import epoch
from core.types import Answer, Completion, Inbound, Json, Message, Payer, Request, Session, ToolContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """At most `max_rounds` model calls a turn, each of at most `max_tokens` tokens of output. `cache`: how long the
    server is asked to keep what was sent."""

    max_rounds: int
    max_tokens: int
    cache: CacheLife = "5m"

    @classmethod
    def of(cls, options: ModelOptions) -> Budget:
        """What the settings allow."""
        return cls(max_rounds=options.max_rounds, max_tokens=options.max_tokens, cache=options.cache)


STOPPED = "[stopped]"
BADGE = "🕶 _incognito_"
"""Stands above every answer of a conversation that is not written down."""

_ENDINGS = {
    "max_tokens": "[cut off: the answer reached its length limit; say “go on” for the rest]",
    "refusal": "[The model declined to answer this.]",
    "model_context_window_exceeded": "[cut off: this conversation is too long for the model; /new starts another]",
}


class Agent:
    """The core. `model` answers (it may be one that falls back to another); `budget` is what a turn may spend."""

    def __init__(
        self,
        *,
        model: Model,
        conversations: Conversations,
        lineage: SessionTracker,
        envelope: UserMessages,
        toolbox: ToolRunner,
        clock: Clock,
        budget: Budget,
    ) -> None:
        self._model = model
        self._conversations = conversations
        self._lineage = lineage
        self._envelope = envelope
        self._toolbox = toolbox
        self._clock = clock
        self._budget = budget
        self._drafts: dict[str, tuple[tuple[str, ...], str]] = {}
        """By parcel: what a running turn has said, and what its present call has said so far."""

    async def turn(self, turn: Turn, show: Callable[[str], None]) -> Answer:
        """Answers the entries of `turn`. When it returns, question and answer are stored, the entries are closed and
        the parcel is filled (held: the caller delivers it). Raises ModelError, StoreError."""
        session = await self._lineage.open(turn)
        if session.is_incognito:
            show = _badged(show)
        try:
            return await self._converse(session, turn, show)
        except StaleReadError:
            self._drafts.pop(turn.outbox_item.key, None)
            raise
        except ModelError as error:
            if error.status != TOO_LONG:
                raise
        # The estimate was wrong, the server knows better.
        return await self._converse(await self._lineage.renew(session, turn), turn, show)

    async def stop(self, turn: Turn) -> Answer:
        """The turn was cancelled by the person: what the model was saying is kept as the answer, marked."""
        # Taken at once: what is stopped again, since something was forgotten meanwhile, has nothing to keep.
        said, partial = self._drafts.pop(turn.outbox_item.key, ((), ""))
        session = await self._lineage.open(turn)
        await self._take(session, turn)
        text = "\n\n".join(part for part in (partial, STOPPED) if part)
        return await self._finish(session, turn, _plain(session, text, self._clock), [*said, text])

    async def place(self, turn: Turn) -> Session:
        """The session that a command is kept with: the open one, or a new one that has no prompt yet."""
        return await self._lineage.place(turn)

    async def keep(self, turn: Turn, session: Session, text: str, answer: Answer, *, has_outbox_item: bool) -> None:
        """Keeps a command, as `text`, and its answer with `session`, and closes its entries. The parcel is filled
        unless only the reply beside the command may deliver the answer."""
        entry = turn.entries[-1]
        rows = [
            replace(row, text=text, kind="command", external_id=entry.inbound.message_id)
            for row in self._person(session, turn)[-1:]
        ]
        spoken = replace(_plain(session, answer.kept or answer.text, self._clock), kind="command")
        await self._end(turn, [*rows, spoken], answer if has_outbox_item else None)

    async def hear(self, turn: Turn) -> int:
        """Keeps what the person said as part of the conversation, where a command answers it; the id of the last
        message. The entries stay open."""
        session = await self._lineage.open(turn)
        rows = await self._conversations.append(self._person(session, turn))
        fresh = [row for row in rows if row.sent is None]
        await self._conversations.keep_sent(self._envelope.dated(fresh, self._context(session, turn, rows)))
        return rows[-1].id

    async def notify(self, turn: Turn, answer: Answer | None) -> None:
        """Keeps what the person said where the agent could not answer it, with what they are told instead (None:
        nothing), and closes the entries."""
        session = await self.place(turn)
        rows = self._person(session, turn)
        if answer is not None:
            rows.append(replace(_plain(session, answer.text, self._clock), kind="notice"))
        await self._end(turn, rows, answer)

    async def amend(self, inbound: Inbound) -> bool:
        """A message was edited or deleted on the platform: its row follows. False: there is no such row."""
        text = None if inbound.kind == "delete" else with_attachments(inbound.text, inbound.attachments)
        return await self._lineage.amend(inbound.address, inbound.message_id, text)

    async def listen(self, turn: Turn) -> None:
        """Keeps what was said in the room without answering."""
        session = await self._lineage.open(turn)
        rows = await self._end(turn, self._person(session, turn), None)
        await self._conversations.keep_sent(self._envelope.dated(rows, self._context(session, turn, rows)))

    async def _converse(self, session: Session, turn: Turn, show: Callable[[str], None]) -> Answer:
        """Rounds of asking and of running tools, until there is an answer."""
        rows = await self._take(session, turn)
        said: list[str] = []
        for number in range(1, self._budget.max_rounds + 1):
            completion = await self._ask(session, turn, rows, said, show)
            calls = [block for block in completion.blocks if block.get("type") == "tool_use"]
            text = scrub(completion.text).strip()
            is_calling = completion.stop_reason == "tool_use" and bool(calls)
            if not is_calling and completion.stop_reason != "pause_turn":
                return await self._close(session, turn, completion, said)
            rows += await self._conversations.append([self._row(session, completion, text)])
            said += [text] if text else []
            if is_calling:
                rows += await self._use(calls, self._context(session, turn, rows))
            if number == self._budget.max_rounds:
                break
        mark = f"[stopped after {self._budget.max_rounds} rounds of tools; say “go on” to continue]"
        return await self._finish(session, turn, _plain(session, mark, self._clock), [*said, mark])

    async def _use(self, calls: Sequence[Json], context: ToolContext) -> list[Message]:
        """Runs tools and keeps what they gave. Where that may not be kept any more, it is kept that they ran, so that
        the turn that is begun anew does not do it a second time."""
        results = await self._toolbox.run(calls, context)
        try:
            return await self._conversations.append(results)
        except StaleReadError:
            with epoch.holding(None):
                await self._conversations.append(self._toolbox.bare(results))
            raise

    async def _take(self, session: Session, turn: Turn) -> list[Message]:
        """The history with the person's messages at its end, stored and sealed."""
        stored = await self._conversations.append(self._person(session, turn))
        rows = await self._conversations.history(session, turn.scopes)
        known = {row.id for row in rows}
        again = {
            (row.created_at, row.text): row
            for row in rows
            if row.role == "user" and row.external_id is None and row.session_id == session.id
        }
        asked = [again.get((row.created_at, row.text), row) for row in stored]
        strays = [replace(row, id=0, session_id=session.id, external_id=None) for row in asked if row.id not in known]
        if strays:
            # They were taken into a session that has ended since: the question is asked again where the person is now.
            stored = await self._conversations.append(strays)
            rows = await self._conversations.history(session, turn.scopes)
        ids = {row.id for row in stored}
        rows = await self._told_anew(session, turn, rows, ids)
        fresh = [row for row in rows if row.id in ids and row.sent is None]
        if fresh:
            held = [row for row in rows if row.id not in ids]
            context = self._context(session, turn, rows)
            sealed = await self._envelope.seal(fresh, held, context)
            await self._conversations.keep_sent(sealed)
            forms = dict(sealed)
            rows = [replace(row, sent=forms[row.id]) if row.id in forms else row for row in rows]
        return rows

    async def _told_anew(
        self, session: Session, turn: Turn, rows: Sequence[Message], fresh: Collection[int]
    ) -> list[Message]:
        """`rows` with the time line again above those that were edited since they were sent."""
        edited = [
            row
            for row in rows
            if row.id not in fresh and row.session_id == session.id and row.role == "user" and row.kind == "chat"
            and row.sent is None and row.external_id is not None
        ]  # fmt: skip
        if not edited:
            return list(rows)
        forms = dict(self._envelope.dated(edited, self._context(session, turn, rows)))
        await self._conversations.keep_sent(list(forms.items()))
        return [replace(row, sent=forms[row.id]) if row.id in forms else row for row in rows]

    async def _ask(
        self,
        session: Session,
        turn: Turn,
        rows: Sequence[Message],
        said: Sequence[str],
        show: Callable[[str], None],
    ) -> Completion:
        """One model call over the whole conversation so far."""
        scrubber, read, clean = Scrubber(), 0, ""
        self._drafts[turn.outbox_item.key] = (tuple(said), "")

        def on_text(text: str) -> None:
            nonlocal scrubber, read, clean
            if len(text) < read:
                # The call was started again: so is its text.
                scrubber, read, clean = Scrubber(), 0, ""
            clean += scrubber.feed(text[read:])
            read = len(text)
            self._drafts[turn.outbox_item.key] = (tuple(said), clean.strip())
            show("\n\n".join(part for part in (*said, clean.strip()) if part))

        def on_wait(sentence: str) -> None:
            show("\n\n".join((*said, f"_{sentence}_")))

        request = Request(
            system=({"type": "text", "text": session.system_prompt, "cache_control": mark(self._budget.cache)},),
            messages=marked(conversation(rows), self._budget.cache),
            tools=self._toolbox.described(session),
            model=session.model,
            max_tokens=self._budget.max_tokens,
            payer=Payer(scope=session.scope) if session.is_incognito else Payer(session_id=session.id),
        )
        return await self._model.complete(request, on_text, on_wait)

    async def _close(self, session: Session, turn: Turn, completion: Completion, said: Sequence[str]) -> Answer:
        text = scrub(completion.text).strip()
        ending = _ENDINGS.get(completion.stop_reason)
        row = self._row(session, completion, "\n\n".join(part for part in (text, ending) if part))
        calls = [block for block in completion.blocks if block.get("type") == "tool_use"]
        if calls or not row.text:
            # A call that was cut off cannot be run, and an empty answer cannot be sent back: what is kept is the text.
            row = replace(row, blocks=None, text=row.text or "(no answer)")
        if completion.model == OFFLINE:
            # It says what recall found, or always the same: indexed, recall would find itself.
            row = replace(row, kind="quote")
        return await self._finish(session, turn, row, [*said, row.text])

    async def _finish(self, session: Session, turn: Turn, row: Message, said: Sequence[str]) -> Answer:
        badge = BADGE if session.is_incognito else ""
        answer = Answer(text="\n\n".join(part for part in (badge, *said) if part))
        await self._end(turn, [row], answer)
        self._drafts.pop(turn.outbox_item.key, None)
        return answer

    async def _end(self, turn: Turn, rows: Sequence[Message], answer: Answer | None) -> list[Message]:
        """The last rows of a turn, the end of its entries and the content of its parcel, in one transaction."""
        outbox_item = None if answer is None else replace(turn.outbox_item, answer=answer, next_at=None)
        return await self._conversations.append(rows, [entry.id for entry in turn.entries], outbox_item)

    def _person(self, session: Session, turn: Turn) -> list[Message]:
        return [
            Message(
                role="user",
                text=with_attachments(entry.inbound.text, entry.inbound.attachments),
                session_id=session.id,
                created_at=entry.inbound.sent_at,
                external_id=entry.inbound.message_id,
                sender=entry.inbound.sender,
                origin=entry.inbound.origin,
            )
            for entry in turn.entries
        ]

    def _row(self, session: Session, completion: Completion, text: str) -> Message:
        calls = [block for block in completion.blocks if block.get("type") == "tool_use"]
        return Message(
            role="assistant",
            text=text,
            blocks=completion.blocks or None,
            session_id=session.id,
            created_at=self._clock.now(),
            tool_name=", ".join(dict.fromkeys(str(call["name"]) for call in calls)) or None,
            tools=self._toolbox.shadow(calls),
            usage=completion.usage,
        )

    def _context(self, session: Session, turn: Turn, rows: Sequence[Message]) -> ToolContext:
        return ToolContext(
            session=session,
            scope=turn.scope,
            scopes=turn.scopes,
            sender=turn.sender,
            now=self._clock.now(),
            message_id=next((row.id for row in reversed(rows) if row.role == "user"), None),
            window=window_of(session, rows),
        )


def _plain(session: Session, text: str, clock: Clock) -> Message:
    return Message(role="assistant", text=text, session_id=session.id, created_at=clock.now())


def _badged(show: Callable[[str], None]) -> Callable[[str], None]:
    return lambda text: show(f"{BADGE}\n\n{text}")
