"""What follows an answer that was delivered: a new session gets its title, memory is told of the turn.

A title is made at once from the first words, then a better one by one call of the helper model.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from core.agent.sessions import window_of
from core.errors import ModelError
from core.memory.manager import MemoryManager, last_turn
from core.ports import Model
from core.store.sessions import Conversations
from core.types import ErasureEpoch, Message, Payer, Request, Scope, Session, ToolContext

TITLE_CHARS = 60
_INSTRUCTION = (
    "Give this exchange a title of at most seven words, in its language, without quotes or a full stop. "
    "Answer with the title alone."
)


class PostTurn:
    """Runs after the answer has left. Without a `model` the person's first words are the title."""

    def __init__(
        self, conversations: Conversations, memory: MemoryManager, model: Model | None, model_name: str
    ) -> None:
        self._conversations = conversations
        self._memory = memory
        self._model = model
        self._model_name = model_name
        self._log = structlog.get_logger("post_turn")

    async def run(
        self,
        session: Session,
        rows: Sequence[Message],
        scopes: frozenset[Scope],
        epoch: ErasureEpoch | None = None,
    ) -> None:
        """After a turn in this session, whose history is `rows` as of `epoch`. Raises StaleReadError."""
        if rows and not session.title and not session.is_incognito:
            await self._title(session, rows, epoch)
        await self._memory.turn_over(session, rows)
        asked = [row for row in last_turn(rows) if row.role == "user" and row.sender is not None]
        if asked and asked[-1].sender is not None:
            context = ToolContext(
                session=session,
                scope=session.scope,
                scopes=scopes,
                sender=asked[-1].sender,
                now=rows[-1].created_at,
                message_id=asked[-1].id,
                window=window_of(session, rows),
            )
            await self._memory.queue_prefetch("\n".join(row.text for row in asked), context)

    async def _title(self, session: Session, rows: Sequence[Message], epoch: ErasureEpoch | None) -> None:
        asked = next((row.text for row in rows if row.role == "user"), "")
        answered = next((row.text for row in reversed(rows) if row.role == "assistant"), "")
        provisional = _short(asked)
        await self._conversations.retitle(session.id, provisional, epoch)
        if self._model is None or not answered:
            return
        exchange = f"Person: {asked[:1500]}\n\nAssistant: {answered[:1500]}"
        request = Request(
            system=({"type": "text", "text": _INSTRUCTION},),
            messages=({"role": "user", "content": [{"type": "text", "text": exchange}]},),
            model=self._model_name,
            max_tokens=64,
            kind="title",
            payer=Payer(session_id=session.id, scope=session.scope),
        )
        try:
            completion = await self._model.complete(request, lambda _: None, lambda _: None)
        except ModelError as error:
            self._log.info("no better title", error=str(error))
            return
        now = await self._conversations.find(session.id, frozenset((session.scope,)))
        title = _short(completion.text.strip().strip('"“”'))
        if title and now is not None and now.title == provisional:
            # unless the person has renamed it meanwhile
            await self._conversations.retitle(session.id, title, epoch)


def _short(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= TITLE_CHARS:
        return line
    return line[: TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"
