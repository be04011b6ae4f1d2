"""Incognito conversations: held in memory only, beside those that are written down. state.db has the ids of their
events and a mark for each address, so that the next process can say that they are gone; no word of them.

Users of `Conversations` see the difference by `Session.is_incognito` alone. Ids here are negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import Any

from core.ports import Clock
from core.store import rows
from core.store.engine import Connection
from core.store.inbox import close_entries
from core.store.outbox import OutboxItem
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.store.sqlite.erase_bytes import want_checkpoint
from core.store.usage import ModelCall
from core.types import Address, EndReason, ErasureEpoch, Json, Message, Scope, Session


@dataclass(slots=True)
class IncognitoConversation:
    """What is held of one conversation; `session` is None until the first message."""

    session: Session | None = None
    rows: list[Message] = field(default_factory=list)

    def find(self, external_id: str | None) -> Message | None:
        return next((row for row in self.rows if external_id is not None and row.external_id == external_id), None)

    def change(self, **values: Any) -> None:
        if self.session is not None:
            self.session = replace(self.session, **values)


class IncognitoRegistry:
    """The conversations that are incognito in this process; the two addresses of a chat that has moved share one."""

    def __init__(self) -> None:
        self.conversations: dict[Address, IncognitoConversation] = {}

    def has(self, address: Address) -> bool:
        return address in self.conversations

    def move(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        for address, held in list(self.conversations.items()):
            if (address.platform, address.chat_id) == (platform, old_chat_id):
                self.conversations.setdefault(replace(address, chat_id=new_chat_id), held)


_MARK = "INSERT INTO veils (address_id, at) VALUES (:address, :now) ON CONFLICT (address_id) DO NOTHING"
_UNMARK = """
DELETE FROM veils WHERE address_id = (
    SELECT id FROM addresses WHERE platform = :platform AND chat_id = :chat_id AND thread_id = :thread_id
)
"""
_EMPTY_INBOX = """
UPDATE inbox SET inbound = json_set(
    inbound, '$.text', '', '$.command', NULL, '$.attachments', json('[]'), '$.reply_to', NULL
) WHERE address_id = :address
"""
_MARKED = """
SELECT platform, chat_id, thread_id FROM veils JOIN addresses ON addresses.id = veils.address_id
ORDER BY veils.at, addresses.id
"""
_WAITING = "SELECT id FROM inbox WHERE address_id IN (SELECT address_id FROM veils)"


class IncognitoConversations(Conversations):
    """Conversations in state.db, and in memory where `registry` has the address."""

    def __init__(self, database: Database, clock: Clock, registry: IncognitoRegistry) -> None:
        super().__init__(database, clock)
        self._registry = registry
        self._ids = count(-(2**62))  # in order, and nobody's in state.db

    async def begin(self, address: Address) -> None:
        """Until the session at the address ends; takes the words out of the inbox entries that wait there."""
        now = rows.timestamp(self._clock.now())

        def work(connection: Connection) -> None:
            values = {"address": rows.ensure_address(connection, address), "now": now}
            connection.execute(_MARK, values)
            if connection.execute(_EMPTY_INBOX, values).rowcount:
                want_checkpoint(connection)

        # First the mark: should the process end in between, a conversation that never began is reported as lost.
        await self._database.write(work)
        self._registry.conversations.setdefault(address, IncognitoConversation())

    async def left_over(self) -> Sequence[Address]:
        """The addresses that the process before this one held incognito; closes what waited there without words."""
        now = self._clock.now()

        def work(connection: Connection) -> Sequence[Address]:
            close_entries(connection, [row["id"] for row in connection.execute(_WAITING).fetchall()], now)
            return [rows.address_of(row) for row in connection.execute(_MARKED)]

        return await self._database.write(work)

    async def unmark(self, address: Address) -> None:
        await self._database.execute(_UNMARK, rows.place(address))

    async def current(self, address: Address) -> Session | None:
        held = self._registry.conversations.get(address)
        return held.session if held else await super().current(address)

    async def opened(self, address: Address, scopes: frozenset[Scope]) -> tuple[Session, list[Message]] | None:
        held = self._registry.conversations.get(address)
        if held is None:
            return await super().opened(address, scopes)
        return (held.session, await self.history(held.session, scopes)) if held.session else None

    async def ensure(self, session: Session) -> Session:
        held = self._registry.conversations.get(session.address)
        if held is None:
            return await super().ensure(session)
        return held.session or self._made(held, session)

    async def create(self, session: Session, ending: EndReason = "new", epoch: ErasureEpoch | None = None) -> Session:
        """Opens a session. An incognito one replaces the one before it and keeps only the messages it carries over."""
        held = self._registry.conversations.get(session.address)
        return self._made(held, session) if held else await super().create(session, ending, epoch)

    async def end(self, session_id: int, reason: EndReason, at: datetime) -> None:
        """Ends a session. An incognito one is gone with it, and what comes next there is written down again."""
        if session_id >= 0:
            await super().end(session_id, reason, at)
        elif held := self._of(session_id):
            for address in [address for address, one in self._registry.conversations.items() if one is held]:
                del self._registry.conversations[address]
                await self.unmark(address)

    async def append(
        self,
        messages: Sequence[Message],
        closing: Sequence[int] = (),
        outbox_item: OutboxItem | None = None,
        *,
        sent: Sequence[tuple[int, tuple[Json, ...]]] = (),
        calls: Sequence[ModelCall] = (),
        epoch: ErasureEpoch | None = None,
    ) -> list[Message]:
        """Incognito words never fill an outbox item: they leave through the reply at hand or not at all."""
        forms = dict(sent)
        if min((*forms, *(message.session_id for message in messages)), default=0) >= 0:
            return await super().append(messages, closing, outbox_item, sent=sent, calls=calls, epoch=epoch)
        if closing or calls:
            # First: an answer that is refused, since it may have been made of what was forgotten, is not held either.
            await super().append((), closing, calls=calls, epoch=epoch)
        for held in self._registry.conversations.values() if forms else ():
            held.rows = [replace(row, sent=forms[row.id]) if row.id in forms else row for row in held.rows]
        return [self._stored(message) for message in messages]

    async def history(self, session: Session, scopes: frozenset[Scope]) -> list[Message]:
        if session.id >= 0:
            return await super().history(session, scopes)
        held = self._of(session.id)
        if held is None or session.scope not in scopes:
            return []
        return [row for row in held.rows if row.kind in ("chat", "quote")]

    async def keep_prompt(
        self,
        session_id: int,
        prompt: str,
        sight: frozenset[Scope] = frozenset(),
        epoch: ErasureEpoch | None = None,
    ) -> Session:
        held = self._of(session_id)
        if held is None or held.session is None:
            return await super().keep_prompt(session_id, prompt, sight, epoch)
        if not held.session.system_prompt:
            held.change(system_prompt=prompt, sight=sight)
        return held.session

    async def amend(self, address: Address, external_id: str, text: str | None) -> int | None:
        held = self._registry.conversations.get(address)
        known = held.find(external_id) if held else None
        if held is None or known is None:
            return await super().amend(address, external_id, text)
        if text is None:
            held.rows.remove(known)
            await super().amend(address, external_id, None)
        elif known.kind == "chat":
            held.rows[held.rows.index(known)] = replace(known, text=text, blocks=None, sent=None)
        return known.id

    def invalidate(self) -> None:
        """Drops prompts, sent forms of questions and results of tools, which may repeat what was erased."""
        for held in self._registry.conversations.values():
            held.change(system_prompt="")
            held.rows = [replace(row, sent=None) for row in held.rows if row.role != "tool"]

    def _of(self, session_id: int) -> IncognitoConversation | None:
        held = self._registry.conversations.values()
        return next((one for one in held if one.session and one.session.id == session_id), None)

    def _made(self, held: IncognitoConversation, session: Session) -> Session:
        is_child = session.parent_id is not None and held.session and session.parent_id == held.session.id
        first = session.opens_at if is_child and session.opens_at is not None else 0
        held.rows = [replace(row, sent=None) for row in held.rows if row.id >= first]
        held.session = replace(session, id=next(self._ids), is_incognito=True)
        return held.session

    def _stored(self, message: Message) -> Message:
        held = self._of(message.session_id)
        known = held.find(message.external_id) if held else None
        if known is not None:
            return known
        stored = replace(message, id=next(self._ids))
        if held and held.session:
            # It has not ended meanwhile.
            held.rows.append(stored)
            held.change(messages=held.session.messages + (stored.kind == "chat"), last_at=stored.created_at)
        return stored
