"""A history as a value, and how a store and its slow reference are told it.

A history is a list of deeds that go through the store's public functions: sessions opened (also as children of others),
messages of every kind, edits and erasures, and chunks made of a part of it all. `plots.py` makes them up.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

from core.store import chunks
from core.store.conversations import Conversations
from core.store.database import Database
from core.store.recall import Recall
from core.types import Address, Message, MessageKind, Role, Scope, Sender, Session
from tests.doubles.clock import SteadyClock
from tests.doubles.scanner import Place, Scanner, Told

BEGINNING = datetime(2026, 4, 29, 12, 0, tzinfo=UTC)

State = Literal["fresh", "begun", "halved", "tended", "rebuilt"]
STATES: tuple[State, ...] = ("fresh", "begun", "halved", "tended", "rebuilt")
"""Nothing is in chunks; the first few messages are; what was said before the last deeds is; all is; all is, anew."""


class Line(NamedTuple):
    """A message to be said. `late_h`: so long before it was heard; it may then be older than its session."""

    text: str
    role: Role = "user"
    kind: MessageKind = "chat"
    tools: str | None = None
    sender: Sender | None = None
    late_h: int = 0


@dataclass(frozen=True, slots=True)
class Opening:
    """A session, the child of one opened before it where `parent` says which, counted from the last."""

    scope: Scope
    platform: str
    title: str | None
    parent: int | None
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Speech:
    """More is said in a session that is there."""

    session: int
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A message is edited, or erased."""

    message: int
    text: str | None


Deed = Opening | Speech | Change


@dataclass(frozen=True, slots=True)
class Saga:
    """A history; `tended` deeds of it are in chunks when the last of them come."""

    deeds: tuple[Deed, ...]
    state: State
    tended: int


@dataclass(slots=True)
class Stage:
    """A store and its reference that were told the same."""

    database: Database
    recall: Recall
    scanner: Scanner
    conversations: Conversations
    at: datetime = BEGINNING
    sessions: list[Session] = field(default_factory=list)
    messages: list[int] = field(default_factory=list)

    async def tell(self, saga: Saga) -> None:
        """The whole history, left in the state that is asked for."""
        for number, deed in enumerate(saga.deeds):
            if saga.state == "halved" and number == saga.tended:
                await self.chunk()
            await self._do(deed)
        if saga.state == "begun":
            await self.database.write(lambda connection: chunks.advance(connection, 5))
        elif saga.state != "halved" and saga.state != "fresh":
            await self.chunk()
        if saga.state == "rebuilt":
            await self.recall.rebuild()
            await self.chunk()

    def session(self, place: int) -> int:
        """The id of the session at this place of the history, counted round; 0 where there is none."""
        return self.sessions[place % len(self.sessions)].id if self.sessions else 0

    def message(self, place: int) -> int:
        """The id of the message at this place, likewise."""
        return self.messages[place % len(self.messages)] if self.messages else 0

    async def chunk(self) -> None:
        """Everything that was said goes into chunks."""
        while await self.database.write(lambda connection: chunks.advance(connection, 7)):
            pass

    async def _do(self, deed: Deed) -> None:
        self.at += timedelta(hours=7)
        if isinstance(deed, Opening):
            await self._open(deed)
        elif isinstance(deed, Speech) and self.sessions:
            await self._say(self.sessions[deed.session % len(self.sessions)], deed.lines)
        elif isinstance(deed, Change) and self.messages:
            place = deed.message % len(self.messages)
            message_id = self.messages[place]
            address = self.scanner.places[self.scanner.told[message_id].session_id].address
            assert await self.conversations.amend(address, f"m{place}", deed.text)
            self.scanner.edit(message_id, deed.text)

    async def _open(self, deed: Opening) -> None:
        parent = None
        if deed.parent is not None and self.sessions:
            parent = self.sessions[-1 - deed.parent % len(self.sessions)]
        address = Address(platform=deed.platform, chat_id=str(len(self.sessions)))
        made = await self.conversations.create(
            Session(
                address=address,
                scope=deed.scope,
                started_at=self.at,
                title=deed.title,
                parent_id=parent.id if parent else None,
            )
        )
        self.sessions.append(made)
        root_id = self.scanner.places[parent.id].root_id if parent else made.id
        self.scanner.places[made.id] = Place(
            id=made.id, root_id=root_id, address=address, scope=deed.scope, title=deed.title, started_at=self.at
        )
        await self._say(made, deed.lines)

    async def _say(self, session: Session, lines: tuple[Line, ...]) -> None:
        said: list[Message] = []
        for line in lines:
            self.at += timedelta(minutes=1)
            said.append(
                Message(
                    role=line.role,
                    kind=line.kind,
                    text=line.text,
                    tools=line.tools,
                    sender=line.sender,
                    session_id=session.id,
                    created_at=self.at - timedelta(hours=line.late_h),
                    external_id=f"m{len(self.messages) + len(said)}",
                )
            )
        for sent, stored in zip(said, await self.conversations.append(said), strict=True):
            self.messages.append(stored.id)
            self.scanner.told[stored.id] = Told(
                id=stored.id,
                session_id=session.id,
                role=sent.role,
                kind=sent.kind,
                text=sent.text,
                tools=sent.tools,
                sender=sent.sender,
                at=sent.created_at,
            )


@contextlib.asynccontextmanager
async def staged(saga: Saga, damage: str | None = None) -> AsyncIterator[Stage]:
    """A store on disk and its reference, both told the same. `damage`: a statement that breaks the store afterwards,
    which is then opened anew."""
    clock = SteadyClock()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        async with Database.open(path) as database:
            stage = Stage(database, Recall(database, clock), Scanner(), Conversations(database, clock))
            await stage.tell(saga)
            if damage is None:
                yield stage
                return
            await database.write(lambda connection: connection.execute(damage).close())
        async with Database.open(path) as database:
            yield replace(
                stage,
                database=database,
                recall=Recall(database, clock),
                conversations=Conversations(database, clock),
            )
