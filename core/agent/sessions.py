"""Which session a turn belongs to: the open one, a new one, a resumed one, or the child of one that was compressed."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from itertools import takewhile

import structlog

from config.settings import ModelOptions
from core.agent.prompt import REPORTS, Prompt, with_attachments
from core.agent.summary import Parts, parted
from core.errors import ModelError
from core.guard.fence import said
from core.memory.manager import MemoryManager
from core.models.wrappers import ask
from core.ports import Clock, Model
from core.store.mailbox import InboxEntry, OutboxItem
from core.store.rows import turns
from core.store.sessions import Conversations
from core.text.normalize import language_data, shortened
from core.types import (
    Address,
    EndReason,
    ErasureEpoch,
    Inbound,
    Json,
    Message,
    Payer,
    Scope,
    Session,
    ToolContext,
    Window,
)

ENDLESS = 2**63 - 1
CARRIED = 0.20  # the share of the window that the last turns may take where a session goes on elsewhere

TITLE_CHARS = 60
_log = structlog.get_logger("sessions")
_NUMBER = re.compile(r" #(\d{1,9})\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Waiting messages answered together, in order of arrival, and what may be seen: `scopes`, as of `epoch`.
    `is_owner`: of the last sender. `hint`: the platform's, for a new session's prompt; `is_fresh` asks for a new
    session."""

    address: Address
    scope: Scope
    scopes: frozenset[Scope]
    entries: tuple[InboxEntry, ...]
    outbox_item: OutboxItem
    is_owner: bool = False
    epoch: ErasureEpoch | None = None
    hint: str = ""
    is_fresh: bool = False

    @property
    def text(self) -> str:
        return "\n".join(entry.inbound.text for entry in self.entries)

    def payer(self, session: Session) -> Payer:
        return Payer(session_id=session.id, scope=session.scope, user_id=self.entries[-1].inbound.sender.id)

    def context(self, session: Session, now: datetime, rows: Sequence[Message] = ()) -> ToolContext:
        """`rows`: the history of the session, which stands in the model's context."""
        return ToolContext(
            session=session,
            scope=self.scope,
            scopes=self.scopes,
            sender=self.entries[-1].inbound.sender,
            now=now,
            message_id=next((row.id for row in reversed(rows) if row.role == "user" and row.kind == "chat"), None),
            window=window_of(session, rows),
            epoch=self.epoch,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """When a conversation goes on without its earlier part: after so long a rest, and at this time of each day."""

    idle: timedelta | None = None
    daily_at: time | None = None
    zone: tzinfo = UTC

    def crossed(self, last_at: datetime, now: datetime) -> EndReason | None:
        if self.idle and now - last_at >= self.idle:
            return "idle"
        if self.daily_at is not None:
            since_midnight = timedelta(hours=self.daily_at.hour, minutes=self.daily_at.minute)
            day = now.astimezone(self.zone) - since_midnight
            return "daily" if last_at < datetime.combine(day, self.daily_at, self.zone) else None
        return None


@dataclass
class SessionTracker:
    """Opens, titles and ends sessions, and tells `memory`. Without a `helper` a person's first words are the title."""

    conversations: Conversations
    prompt: Prompt
    memory: MemoryManager
    clock: Clock
    options: ModelOptions
    helper: Model | None
    boundary: Boundary = Boundary()
    flush: Callable[[Session, Sequence[Message], Turn], Awaitable[None]] | None = None
    """What the model keeps before a boundary."""

    async def open(self, turn: Turn) -> tuple[Session, list[Message]]:
        """The session of the turn, with its prompt and its history."""
        blank = self._blank(turn.address, turn.scope)
        if turn.is_fresh:
            results = await self.conversations.job_results(turn.address, turn.scopes, REPORTS)
            return await self._with_prompt(await self.conversations.create(blank, "cron"), turn), results
        found = await self.conversations.opened(turn.address, turn.scopes)
        session, rows = found or (await self.conversations.ensure(blank), [])
        if session.scope != turn.scope or not session.sight <= turn.scopes:
            # Less may be seen here than when the prompt was written: neither it nor what was recalled then may stay.
            session, rows = await self._followed(session, blank, "rights", turn.epoch), []
            session = await self._with_prompt(session, turn)
        elif (reason := await self._crossed(session, rows, turn)) is not None:
            if self.flush is not None:
                await self.flush(session, rows, turn)
            # What jobs have delivered since goes along: it may be what is answered now.
            rows = [*takewhile(lambda row: row.origin == "job", reversed(rows))][::-1]
            opens_at = rows[0].id if rows else None
            after = replace(blank, parent_id=session.id, title=numbered(session), opens_at=opens_at)
            session = await self._with_prompt(await self._followed(session, after, reason, turn.epoch), turn)
        elif not session.system_prompt:
            # One that had a prompt before, which instructions or an erasure took, is not new.
            is_new = not (session.sight or session.parent_id or session.is_incognito)
            session = await self._with_prompt(session, turn)
            if is_new:
                await self.memory.on_session_switch(session.id, None, "new")
        elif session.sight != turn.scopes:
            # Accounts were linked since: what is recalled from now on must go when they part.
            session = await self.conversations.keep_prompt(session.id, session.system_prompt, turn.scopes, turn.epoch)
        return session, rows

    async def prompted(self, session: Session, turn: Turn) -> Session:
        """A session that is not stored yet, with its prompt."""
        prompt = await self.prompt.write(turn.context(session, session.started_at), _hint(session, turn))
        return replace(session, system_prompt=prompt, sight=turn.scopes)

    async def compress(
        self,
        session: Session,
        parts: Parts,
        summary: str,
        turn: Turn,
        *,
        is_by_hand: bool = False,
    ) -> Session:
        """Ends a session and opens what goes on with these `parts` of it in its place: see `Conversations.create`."""
        child = replace(
            self._child(session, session.address, session.scope, parts),
            title=numbered(session),
            is_incognito=session.is_incognito,
            sight=session.sight,
        )
        if not is_by_hand:
            # There the platform's hint is not known: the next turn writes the prompt.
            child = await self.prompted(child, turn)
        row = Message(
            role="user",
            kind="summary",
            text=summary,
            session_id=session.id,
            created_at=child.started_at,
            tool_name="compress" if is_by_hand else None,
        )
        return await self._followed(session, child, "compression", turn.epoch, row if summary else None, parts.sent)

    async def end(self, session: Session) -> None:
        """Ends the session because the person starts another."""
        await self.conversations.end(session.id, "new", self.clock.now())
        await self._ended(session)

    async def turn_over(self, turn: Turn, session: Session, rows: Sequence[Message]) -> None:
        """After a turn in this session, whose history is `rows`, and whose answer has left. Raises StaleReadError."""
        if rows and not session.title and not session.is_incognito:
            await self._title(session, rows, turn)
        await self.memory.turn_over(session, rows)
        if rows:
            typed = "\n".join(said(row) for last in turns(rows)[-1:] for row in last)
            await self.memory.queue_prefetch(typed, turn.context(session, rows[-1].created_at, rows))

    async def place(self, turn: Turn) -> Session:
        """The open session of the turn's address, or a new one without a prompt."""
        return await self.conversations.ensure(self._blank(turn.address, turn.scope))

    async def amend(self, inbound: Inbound) -> bool:
        """Follows an edit or deletion on the platform, here and in memory; False when there is no such message."""
        text = None if inbound.kind == "delete" else with_attachments(inbound.text, inbound.attachments)
        message_id = await self.conversations.amend(inbound.address, inbound.message_id, text)
        if message_id is not None:
            await self.memory.amended(message_id)
        return message_id is not None

    async def branch(
        self, session: Session, scopes: frozenset[Scope], title: str | None, at: datetime, epoch: ErasureEpoch | None
    ) -> Session:
        """A child at the same address, begun `at` a moment, with a lineage of its own, that shares all that this
        session was sent."""
        rows = await self.conversations.history(session, scopes)
        own = [row.id for row in rows if row.session_id == session.id and row.kind != "summary"]
        shared = replace(
            session,
            parent_id=session.id,
            opens_at=session.opens_at or min(own, default=None),
            title=title,
            started_at=at,
            external_id=None,
            last_at=None,
        )
        summary = next((row for row in rows if row.kind == "summary"), None)
        return await self._followed(session, shared, "branch", epoch, summary)

    async def resume(
        self, session: Session, address: Address, scope: Scope, scopes: frozenset[Scope], epoch: ErasureEpoch | None
    ) -> Session:
        """Continues an earlier session: reopened at its own address, elsewhere in a child with its last turns."""
        if session.address == address and session.scope == scope:
            if session.ended_at is None:
                return session
            before = await self.conversations.current(address)
            reopened = await self.conversations.reopen(session.id, self.clock.now())
            if before is not None:
                await self._ended(before)
            await self.memory.on_session_switch(session.id, None, "resume")
            return reopened
        parts = parted(await self.conversations.history(session, scopes), CARRIED * self.options.window_tokens, 0.0)
        child = self._child(session, address, scope, parts)
        summary = parts.summary if session.sight <= scopes else None
        return await self._followed(await self.conversations.current(address), child, "new", epoch, summary)

    def _blank(self, address: Address, scope: Scope) -> Session:
        return Session(address=address, scope=scope, started_at=self.clock.now(), model=self.options.chat)

    def _child(self, parent: Session, address: Address, scope: Scope, parts: Parts) -> Session:
        return replace(
            self._blank(address, scope),
            parent_id=parent.id,
            opens_at=parts.tail[0].id if parts.tail else None,
            head_from=parts.head[0].id if parts.head else None,
            head_until=parts.head[-1].id if parts.head else None,
            title=parent.title,
        )

    async def _followed(
        self,
        before: Session | None,
        after: Session,
        reason: EndReason,
        epoch: ErasureEpoch | None,
        summary: Message | None = None,
        sent: Mapping[int, tuple[Json, ...]] | None = None,
    ) -> Session:
        """Opens `after` in place of `before`, which ends for this `reason`: see `Conversations.create`."""
        opened = await self.conversations.create(after, reason, epoch, summary=summary, sent=sent)
        if before is not None:
            await self._ended(before)
        if not opened.is_incognito:
            parent_id = after.parent_id or (before.id if before else None)
            await self.memory.on_session_switch(opened.id, parent_id, "resume" if reason == "new" else reason)
        return opened

    async def _crossed(self, session: Session, rows: Sequence[Message], turn: Turn) -> EndReason | None:
        """Since something was last said here, be it a command; what jobs deliver nobody says. Not where a message is
        answered again."""
        now, asked = self.clock.now(), {entry.inbound.message_id for entry in turn.entries}
        last = next((row.created_at for row in reversed(rows) if row.origin != "job"), now)
        if session.is_incognito or self.boundary.crossed(last, now) is None:
            return None
        if any(row.external_id in asked for row in rows):
            return None
        return self.boundary.crossed(await self.conversations.last_said(session) or now, now)

    async def _ended(self, session: Session) -> None:
        rows = await self.conversations.history(session, frozenset({session.scope}))
        await self.memory.on_session_end(session, rows)

    async def _with_prompt(self, session: Session, turn: Turn) -> Session:
        prompt = (await self.prompted(session, turn)).system_prompt
        return await self.conversations.keep_prompt(session.id, prompt, turn.scopes, turn.epoch)

    async def _title(self, session: Session, rows: Sequence[Message], turn: Turn) -> None:
        asked = next((row.text for row in rows if row.role == "user" and row.kind == "chat"), "")
        answered = next((row.text for row in reversed(rows) if row.role == "assistant"), "")
        provisional = shortened(asked, TITLE_CHARS)
        await self.conversations.retitle(session.id, provisional, turn.epoch)
        if self.helper is None or not answered:
            return
        exchange = f"Person: {asked[:1500]}\n\nAssistant: {answered[:1500]}"
        name, payer = self.options.helper, turn.payer(session)
        order = language_data("prompts", "core.agent")["title"]
        try:
            completion = await ask(self.helper, name, "title", order, (exchange,), max_tokens=64, payer=payer)
        except ModelError as error:
            _log.info("no better title", error=error.logged)
            return
        now = await self.conversations.find(session.id, frozenset((session.scope,)))
        title = shortened(completion.text.strip().strip('"“”'), TITLE_CHARS)
        if title and now is not None and now.title == provisional:
            # unless the person has renamed it meanwhile
            await self.conversations.retitle(session.id, title, turn.epoch)


def numbered(session: Session) -> str | None:
    """The title of what continues a session: ``Trip #2`` after ``Trip``."""
    found = _NUMBER.search(session.title or "") if session.parent_id is not None else None
    if session.title is None or found is None:
        return session.title and f"{session.title} #2"
    return f"{session.title[: found.start()]} #{int(found[1]) + 1}"


def window_of(session: Session, rows: Sequence[Message]) -> Window:
    """What of the history stands in the model's context, so that recall can leave it out: what was condensed does
    not."""
    spans: list[tuple[int, int, int]] = []
    for row in rows:
        if row.kind == "summary":
            spans.append((0, 0, 0))
        elif row.origin == "job":
            continue
        elif spans and spans[-1][0] == row.session_id:
            spans[-1] = (row.session_id, spans[-1][1], row.id)
        else:
            spans.append((row.session_id, row.id, row.id))
    # What is said in this turn belongs to the window as well.
    own = spans.pop()[1] if spans and spans[-1][0] == session.id else 0
    return (*sorted(span for span in spans if span[0]), (session.id, own, ENDLESS))


def _hint(session: Session, turn: Turn) -> str:
    told = language_data("prompts", "core.agent")["incognito"]
    return f"{turn.hint}\n{told}" if session.is_incognito else turn.hint
