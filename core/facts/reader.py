"""Reads what people have said for facts, each message once, however often the process dies in between.

After a turn, at the end of a session and at the start of the process: whatever of a session was not read yet, in
portions, one at a time for each session. What reads like an order to the model is no fact.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from weakref import WeakValueDictionary

import structlog

from core.errors import ModelError
from core.facts.backlog_role import Backlog
from core.facts.claims import fact_of
from core.facts.extraction import MOST_MESSAGES, Extraction
from core.guard.guard import suspicion
from core.memory.attention import is_remembered
from core.ports import Clock
from core.records import Fact
from core.types import Message, Session

LOOKS_BACK = timedelta(days=3)
"""What was said before that and is not read yet was said while facts were turned off."""
_UNREADABLE = (400, 413, 422)
"""With such a status a model server refuses the messages themselves, and will refuse them again."""


class Reader:
    """`extraction` reads, `backlog` says what is left to read and keeps what was."""

    def __init__(self, extraction: Extraction, backlog: Backlog, clock: Clock) -> None:
        self._extraction = extraction
        self._backlog = backlog
        self._clock = clock
        self._locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._log = structlog.get_logger("facts")

    async def read(self, session: Session) -> None:
        """All of a session that was not read yet. Where the model cannot be had it stays unread for the next time."""
        if not is_remembered(session):
            return
        since = self._clock.now() - LOOKS_BACK
        async with self._locks.setdefault(session.id, asyncio.Lock()):
            while rows := await self._backlog.unread(session.id, since, MOST_MESSAGES):
                try:
                    facts = await self._facts(session, rows)
                except ModelError as error:
                    self._log.info("no facts were read", why=str(error))
                    if error.status not in _UNREADABLE:
                        return
                    facts = []
                await self._backlog.keep(rows, facts)

    async def catch_up(self) -> None:
        """What a process before this one did not come to read."""
        for session in await self._backlog.behind(self._clock.now() - LOOKS_BACK):
            await self.read(session)

    async def _facts(self, session: Session, rows: Sequence[Message]) -> list[tuple[Fact, str]]:
        facts = []
        for source, claim, origin in await self._extraction.claims(rows):
            if (reason := suspicion(claim.content)) is not None:
                self._log.info("a fact was not kept", reason=reason, message=source.id)
                continue
            facts.append((fact_of(claim, origin, session.scope, session.address.platform, source), source.text))
        return facts
