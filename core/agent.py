"""One turn: write down what was said, recall, ask the model, run its tools, write down the answer.

Every step is a row before the next begins, so that a crash anywhere is continued and not repeated. Speaks to nobody:
what is shown goes through `show`, what is sent is in the turn's parcel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from core.budget import Budget
from core.envelope import Envelope, with_attachments
from core.history import conversation, marked
from core.lineage import Lineage, window_of
from core.offline import MODEL as OFFLINE
from core.ports import Clock, Conversations, Model
from core.scrubber import Scrubber, scrub
from core.toolbox import Toolbox
from core.turn import Turn
from core.types import Answer, Completion, Message, Request, Session, ToolContext

STOPPED = "[stopped]"

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
        lineage: Lineage,
        envelope: Envelope,
        toolbox: Toolbox,
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

    async def turn(self, turn: Turn, show: Callable[[str], None]) -> Answer:
        """Answers the entries of `turn`. When it returns, question and answer are stored, the entries are closed and
        the parcel is filled (held: the caller delivers it). Raises ModelError, StoreError."""
        session = await self._lineage.open(turn)
        rows = await self._take(session, turn)
        said: list[str] = []
        for number in range(1, self._budget.max_rounds + 1):
            completion = await self._ask(session, rows, said, show)
            calls = [block for block in completion.blocks if block.get("type") == "tool_use"]
            text = scrub(completion.text).strip()
            if completion.stop_reason == "tool_use" and calls:
                rows += await self._conversations.append([self._row(session, completion, text)])
                said += [text] if text else []
                rows += await self._conversations.append(
                    await self._toolbox.run(calls, self._context(session, turn, rows))
                )
            elif completion.stop_reason == "pause_turn":
                rows += await self._conversations.append([self._row(session, completion, text)])
                said += [text] if text else []
            else:
                return await self._close(session, turn, rows, completion, said)
            if number == self._budget.max_rounds:
                break
        mark = f"[stopped after {self._budget.max_rounds} rounds of tools; say “go on” to continue]"
        return await self._finish(session, turn, _plain(session, mark, self._clock), [*said, mark])

    async def stop(self, turn: Turn, shown: str) -> Answer:
        """The turn was cancelled by the person: what was shown so far is kept as the answer, marked."""
        session = await self._lineage.open(turn)
        await self._take(session, turn)
        text = "\n\n".join(part for part in (scrub(shown).strip(), STOPPED) if part)
        return await self._finish(session, turn, _plain(session, text, self._clock), [text])

    async def place(self, turn: Turn) -> Session:
        """The session that a command is kept with: the open one, or a new one that has no prompt yet."""
        return await self._conversations.current(turn.address) or await self._lineage.blank(turn.address, turn.scope)

    async def keep(self, turn: Turn, session: Session, text: str, answer: Answer, *, is_parcelled: bool) -> None:
        """Keeps a command, as `text`, and its answer with `session`, and closes its entries. The parcel is filled
        unless only the reply beside the command may deliver the answer."""
        entry = turn.entries[-1]
        rows = [
            replace(row, text=text, kind="command", external_id=entry.inbound.message_id)
            for row in self._person(session, turn)[-1:]
        ]
        spoken = replace(_plain(session, answer.text, self._clock), kind="command")
        parcel = replace(turn.parcel, answer=answer, next_at=None) if is_parcelled else None
        await self._conversations.append([*rows, spoken], [entry.id for entry in turn.entries], parcel)

    async def amend(self, turn: Turn) -> None:
        """A message was edited or deleted on the platform: its row follows."""
        for entry in turn.entries:
            inbound = entry.inbound
            text = None if inbound.kind == "delete" else with_attachments(inbound.text, inbound.attachments)
            await self._conversations.amend(inbound.address, inbound.message_id, text)

    async def listen(self, turn: Turn) -> None:
        """Keeps what was said in the room without answering."""
        session = await self._lineage.open(turn)
        entries = [entry.id for entry in turn.entries]
        rows = await self._conversations.append(self._person(session, turn), entries)
        await self._conversations.keep_sent(self._envelope.dated(rows, self._context(session, turn, rows)))

    async def _take(self, session: Session, turn: Turn) -> list[Message]:
        """The history with the person's messages at its end, stored and sealed."""
        stored = await self._conversations.append(self._person(session, turn))
        rows = await self._conversations.history(session, turn.scopes)
        known = {row.id for row in rows}
        strays = [replace(row, id=0, session_id=session.id, external_id=None) for row in stored if row.id not in known]
        if strays:
            # They were taken into a session that has ended since: the question is asked again where the person is now.
            stored = await self._conversations.append(strays)
            rows = await self._conversations.history(session, turn.scopes)
        ids = {row.id for row in stored}
        fresh = [row for row in rows if row.id in ids and row.sent is None]
        if fresh:
            held = [row for row in rows if row.id not in ids]
            context = self._context(session, turn, rows)
            sealed = await self._envelope.seal(fresh, held, context)
            await self._conversations.keep_sent(sealed)
            forms = dict(sealed)
            rows = [replace(row, sent=forms[row.id]) if row.id in forms else row for row in rows]
        return rows

    async def _ask(
        self, session: Session, rows: Sequence[Message], said: Sequence[str], show: Callable[[str], None]
    ) -> Completion:
        """One model call over the whole conversation so far."""
        scrubber, read, clean = Scrubber(), 0, ""

        def on_text(text: str) -> None:
            nonlocal scrubber, read, clean
            if len(text) < read:
                # The call was started again: so is its text.
                scrubber, read, clean = Scrubber(), 0, ""
            clean += scrubber.feed(text[read:])
            read = len(text)
            show("\n\n".join(part for part in (*said, clean.strip()) if part))

        def on_wait(sentence: str) -> None:
            show("\n\n".join((*said, f"_{sentence}_")))

        request = Request(
            system=({"type": "text", "text": session.system_prompt, "cache_control": {"type": "ephemeral"}},),
            messages=marked(conversation(rows)),
            tools=self._toolbox.described,
            model=session.model,
            max_tokens=self._budget.max_tokens,
        )
        return await self._model.complete(request, on_text, on_wait)

    async def _close(
        self, session: Session, turn: Turn, rows: Sequence[Message], completion: Completion, said: Sequence[str]
    ) -> Answer:
        text = scrub(completion.text).strip()
        ending = _ENDINGS.get(completion.stop_reason)
        row = self._row(session, completion, "\n\n".join(part for part in (text, ending) if part))
        calls = [block for block in completion.blocks if block.get("type") == "tool_use"]
        if calls or not row.text:
            # A call that was cut off cannot be run, and an empty answer cannot be sent back: what is kept is the text.
            row = replace(row, blocks=None, text=row.text or "(no answer)")
        if completion.model == OFFLINE and rows[-1].kind == "quote":
            # Its answer quotes what recall found: indexed, recall would find itself.
            row = replace(row, kind="quote")
        return await self._finish(session, turn, row, [*said, row.text])

    async def _finish(self, session: Session, turn: Turn, row: Message, said: Sequence[str]) -> Answer:
        answer = Answer(text="\n\n".join(part for part in said if part))
        await self._conversations.append(
            [row], [entry.id for entry in turn.entries], replace(turn.parcel, answer=answer, next_at=None)
        )
        return answer

    def _person(self, session: Session, turn: Turn) -> list[Message]:
        return [
            Message(
                role="user",
                text=with_attachments(entry.inbound.text, entry.inbound.attachments),
                session_id=session.id,
                created_at=entry.inbound.sent_at,
                external_id=entry.inbound.message_id,
                sender=entry.inbound.sender,
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
