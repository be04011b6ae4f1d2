"""Sessions and their messages: opened, appended to, reworded, erased, read back exactly as the model saw them, and as
people list and read them. Incognito ones are held in memory only, beside those that are written down.

A call of a class is one transaction; functions that take a connection run inside theirs. Of incognito conversations
state.db has the ids of their events and a mark for each address, so that the next process can say that they are gone;
no word of them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import lru_cache

from core.errors import StaleReadError, StoreError
from core.ports import Clock
from core.store import lineage, rows
from core.store.actions import ButtonAction, insert_actions
from core.store.incognito import IncognitoConversation, IncognitoRegistry
from core.store.lineage import Undoing
from core.store.mailbox import OutboxItem, close_entries, fill_outbox_item
from core.store.rows import MESSAGE_COLUMNS, Connection, Row, message_of, place, scope_parameter, timestamp, visible
from core.store.sqlite.database import Database
from core.store.sqlite.indexing import want_checkpoint, write_text
from core.store.usage import ModelCall, disturb, log_call
from core.text.normalize import bare
from core.types import Address, EndReason, ErasureEpoch, Inbound, Json, Message, Quoted, Scope, Session, is_memory

SESSION = f"{rows.SESSIONS} WHERE sessions.id = :id"
VISIBLE_SESSION = f"{SESSION} AND {visible()}"
OPEN_SESSION = f"""
{rows.SESSIONS}
WHERE addresses.platform = :platform AND addresses.chat_id = :chat_id AND addresses.thread_id = :thread_id
    AND sessions.ended_at IS NULL
"""
HISTORY = f"""
WITH RECURSIVE line (id, parent_id, opens_at, closes_at, from_id, until_id, sight) AS (
    SELECT id, parent_id, opens_at, closes_at, 0, 9223372036854775807, NULL FROM sessions
    WHERE id = :session AND {visible()}
    UNION
    SELECT sessions.id, sessions.parent_id, sessions.opens_at, sessions.closes_at,
        (SELECT opens_at FROM sessions WHERE id = :session), line.closes_at, sessions.sight
    FROM line JOIN sessions ON sessions.id = line.parent_id
    WHERE line.opens_at IS NOT NULL AND {visible()}
), parts (id, from_id, until_id, sight) AS (
    SELECT id, from_id, until_id, sight FROM line
    UNION ALL
    SELECT sessions.id, own.head_from, own.head_until + 1, sessions.sight
    FROM sessions AS own CROSS JOIN messages AS head ON head.id = own.head_from
    CROSS JOIN sessions ON sessions.id = head.session_id
    WHERE own.id = :session AND {visible()}
)
SELECT {MESSAGE_COLUMNS}, messages.sent, parts.sight
FROM parts CROSS JOIN messages ON messages.session_id = parts.id
    AND messages.id >= parts.from_id AND messages.id < parts.until_id
WHERE messages.kind IN ('chat', 'quote') OR messages.kind = 'summary' AND parts.id = :session
ORDER BY CASE messages.kind
    WHEN 'summary' THEN COALESCE((SELECT opens_at FROM sessions WHERE id = :session) - 1, messages.id)
    ELSE messages.id END, messages.id
"""
"""A session and its parents, each cut where its child was opened: what is said later at the parent's own address must
not appear in the middle of the child's prefix. After a compression the first exchange of the lineage stands before it,
and between the two the session's own summary."""

INSERT = """
INSERT INTO sessions (address_id, scope_id, external_id, parent_id, root_id, opens_at, head_from, head_until, closes_at,
    title, model, system_prompt, sight, started_at, last_at, ended_at, end_reason, is_delegated)
VALUES (:address, :scope, :external_id, :parent_id,
    (SELECT COALESCE(root_id, id) FROM sessions WHERE id = :parent_id AND NOT :is_delegated AND :ending <> 'branch'),
    :opens_at, :head_from, :head_until, (SELECT COALESCE(MAX(id), 0) + 1 FROM messages), :title, :model,
    :system_prompt, :sight, :started_at, :last_at, :ended_at, :end_reason, :is_delegated)
"""
END = "UPDATE sessions SET ended_at = :at, end_reason = :reason WHERE id = :id AND ended_at IS NULL"
REOPEN = "UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = :id"
END_OPEN = f"""
UPDATE sessions SET ended_at = :at, end_reason = :reason WHERE address_id = ({rows.ADDRESS}) AND ended_at IS NULL
"""
SET_PROMPT = """
UPDATE sessions SET system_prompt = :prompt, sight = :sight WHERE id = :id AND system_prompt IN ('', :prompt)
"""
COUNT_MESSAGE = """
UPDATE sessions SET messages = messages + :messages, started_at = MIN(started_at, :at), last_at = MAX(last_at, :at)
WHERE id = :id
"""

SAID = """(messages.kind = 'chat' OR messages.kind = 'quote' AND messages.role = 'assistant') AND messages.text <> ''
AND (messages.role <> 'tool' OR messages.blocks IS NULL)"""
"""What a person reads of a session: also answers that repeat history (kind quote), nothing of tools but imported lines,
which have no blocks."""
TRANSCRIPT = f"""
SELECT {MESSAGE_COLUMNS} FROM sessions JOIN messages ON messages.session_id = sessions.id
WHERE sessions.id = :id AND {visible()} AND {SAID}
ORDER BY CASE sessions.end_reason WHEN 'import' THEN messages.created_at END, messages.id
"""
"""Older parts may have been imported later."""

LAST_SAID = """
SELECT MAX(created_at) AS at FROM messages
WHERE address_id = (SELECT address_id FROM sessions WHERE id = :session) AND origin <> 'job'
"""
JOB_RESULTS = f"""
SELECT {MESSAGE_COLUMNS} FROM messages JOIN sessions ON sessions.id = messages.session_id
WHERE messages.address_id IN (SELECT sessions.address_id FROM sessions WHERE {visible()})
    AND messages.external_id >= 'job:' || :job || '@' AND messages.external_id < 'job:' || :job || 'A'
    AND {visible()} AND {SAID} ORDER BY messages.id DESC LIMIT :limit
"""
"""Wherever its target was then: a room may have moved, or have ceased to be the owner's."""

INSERT_MESSAGE = """
INSERT INTO messages (session_id, address_id, role, kind, text, blocks, sent, tools, tool_name, external_id,
    sender_id, sender_name, sender_is_nobody, origin, quoted, created_at, usage)
SELECT id, address_id, :role, :kind, :text, :blocks, :sent, :tools, :tool_name, :external_id,
    :sender_id, :sender_name, :sender_is_nobody, :origin, :quoted, :created_at, :usage
FROM sessions WHERE id = :session_id
ON CONFLICT (address_id, external_id) WHERE external_id IS NOT NULL DO NOTHING
"""
_KNOWN = f"""
SELECT {MESSAGE_COLUMNS}, messages.sent FROM sessions JOIN messages ON messages.address_id = sessions.address_id
WHERE sessions.id = :session_id AND messages.external_id = :external_id
"""
_IN_CHAT = """
FROM messages JOIN sessions ON sessions.id = messages.session_id
WHERE messages.address_id IN (SELECT id FROM addresses WHERE platform = :platform AND chat_id = :chat_id)
"""
_THERE = f"{_IN_CHAT} AND messages.external_id = :external_id"
_NEAREST = f"ORDER BY messages.address_id <> ({rows.ADDRESS})"
"""A message may have been answered, and so stored, in another topic of its chat."""
_BY_EXTERNAL_ID = f"""
SELECT messages.id, messages.session_id, messages.kind, messages.text, messages.blocks {_THERE} {_NEAREST}
"""
_VISIBLE_BY_EXTERNAL_ID = f"""
SELECT {MESSAGE_COLUMNS} {_THERE} AND messages.kind = 'chat' AND {visible()} {_NEAREST}
"""
_OF_OUTBOX = f"""
SELECT outbox.message_id FROM outbox
WHERE outbox.lane IN (SELECT {rows.LANE} FROM addresses WHERE platform = :platform AND chat_id = :chat_id)
    AND instr(outbox.posted, '"' || :external_id || '"')
"""
_QUOTED = f"""
SELECT {MESSAGE_COLUMNS}, 0 {_THERE} AND {visible()}
UNION ALL SELECT {MESSAGE_COLUMNS}, 0 {_IN_CHAT} AND messages.posted_id = :external_id AND {visible()}
UNION ALL SELECT {MESSAGE_COLUMNS}, 1 {_IN_CHAT} AND messages.id IN ({_OF_OUTBOX}) AND {visible()}
LIMIT 1
"""
"""A message of a chat by its platform's id: what a person said, an answer by its first part, or by (1) a later one."""
SET_SENT = "UPDATE messages SET sent = :sent WHERE id = :id AND NOT (kind = 'command' AND text = '')"
"""Not of one that was erased meanwhile."""
_REWORD = "UPDATE messages SET text = :text, blocks = NULL, sent = NULL WHERE id = :id"
_REWORD_QUOTES = """
UPDATE messages SET sent = NULL, quoted = json_set(quoted, '$.kind', 'reply', '$.text', :shown)
WHERE id > :id AND address_id IN (SELECT id FROM addresses WHERE platform = :platform AND chat_id = :chat_id)
    AND quoted ->> '$.message_id' = :id AND NOT (quoted ->> '$.kind' = 'part' AND instr(:text, quoted ->> '$.text'))
RETURNING session_id
"""
"""What answers a message says what that says now, and not what it said before."""
_ERASE = """
UPDATE messages SET kind = 'command', text = '', blocks = NULL, sent = NULL, tools = NULL, tool_name = NULL,
    sender_id = NULL, sender_name = NULL, quoted = NULL
WHERE id = :id
"""
_DELETE_TITLE_MADE_OF_IT = """
UPDATE sessions SET title = NULL
FROM sessions AS first
WHERE first.id = :session_id AND first.parent_id IS NULL AND first.external_id IS NULL
    AND (COALESCE(sessions.root_id, sessions.id) = first.id OR sessions.parent_id IN (
        SELECT id FROM sessions AS part WHERE COALESCE(part.root_id, part.id) = first.id
    ))
    AND (sessions.title = first.title OR instr(sessions.title, first.title || ' #') = 1
        OR instr(sessions.title, first.title || ' (branch)') = 1)
    AND NOT EXISTS (
        SELECT 1 FROM messages WHERE session_id = :session_id AND id < :id AND role = 'user' AND kind = 'chat'
    )
    AND NOT EXISTS (
        SELECT 1 FROM messages WHERE session_id = :session_id AND kind = 'command' AND text = '/title ' || first.title
    )
"""
"""Deletes the title made of the first words of a conversation from all its parts, not one given by hand or imported."""

_MARK = "INSERT INTO veils (address_id, at) VALUES (:address, :now) ON CONFLICT (address_id) DO NOTHING"
_UNMARK = f"DELETE FROM veils WHERE address_id = ({rows.ADDRESS})"
_EMPTY_INBOX = """
UPDATE inbox SET inbound = json_set(
    inbound, '$.text', '', '$.command', NULL, '$.attachments', json('[]'), '$.reply_to', NULL, '$.quoted', NULL
) WHERE address_id = :address
"""
_MARKED = """
SELECT platform, chat_id, thread_id FROM veils JOIN addresses ON addresses.id = veils.address_id
ORDER BY veils.at, addresses.id
"""
_WAITING = "SELECT id FROM inbox WHERE address_id IN (SELECT address_id FROM veils)"
_ENTRY = f"SELECT id FROM inbox WHERE address_id = ({rows.ADDRESS}) AND external_id = :external_id"

QUOTED_CHARS, NAME_CHARS = 500, 80
"""Most of what a message answers, and of who wrote it, that is kept and shown to the model."""
CACHED_MESSAGES = 2_000
"""Most that are kept as they were read, of all histories together."""


class Conversations:
    """Sessions and their messages: in memory where `incognito` has the address, else in state.db."""

    def __init__(self, database: Database, clock: Clock, incognito: IncognitoRegistry | None = None) -> None:
        self._database = database
        self._clock = clock
        self._incognito = incognito or IncognitoRegistry()
        self._message_of = lru_cache(CACHED_MESSAGES)(message_of)
        """Every turn reads the whole history, of which nearly all is as it was."""

    def invalidate(self) -> None:
        """Drops what may repeat what was erased."""
        self._message_of.cache_clear()
        self._incognito.invalidate()

    async def current(self, address: Address) -> Session | None:
        if held := self._incognito.conversations.get(address):
            return held.session
        return await self._database.glance(lambda connection: _open(connection, address))

    async def opened(self, address: Address, scopes: frozenset[Scope]) -> tuple[Session, list[Message]] | None:
        """The open session of the address with its `history`."""
        if held := self._incognito.conversations.get(address):
            return (held.session, held.history(scopes)) if held.session else None

        def work(connection: Connection) -> tuple[Session, list[Message]] | None:
            session = _open(connection, address)
            return (session, self._history(connection, session, scopes)) if session else None

        return await self._database.glance(work)

    async def ensure(self, session: Session) -> Session:
        """The open session of the address; `session`, created, when there is none, or one of another scope."""
        if (found := await self.current(session.address)) and found.scope == session.scope:
            return found
        if held := self._incognito.conversations.get(session.address):
            return self._incognito.open(held, session)

        return await self._database.write(lambda connection: ensure(connection, session))

    async def create(
        self,
        session: Session,
        ending: EndReason = "new",
        epoch: ErasureEpoch | None = None,
        *,
        summary: Message | None = None,
        sent: Mapping[int, tuple[Json, ...]] | None = None,
    ) -> Session:
        """See the function `create`; with the `summary` of what it does not carry on and, by id, the blocks as which
        messages that it carries on are `sent` from now on. An incognito one replaces the one before it."""
        if session.is_incognito:
            return self._incognito.compress(session, summary, sent or {})
        if held := self._incognito.conversations.get(session.address):
            return self._incognito.open(held, session)

        def work(connection: Connection) -> Session:
            opened = create(connection, session, ending)
            if summary is not None:
                append(connection, replace(summary, session_id=opened.id, created_at=session.started_at))
            for message_id, blocks in (sent or {}).items():
                connection.execute(SET_SENT, {"id": message_id, "sent": rows.dump(blocks)})
            return opened

        return await self._database.write(work, epoch)

    async def end(self, session_id: int, reason: EndReason, at: datetime) -> None:
        """Ends a session; one that has ended keeps its reason. An incognito one is gone with it, and what comes next
        there is written down again."""
        if session_id >= 0:
            await self._database.execute(END, {"id": session_id, "reason": reason, "at": at})
        elif held := self._incognito.of(session_id):
            for address in [address for address, one in self._incognito.conversations.items() if one is held]:
                del self._incognito.conversations[address]
                await self.unmark(address)

    async def reopen(self, session_id: int, at: datetime) -> Session:
        """Continues an ended session at its address, with its stored prompt; the one open there ends (`resumed`).
        Raises StoreError for an unknown session."""

        def work(connection: Connection) -> Session:
            session = _load(connection, session_id)
            if session.ended_at is None:
                return session
            connection.execute(END_OPEN, {**place(session.address), "reason": "resumed", "at": at})
            connection.execute(REOPEN, {"id": session_id})
            return _load(connection, session_id)

        return await self._database.write(work)

    async def find(self, session_id: int, scopes: frozenset[Scope]) -> Session | None:
        """A session by id; None when there is none in these scopes."""
        row = await self._database.fetch_one(VISIBLE_SESSION, _visible_values(session_id, scopes))
        return None if row is None else rows.session_of(row)

    async def retitle(self, session_id: int, title: str, epoch: ErasureEpoch | None = None) -> None:
        values = {"id": session_id, "title": title}
        await self._database.execute("UPDATE sessions SET title = :title WHERE id = :id", values, epoch)

    async def append(
        self,
        messages: Sequence[Message],
        closing: Sequence[int] = (),
        outbox_item: OutboxItem | None = None,
        *,
        sent: Sequence[tuple[int, tuple[Json, ...]]] = (),
        calls: Sequence[ModelCall] = (),
        actions: Sequence[ButtonAction] = (),
        epoch: ErasureEpoch | None = None,
    ) -> list[Message]:
        """Appends messages, closes inbox entries, fills the outbox item (holds it, where it has no answer yet), sets
        the `sent` blocks of earlier messages by id, logs `calls` of the model and stores the `actions` of buttons, all
        in one transaction. Incognito words never fill an outbox item: they leave through the reply at hand or not.
        Returns the messages as they are read back; one whose (address, external id) is known, also from an earlier
        session, as it stands. Raises StoreError for an unknown session; nothing is kept then."""
        if min((message.session_id for message in messages), default=0) < 0 or any(id_ < 0 for id_, _ in sent):
            if closing or calls or actions:
                # First: an answer that is refused, since it may have been made of what was forgotten, is not held.
                await self.append((), closing, calls=calls, actions=actions, epoch=epoch)
            forms = dict(sent)
            for held in self._incognito.conversations.values():
                held.rows = [replace(row, sent=forms[row.id]) if row.id in forms else row for row in held.rows]
            return [self._incognito.append(message) for message in messages]
        now = self._clock.now()

        def work(connection: Connection) -> list[Message]:
            stored = [append(connection, message) for message in messages]
            for message_id, blocks in sent:
                connection.execute(SET_SENT, {"id": message_id, "sent": rows.dump(blocks)})
            for call in calls:
                log_call(connection, call)
            if actions:
                insert_actions(connection, actions, now)
            if closing:
                close_entries(connection, closing, now)
            if outbox_item is not None:
                spoken = [message.id for message in stored if message.role == "assistant"]
                fill_outbox_item(connection, outbox_item, now, spoken[-1] if spoken else None)
            return stored

        is_short = sum(len(message.text) for message in messages) < 10_000  # else its index takes a while
        return await write_text(self._database, work, epoch, is_short=is_short)

    async def history(self, session: Session, scopes: frozenset[Scope]) -> list[Message]:
        """What the model may see (kinds chat and quote), oldest first, of the session and its parents from `opens_at`
        on, as far as they are of these scopes. Where a parent could see more, what memory added to it is left out."""
        if session.id < 0:
            held = self._incognito.of(session.id)
            return held.history(scopes) if held else []
        return await self._database.read(lambda connection: self._history(connection, session, scopes))

    async def last_said(self, session: Session) -> datetime | None:
        """When something was last said at the session's address, in whichever session, also in a command."""
        row = await self._database.fetch_one(LAST_SAID, {"session": session.id})
        return None if row is None else rows.maybe_moment(row["at"])

    async def job_results(self, address: Address, scopes: frozenset[Scope], limit: int) -> list[Message]:
        """What the job of a cron session's address delivered last where its results go, oldest first."""
        values = {"job": address.chat_id, "scopes": scope_parameter(scopes), "limit": limit}
        return [message_of(row) for row in reversed(await self._database.fetch_all(JOB_RESULTS, values))]

    async def keep_prompt(
        self, session_id: int, prompt: str, sight: frozenset[Scope] = frozenset(), epoch: ErasureEpoch | None = None
    ) -> Session:
        """Stores the system prompt of a session that has none, with the scopes it was written from, or what is seen
        with the prompt that it has; returns the session as it stands."""
        if (held := self._incognito.of(session_id)) and held.session:
            if held.session.system_prompt in ("", prompt):
                held.change(system_prompt=prompt, sight=sight)
            return held.session
        values = {"id": session_id, "prompt": prompt, "sight": scope_parameter(sight)}

        def work(connection: Connection) -> Session:
            connection.execute(SET_PROMPT, values)
            return _load(connection, session_id)

        return await self._database.write(work, epoch)

    async def amend(self, address: Address, external_id: str, text: str | None) -> int | None:
        """Replaces the text of a message edited on the platform, or erases it (None); returns its id, None when it is
        not known. What was sent to the model goes too: an edit may be meant to take words back. An erased message keeps
        its id, so that it is never taken in again, and needs no answer. The text of a command is never replaced: its
        arguments may be a secret."""
        now = self._clock.now()
        held = self._incognito.conversations.get(address)
        known = held.find(external_id) if held else None
        if held is not None and known is not None:
            held.amend(known, text)
            if text is not None:
                return known.id

        def work(connection: Connection) -> int | None:
            message_id = amend_message(connection, address, external_id, text)
            if text is None:
                waiting = connection.execute(_ENTRY, {**place(address), "external_id": external_id}).fetchall()
                close_entries(connection, [row["id"] for row in waiting], now)
            return message_id

        message_id = await write_text(self._database, work)
        return message_id if known is None else known.id

    async def quoted(self, inbound: Inbound, scopes: frozenset[Scope]) -> Quoted | None:
        """What a message answers: in the words that stand here, where these scopes see them in this chat, else in those
        that its platform gives. Only an answer costs a look."""
        given, external_id = inbound.quoted, inbound.reply_to
        if external_id is not None and inbound.kind == "message" and not (given and given.kind == "forward"):
            held = self._incognito.conversations.get(inbound.address)
            if held and (known := held.find(external_id)):
                given = _quoted(known, given)
            else:
                values = {**place(inbound.address), "external_id": external_id, "scopes": scope_parameter(scopes)}
                row = await self._database.glance(lambda one: one.execute(_QUOTED, values).fetchone())
                given = given if row is None else _quoted(message_of(row[:-1]), given, is_later_part=bool(row[-1]))
        return given and replace(given, text=_cut(given.text), name=given.name[:NAME_CHARS])

    async def begin_incognito(self, address: Address) -> None:
        """Until the session at the address ends; takes the words out of the inbox entries that wait there."""
        now = self._clock.now()

        def work(connection: Connection) -> None:
            values = {"address": rows.ensure_address(connection, address), "now": now}
            connection.execute(_MARK, values)
            if connection.execute(_EMPTY_INBOX, values).rowcount:
                want_checkpoint(connection)

        # First the mark: should the process end in between, a conversation that never began is reported as lost.
        await self._database.write(work)
        self._incognito.conversations.setdefault(address, IncognitoConversation())

    async def left_over(self) -> Sequence[Address]:
        """The addresses that the process before this one held incognito; closes what waited there without words."""
        now = self._clock.now()

        def work(connection: Connection) -> Sequence[Address]:
            close_entries(connection, [row["id"] for row in connection.execute(_WAITING).fetchall()], now)
            return [rows.address_of(row) for row in connection.execute(_MARKED)]

        return await self._database.write(work)

    async def unmark(self, address: Address) -> None:
        await self._database.execute(_UNMARK, rows.place(address))

    async def recent(
        self, scopes: frozenset[Scope], limit: int, text: str | None = None, roots: Collection[int] | None = None
    ) -> list[Session]:
        """See `lineage.latest`; `text` is normalized."""
        needle = bare(rows.maybe_clean(text)).strip() or None
        return await self._database.read(lambda connection: lineage.latest(connection, scopes, limit, needle, roots))

    async def tip(self, session_id: int, scopes: frozenset[Scope]) -> Session | None:
        """See `lineage.tip`."""
        return await self._database.read(lambda connection: lineage.tip(connection, session_id, scopes))

    async def undoable(self, undoing: Undoing) -> Sequence[Message]:
        """See `lineage.undoable`."""
        if held := self._incognito.of(undoing.session.id):
            return held.undoable()
        return await self._database.read(lambda connection: lineage.undoable(connection, undoing))

    async def undo(self, undoing: Undoing, ids: Sequence[int], epoch: ErasureEpoch | None = None) -> Sequence[Message]:
        """See `lineage.undo`."""
        if held := self._incognito.of(undoing.session.id):
            return held.undo(undoing.origin, ids)

        def work(connection: Connection) -> Sequence[Message]:
            undone = lineage.undo(connection, undoing, ids)
            for row in [row for row in undone if row.role == "user"][:1]:
                connection.execute(_DELETE_TITLE_MADE_OF_IT, {"session_id": row.session_id, "id": row.id})
            return undone

        return await write_text(self._database, work, epoch)

    async def bring_back(self, undoing: Undoing, epoch: ErasureEpoch | None = None) -> Sequence[Message]:
        """See `lineage.bring_back`."""
        if held := self._incognito.of(undoing.session.id):
            return held.bring_back(undoing.origin)
        return await write_text(self._database, lambda connection: lineage.bring_back(connection, undoing), epoch)

    async def transcript(self, session_id: int, scopes: frozenset[Scope]) -> list[Message]:
        """All that was said in a session, oldest first; empty for one of other scopes."""
        found = await self._database.fetch_all(TRANSCRIPT, _visible_values(session_id, scopes))
        return [message_of(row) for row in found]

    def _history(self, connection: Connection, session: Session, scopes: frozenset[Scope]) -> list[Message]:
        keys = {scope.key for scope in scopes}
        messages = []
        for *row, sight in connection.execute(HISTORY, {"session": session.id, "scopes": scope_parameter(scopes)}):
            message = self._message_of(tuple(row))
            if message.sent is not None and sight is not None and not keys.issuperset(json.loads(sight)):
                message = replace(message, sent=tuple(block for block in message.sent if not is_memory(block)))
            messages.append(message)
        return messages


def _visible_values(session_id: int, scopes: frozenset[Scope]) -> dict[str, object]:
    return {"id": rows.bounded(session_id), "scopes": scope_parameter(scopes)}


def _quoted(known: Message, given: Quoted | None, *, is_later_part: bool = False) -> Quoted:
    """A known message as an answer quotes it. What was forgotten has no text here, and gets none from elsewhere."""
    is_picked = given is not None and (given.kind == "part" or (is_later_part and known.kind == "chat"))
    author = Quoted(kind="reply", is_ours=known.role == "assistant")
    if known.origin == "forwarded":
        author = known.quoted or author
    elif known.sender is not None:
        author = replace(author, name=known.sender.name, user_id=known.sender.id)
    return replace(
        author,
        kind=given.kind if given else "reply",
        text=given.text if given and is_picked and known.text else known.text,
        at=known.created_at,
        message_id=known.id,
    )


def _cut(text: str) -> str:
    return text if len(text) <= QUOTED_CHARS else f"{text[: QUOTED_CHARS - 2].rstrip()} …"


def _open(connection: Connection, address: Address) -> Session | None:
    row = connection.execute(OPEN_SESSION, rows.place(address)).fetchone()
    return None if row is None else rows.session_of(row)


def ensure(connection: Connection, session: Session) -> Session:
    """See the method."""
    found = _open(connection, session.address)
    return found if found and found.scope == session.scope else create(connection, session, "rights")


def create(connection: Connection, session: Session, ending: EndReason = "new") -> Session:
    """Opens a session and returns it with its id; the open one of the address is ended before, for `ending`. One with
    `ended_at` (an import) is stored beside the open one. Counters start at zero. Raises StaleReadError where a
    compression's parent has ended meanwhile."""
    parent = None if session.parent_id is None else _load(connection, session.parent_id)
    if ending == "compression" and parent is not None and parent.ended_at is not None:
        raise StaleReadError("The conversation has ended meanwhile.")
    if session.ended_at is None:
        connection.execute(END_OPEN, {**place(session.address), "reason": ending, "at": session.started_at})
    values = {
        **rows.values_of(session),
        "address": rows.ensure_address(connection, session.address),
        "scope": rows.ensure_scope(connection, session.scope),
        "sight": scope_parameter(session.sight),
        "last_at": session.last_at or session.started_at,
        "ending": ending,
    }
    return _load(connection, rows.insert(connection, INSERT, values))


def _load(connection: Connection, session_id: int) -> Session:
    row = connection.execute(SESSION, {"id": session_id}).fetchone()
    if row is None:
        raise StoreError(f"There is no session {session_id}.")
    return rows.session_of(row)


def append(connection: Connection, message: Message) -> Message:
    """Inserts a message, or finds the one known by its external id; returns it as it is read back. `blocks`
    are stored only where they differ from the plain message. Raises StoreError for an unknown session."""
    text, blocks, sender = rows.clean(message.text), message.blocks, message.sender
    values = {
        **rows.values_of(message),
        "blocks": None if blocks is None else rows.dump_blocks(blocks, text),
        "sent": None if message.sent is None else rows.dump(message.sent),
        "sender_id": sender and sender.id,
        "sender_name": sender and sender.name,
        "sender_is_nobody": sender is not None and sender.is_nobody,
        "quoted": None if message.quoted is None else rows.dump(asdict(message.quoted)),
        "created_at": timestamp(message.created_at),
        "usage": None if message.usage is None else rows.dump(asdict(message.usage)),
    }
    # RETURNING would make a table for its one row, a fifth of the work.
    inserted = connection.execute(INSERT_MESSAGE, values)
    if not inserted.rowcount:
        known = connection.execute(_KNOWN, values).fetchone()
        if known is None:
            raise StoreError(f"There is no session {message.session_id}.")
        return message_of(known)
    counted = {"id": message.session_id, "messages": message.kind == "chat", "at": message.created_at}
    connection.execute(COUNT_MESSAGE, counted)
    values["id"] = inserted.lastrowid
    return message_of(values[name] for name in (*rows.MESSAGE_FIELDS, "sent"))


def amend_message(connection: Connection, address: Address, external_id: str, text: str | None) -> int | None:
    """Rewords the message with this id of its platform, or erases it (None), and what quotes it; returns its id here,
    None for none."""
    values = {**place(address), "external_id": rows.clean(external_id), "text": text or "", "shown": _cut(text or "")}
    row = connection.execute(_BY_EXTERNAL_ID, values).fetchone()
    if row is None:
        return None
    values["id"] = row["id"]
    is_talk = row["kind"] in ("chat", "quote", "undone")
    if text is None:
        erase_message(connection, row)
    elif is_talk and rows.clean(text) != row["text"]:
        connection.execute(_REWORD, values)
    else:
        return int(row["id"])
    quoting = {found["session_id"] for found in connection.execute(_REWORD_QUOTES, values).fetchall()}
    if is_talk:
        connection.execute(_DELETE_TITLE_MADE_OF_IT, {"session_id": row["session_id"], "id": row["id"]})
        quoting.add(row["session_id"])
    for session_id in quoting:
        disturb(connection, session_id, "edit")
    return int(row["id"])


def erase_message(connection: Connection, row: Row) -> None:
    """Leaves only the ids of a row (id, session_id, kind, text), of kind command, which nobody is shown."""
    if row["kind"] == "command" and not row["text"]:
        return
    connection.execute(_ERASE, {"id": row["id"]})
    if row["kind"] == "chat":
        connection.execute("UPDATE sessions SET messages = messages - 1 WHERE id = :id", {"id": row["session_id"]})


async def find_original(
    database: Database, address: Address, external_id: str, scopes: frozenset[Scope]
) -> Message | None:
    """The chat message with this id of its platform; None when there is none in these scopes."""
    values = {**place(address), "external_id": rows.clean(external_id), "scopes": scope_parameter(scopes)}
    row = await database.fetch_one(_VISIBLE_BY_EXTERNAL_ID, values)
    return None if row is None else message_of(row)
