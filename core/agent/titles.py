"""Names a session after its first exchange: at once from the first words, then better by one cheap model call."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from core.errors import ModelError
from core.ports import Conversations, Model
from core.types import Message, Payer, Request, Session

TITLE_CHARS = 60
_ORDER = (
    "Give this exchange a title of at most seven words, in its language, without quotes or a full stop. "
    "Answer with the title alone."
)


class Titles:
    """Titles sessions that have none. `model` None: the first words of the person are the title."""

    def __init__(self, conversations: Conversations, model: Model | None, name: str) -> None:
        self._conversations = conversations
        self._model = model
        self._name = name
        self._log = structlog.get_logger("titler")

    async def title(self, session: Session, rows: Sequence[Message]) -> None:
        """Gives `session` a title, from `rows` of its first exchange, unless it has one."""
        if session.title or not rows:
            return
        asked = next((row.text for row in rows if row.role == "user"), "")
        answered = next((row.text for row in reversed(rows) if row.role == "assistant"), "")
        provisional = _short(asked)
        await self._conversations.retitle(session.id, provisional)
        if self._model is None or not answered:
            return
        request = Request(
            system=({"type": "text", "text": _ORDER},),
            messages=(
                {
                    "role": "user",
                    "content": [{"type": "text", "text": f"Person: {asked[:1500]}\n\nAssistant: {answered[:1500]}"}],
                },
            ),
            model=self._name,
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
            # Unless the person has found a better one meanwhile.
            await self._conversations.retitle(session.id, title)


def _short(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= TITLE_CHARS:
        return line
    return line[: TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"
