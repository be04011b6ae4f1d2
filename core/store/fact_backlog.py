"""Which messages were not read for facts yet, and the transaction in which they are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from core.ports import Clock
from core.store.engine import Connection
from core.store.epoch import taken
from core.store.facts import Fact, Facts
from core.store.rows import MESSAGE_COLUMNS, SESSIONS, message_of, scope_parameter, session_of
from core.store.sqlite.database import Database
from core.store.sqlite.dialect import in_list, list_value
from core.store.sqlite.fact_index import write_facts
from core.types import ErasureEpoch, Message, Session

LOOKS_BACK = timedelta(days=3)
"""What is older and unread was said while facts were turned off."""
AT_ONCE = 20
"""So many messages are read together."""
_OWN = """
messages.role = 'user' AND messages.kind = 'chat' AND messages.text <> '' AND NOT messages.sender_is_nobody
    AND messages.origin = 'typed' AND messages.created_at >= :since
"""
"""What a person has said in earnest."""
_NEW = "messages.id > COALESCE((SELECT message_id FROM fact_marks WHERE session_id = messages.session_id), 0)"
_EDITED = "messages.id IN (SELECT message_id FROM fact_rereads)"
_BEHIND = f"""
{SESSIONS} WHERE sessions.scope_id IN (SELECT id FROM scopes) AND sessions.last_at >= :since
    AND sessions.end_reason IS NOT 'import' AND EXISTS (
        SELECT 1 FROM messages WHERE messages.session_id = sessions.id AND {_OWN} AND ({_NEW} OR {_EDITED})
    )
ORDER BY sessions.id
"""
_UNREAD = f"""
SELECT {MESSAGE_COLUMNS} FROM messages WHERE messages.session_id = :session AND {_OWN} AND {_NEW}
UNION
SELECT {MESSAGE_COLUMNS} FROM messages WHERE messages.session_id = :session AND {_OWN} AND {_EDITED}
ORDER BY id LIMIT :limit
"""
_MARK = """
INSERT INTO fact_marks (session_id, message_id) VALUES (:session, :message)
ON CONFLICT (session_id) DO UPDATE SET message_id = MAX(message_id, excluded.message_id)
"""
_REREAD = """
DELETE FROM fact_rereads
WHERE message_id = :message AND :text = (SELECT text FROM messages WHERE id = :message)
"""


class FactBacklog:
    """Which messages were read for facts: a mark for each session, moved in the transaction in which `facts` learns."""

    def __init__(self, database: Database, facts: Facts, clock: Clock) -> None:
        self._database = database
        self._facts = facts
        self._clock = clock

    async def behind(self) -> Sequence[Session]:
        """The sessions with messages that were not read, but imported ones; open or ended."""
        found = await self._database.fetch_all(_BEHIND, {"since": self._clock.now() - LOOKS_BACK})
        return [session_of(row) for row in found]

    async def unread(self, session: Session) -> tuple[ErasureEpoch | None, Sequence[Message]]:
        """Those of a session, oldest first, as of an epoch; none while something there is being erased."""

        def work(connection: Connection) -> tuple[ErasureEpoch | None, Sequence[Message]]:
            epoch = taken(connection, scope_parameter(frozenset((session.scope,))))
            return epoch, self._unread(connection, session.id) if epoch else ()

        return await self._database.glance(work)

    async def keep(self, read: Sequence[Message], facts: Sequence[tuple[Fact, str]]) -> Sequence[Message]:
        """Learns and marks in one transaction; nothing of what was edited or read by another process meanwhile. Returns
        what is `unread` then."""

        def work(connection: Connection) -> Sequence[Message]:
            found = connection.execute(
                f"SELECT id FROM messages WHERE {in_list('id', 'ids')} AND ({_NEW} OR {_EDITED})",
                {"ids": list_value(message.id for message in read)},
            )
            unread = {row["id"] for row in found}
            for message in read:
                connection.execute(_MARK, {"session": message.session_id, "message": message.id})
                connection.execute(_REREAD, {"message": message.id, "text": message.text})
            for fact, heard in facts:
                if fact.message_id in unread:
                    self._facts.take(connection, fact, heard)
            return self._unread(connection, read[0].session_id)

        return await write_facts(self._database, work)

    def _unread(self, connection: Connection, session_id: int) -> list[Message]:
        values = {"session": session_id, "since": self._clock.now() - LOOKS_BACK, "limit": AT_ONCE}
        return [message_of(row) for row in connection.execute(_UNREAD, values)]
