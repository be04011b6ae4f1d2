"""Conversations that are held in memory only, beside those that are written down: of an incognito one nothing but the
ids of its events reaches state.db, and with the process it is gone.

Whoever works with conversations cannot tell the two apart but by `Session.is_incognito`. Ids here are negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count

from core.ports import Clock
from core.store.incognito import IncognitoMarks, IncognitoRegistry
from core.store.outbox import OutboxItem
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.types import Address, EndReason, Json, Message, Scope, Session

_FIRST = -(2**62)
"""Ids count up from here, so that they have an order and are nobody's in state.db."""


@dataclass(slots=True)
class _Held:
    session: Session
    rows: list[Message] = field(default_factory=list)


class IncognitoConversations(Conversations):
    """Conversations in state.db, and in memory where `registry` has the address; `marks` tell the next process."""

    def __init__(self, database: Database, clock: Clock, registry: IncognitoRegistry, marks: IncognitoMarks) -> None:
        super().__init__(database, clock)
        self._registry = registry
        self._marks = marks
        self._ids = count(_FIRST)
        self._held: dict[int, _Held] = {}
        self._open: dict[Address, int] = {}

    async def begin(self, address: Address) -> None:
        """What is said at the address from now on is held in memory only, until the session there ends."""
        # First the mark: should the process end in between, a conversation is said to be lost that never began.
        await self._marks.add(address)
        self._registry.add(address)

    async def current(self, address: Address) -> Session | None:
        if not self._registry.has(address):
            return await super().current(address)
        held = self._at(address)
        return None if held is None else held.session

    async def ensure(self, session: Session) -> Session:
        if not self._registry.has(session.address):
            return await super().ensure(session)
        held = self._at(session.address)
        return self._made(session) if held is None else held.session

    async def create(self, session: Session, ending: EndReason = "new") -> Session:
        """Opens a session. An incognito one takes the place of the one before it, of which is left what it carries."""
        if not self._registry.has(session.address):
            return await super().create(session, ending)
        return self._made(session)

    async def end(self, session_id: int, reason: EndReason, at: datetime) -> None:
        """Ends a session; with an incognito one all of it is gone, and what comes next there is written down again."""
        held = self._held.pop(session_id, None)
        if held is not None:
            places = self._registry.addresses(held.session.address)
            self._open.pop(places[0], None)
            self._registry.remove(places[0])
            for place in places:
                await self._marks.remove(place)
        elif session_id >= 0:
            await super().end(session_id, reason, at)

    async def find(self, session_id: int, scopes: frozenset[Scope]) -> Session | None:
        if session_id >= 0:
            return await super().find(session_id, scopes)
        held = self._held.get(session_id)
        return held.session if held is not None and held.session.scope in scopes else None

    async def retitle(self, session_id: int, title: str) -> None:
        if session_id >= 0:
            await super().retitle(session_id, title)
        elif (held := self._held.get(session_id)) is not None:
            held.session = replace(held.session, title=title)

    async def append(
        self, messages: Sequence[Message], closing: Sequence[int] = (), outbox_item: OutboxItem | None = None
    ) -> list[Message]:
        """Appends and closes inbox entries. With messages of an incognito session the outbox item is not filled: its
        words leave through the reply at hand or not at all."""
        if not messages or messages[0].session_id >= 0:
            return await super().append(messages, closing, outbox_item)
        if closing:
            # First: an answer that is refused, since it may have been made of what was forgotten, is not held either.
            await super().append((), closing)
        held = self._held.get(messages[0].session_id)
        return [self._stored(held, message) for message in messages]

    async def history(self, session: Session, scopes: frozenset[Scope]) -> list[Message]:
        if session.id >= 0:
            return await super().history(session, scopes)
        held = self._held.get(session.id)
        if held is None or held.session.scope not in scopes:
            return []
        return [row for row in held.rows if row.kind in ("chat", "quote")]

    async def keep_sent(self, sent: Sequence[tuple[int, tuple[Json, ...]]]) -> None:
        await super().keep_sent([(message_id, blocks) for message_id, blocks in sent if message_id >= 0])
        forms = {message_id: blocks for message_id, blocks in sent if message_id < 0}
        for held in self._held.values() if forms else ():
            held.rows = [replace(row, sent=forms[row.id]) if row.id in forms else row for row in held.rows]

    async def keep_prompt(self, session_id: int, prompt: str, sight: frozenset[Scope] = frozenset()) -> Session:
        held = self._held.get(session_id)
        if held is None:
            return await super().keep_prompt(session_id, prompt, sight)
        if not held.session.system_prompt:
            held.session = replace(held.session, system_prompt=prompt, sight=sight)
        return held.session

    async def amend(self, address: Address, external_id: str, text: str | None) -> bool:
        held = self._at(address)
        known = None if held is None else _known(held, external_id)
        if held is None or known is None:
            return await super().amend(address, external_id, text)
        if text is None:
            held.rows.remove(known)
            await super().amend(address, external_id, None)
        elif known.kind == "chat":
            held.rows[held.rows.index(known)] = replace(known, text=text, blocks=None, sent=None)
        return True

    async def forget(self, scopes: frozenset[Scope], message_ids: Sequence[int], note_ids: Sequence[int] = ()) -> None:
        """See `core.privacy.forgetting.CopyHolder`. What was said incognito is found by nobody, so nothing is to be
        erased."""

    def invalidate(self) -> None:
        """Something was erased: what stands in prompts, beside questions and in what tools found may repeat it, and is
        made anew or looked up again."""
        for held in self._held.values():
            held.session = replace(held.session, system_prompt="")
            held.rows = [
                row if row.sent is None else replace(row, sent=row.sent[:2]) for row in held.rows if row.role != "tool"
            ]

    def _at(self, address: Address) -> _Held | None:
        return self._held.get(self._open.get(self._registry.home(address), 0))

    def _made(self, session: Session) -> Session:
        before = self._at(session.address)
        made = _Held(replace(session, id=next(self._ids), is_incognito=True))
        if before is not None:
            del self._held[before.session.id]
            if session.opens_at is not None and session.parent_id == before.session.id:
                made.rows = [replace(row, sent=None) for row in before.rows if row.id >= session.opens_at]
        self._held[made.session.id] = made
        self._open[self._registry.home(session.address)] = made.session.id
        return made.session

    def _stored(self, held: _Held | None, message: Message) -> Message:
        if held is None:
            # It has ended meanwhile: nothing more is held.
            return replace(message, id=next(self._ids))
        if message.external_id is not None and (known := _known(held, message.external_id)) is not None:
            return known
        stored = replace(message, id=next(self._ids))
        held.rows.append(stored)
        count = held.session.messages + (stored.kind == "chat")
        held.session = replace(held.session, messages=count, last_at=stored.created_at)
        return stored


def _known(held: _Held, external_id: str) -> Message | None:
    return next((row for row in held.rows if row.external_id == external_id), None)
