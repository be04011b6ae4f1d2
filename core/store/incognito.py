"""Incognito conversations: held in memory only, beside those that are written down. state.db has the ids of their
events and a mark for each address, so that the next process can say that they are gone; no word of them.

Users of `Conversations` see the difference by `Session.is_incognito` alone. Ids here are negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count

from core.ports import Clock
from core.store import rows
from core.store.engine import Connection
from core.store.inbox import close_entries
from core.store.outbox import OutboxItem
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.store.sqlite.erase_bytes import want_checkpoint
from core.types import Address, EndReason, Json, Message, Scope, Session


class IncognitoRegistry:
    """The addresses whose conversations are incognito in this process."""

    def __init__(self) -> None:
        self._addresses: set[Address] = set()
        self._homes: dict[Address, Address] = {}
        """New addresses of chats that moved, with the first address of their conversation."""

    def has(self, address: Address) -> bool:
        return self.home(address) in self._addresses

    def home(self, address: Address) -> Address:
        """The first address of the conversation at `address`; another one only when its chat has moved."""
        return self._homes.get(address, address)

    def addresses(self, address: Address) -> list[Address]:
        """All addresses of the conversation there, the first one first."""
        home = self.home(address)
        return [home, *(new for new, old in self._homes.items() if old == home)]

    def move(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """Keeps what is incognito in a chat incognito at its new id."""
        for address in [*self._addresses, *self._homes]:
            if (address.platform, address.chat_id) == (platform, old_chat_id) and self.has(address):
                self._homes.setdefault(replace(address, chat_id=new_chat_id), self.home(address))

    def add(self, address: Address) -> None:
        self._addresses.add(address)

    def remove(self, address: Address) -> None:
        for one in self.addresses(address):
            self._addresses.discard(one)
            self._homes.pop(one, None)


_ADD = "INSERT INTO veils (address_id, at) VALUES (:address, :now) ON CONFLICT (address_id) DO NOTHING"
_EMPTY_INBOX = """
UPDATE inbox SET inbound = json_set(
    inbound, '$.text', '', '$.command', NULL, '$.attachments', json('[]'), '$.reply_to', NULL
) WHERE address_id = :address
"""
_ALL = """
SELECT platform, chat_id, thread_id FROM veils JOIN addresses ON addresses.id = veils.address_id
ORDER BY veils.at, addresses.id
"""
_WAITING = "SELECT id FROM inbox WHERE address_id IN (SELECT address_id FROM veils)"


class IncognitoMarks:
    """The marks in state.db, one for each address."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, address: Address) -> None:
        """Marks an address and takes the words out of the inbox entries that wait there."""
        now = rows.timestamp(self._clock.now())

        def work(connection: Connection) -> None:
            values = {"address": rows.ensure_address(connection, address), "now": now}
            connection.execute(_ADD, values)
            if connection.execute(_EMPTY_INBOX, values).rowcount:
                want_checkpoint(connection)

        await self._database.write(work)

    async def remove(self, address: Address) -> None:
        def work(connection: Connection) -> None:
            values = {"address": rows.find_address(connection, address)}
            connection.execute("DELETE FROM veils WHERE address_id = :address", values)

        await self._database.write(work)

    async def left_over(self) -> Sequence[Address]:
        """The addresses that the process before this one held incognito; closes what waited there, since its words are
        gone. The marks stay until `remove`."""
        now = self._clock.now()

        def work(connection: Connection) -> Sequence[Address]:
            close_entries(connection, [row["id"] for row in connection.execute(_WAITING).fetchall()], now)
            return [rows.address_of(row) for row in connection.execute(_ALL)]

        return await self._database.write(work)


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
        self._ids = count(-(2**62))  # in order, and nobody's in state.db
        self._held: dict[int, _Held] = {}
        self._open: dict[Address, int] = {}

    async def begin(self, address: Address) -> None:
        """Holds what is said at the address in memory only, until the session there ends."""
        # First the mark: should the process end in between, a conversation that never began is reported as lost.
        await self._marks.add(address)
        self._registry.add(address)

    async def current(self, address: Address) -> Session | None:
        if not self._registry.has(address):
            return await super().current(address)
        held = self._at(address)
        return None if held is None else held.session

    async def opened(self, address: Address, scopes: frozenset[Scope]) -> tuple[Session, list[Message]] | None:
        if not self._registry.has(address):
            return await super().opened(address, scopes)
        held = self._at(address)
        return None if held is None else (held.session, await self.history(held.session, scopes))

    async def ensure(self, session: Session) -> Session:
        if not self._registry.has(session.address):
            return await super().ensure(session)
        held = self._at(session.address)
        return self._made(session) if held is None else held.session

    async def create(self, session: Session, ending: EndReason = "new") -> Session:
        """Opens a session. An incognito one replaces the one before it and keeps only the messages it carries over."""
        if not self._registry.has(session.address):
            return await super().create(session, ending)
        return self._made(session)

    async def end(self, session_id: int, reason: EndReason, at: datetime) -> None:
        """Ends a session. An incognito one is gone with it, and what comes next there is written down again."""
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
        self,
        messages: Sequence[Message],
        closing: Sequence[int] = (),
        outbox_item: OutboxItem | None = None,
        *,
        sent: Sequence[tuple[int, tuple[Json, ...]]] = (),
    ) -> list[Message]:
        """Appends, and closes inbox entries. Incognito words never fill an outbox item: they leave through the reply at
        hand or not at all."""
        forms = dict(sent)
        if min((*forms, *(message.session_id for message in messages)), default=0) >= 0:
            return await super().append(messages, closing, outbox_item, sent=sent)
        if closing:
            # First: an answer that is refused, since it may have been made of what was forgotten, is not held either.
            await super().append((), closing)
        for held in self._held.values() if forms else ():
            held.rows = [replace(row, sent=forms[row.id]) if row.id in forms else row for row in held.rows]
        return [self._stored(self._held.get(message.session_id), message) for message in messages]

    async def history(self, session: Session, scopes: frozenset[Scope]) -> list[Message]:
        if session.id >= 0:
            return await super().history(session, scopes)
        held = self._held.get(session.id)
        if held is None or held.session.scope not in scopes:
            return []
        return [row for row in held.rows if row.kind in ("chat", "quote")]

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
        """Does nothing (a `core.privacy.forgetting.CopyHolder`): what was said incognito is found by nobody."""

    def invalidate(self) -> None:
        """Drops prompts, contexts of questions and results of tools, which may repeat what was erased."""
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
            # The session has ended meanwhile.
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
