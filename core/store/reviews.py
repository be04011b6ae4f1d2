"""Find the people whose memory is due for a review, and record each review.

A review is recorded before it begins, so that it isn't repeated if a crash interrupts it. Rejected
proposals are also recorded, so that no later review makes them again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from hashlib import blake2b

from core.store import rows
from core.store.engine import Connection, Database
from core.store.notes import FACT, TOOL_CALL, PendingNote, insert_pending
from core.store.rows import MESSAGE_COLUMNS, read_message
from core.store.visibility import current_epoch, scope_parameter, visible
from core.text.normalize import fold, words_of
from core.types import ErasureEpoch, Message, Scope

MAX_REJECTIONS = 500
"""Older rejections are dropped."""
DIGEST_BYTES = 8

_COUNT_PENDING = f"""
SELECT COUNT(*) AS waiting FROM pending_notes WHERE {visible("scope_id")} AND NOT is_written
"""
_IS_TYPED = """
messages.role = 'user' AND messages.kind = 'chat' AND messages.text <> ''
    AND messages.origin = 'typed' AND NOT messages.sender_is_anonymous
"""
_SELECT_DUE = f"""
SELECT scopes.key AS key, MAX(messages.id) AS message_id
FROM sessions
JOIN scopes ON scopes.id = sessions.scope_id
JOIN messages ON messages.session_id = sessions.id
LEFT JOIN memory_reviews ON memory_reviews.scope_id = scopes.id
WHERE scopes.key LIKE 'account:%' AND sessions.last_at >= :since
    AND sessions.end_reason IS NOT 'import' AND NOT sessions.is_delegated
    AND messages.id > COALESCE(memory_reviews.message_id, 0) AND messages.created_at >= :since
    AND COALESCE(memory_reviews.at, 0) <= :before AND {_IS_TYPED}
GROUP BY scopes.id HAVING COUNT(*) >= :turns
ORDER BY message_id
"""
_SELECT_LATEST_REVIEW = f"""
SELECT MAX(at) AS at FROM memory_reviews WHERE {visible("scope_id")}
"""
_SELECT_TYPED = f"""
SELECT {MESSAGE_COLUMNS} FROM messages
WHERE session_id IN (SELECT id FROM sessions WHERE {visible("sessions.scope_id")})
    AND created_at >= :since AND {_IS_TYPED}
ORDER BY id DESC LIMIT :limit
"""
_RECORD = """
INSERT INTO memory_reviews (scope_id, message_id, at) VALUES (:scope_id, :message_id, :at)
ON CONFLICT (scope_id) DO UPDATE SET message_id = excluded.message_id, at = excluded.at
"""
_SELECT_REJECTIONS = f"""
SELECT rejections FROM memory_reviews WHERE {visible("scope_id")}
"""
_RECORD_REJECTIONS = """
INSERT INTO memory_reviews (scope_id, message_id, at, rejections)
VALUES (:scope_id, 0, 0, :rejections)
ON CONFLICT (scope_id) DO UPDATE SET rejections = excluded.rejections
"""
_REWORD = """
UPDATE pending_notes SET operations = :operations, account = :account, reason = :reason,
    message_id = NULL, external_id = NULL, is_proposed = FALSE
WHERE id = :id
"""


async def count_pending(database: Database, scopes: frozenset[Scope]) -> int:
    """Count the changes that wait for a confirmation."""
    row = await database.fetch_one(_COUNT_PENDING, {"scopes": scope_parameter(scopes)})
    return 0 if row is None else int(row["waiting"])


@dataclass(frozen=True, slots=True)
class DueReview:
    """A private scope in which a person has typed enough since the last review."""

    scope: Scope
    # The person's latest typed message.
    message_id: int


@dataclass(frozen=True, slots=True)
class ReviewMaterial:
    """The messages that a review reads, oldest first, and the epoch at which they were read."""

    messages: Sequence[Message]
    epoch: ErasureEpoch


class MemoryReviews:
    """Schedules the reviews of people's memory, and stores their proposals."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_due(self, turns: int, since: datetime, before: datetime) -> list[DueReview]:
        """List the private scopes with at least `turns` messages since their last review.

        Only messages that were typed after `since` count. The last review must be older than
        `before`.
        """
        values = {
            "turns": turns,
            "since": rows.to_timestamp(since),
            "before": rows.to_timestamp(before),
        }
        due = await self._database.fetch_all(_SELECT_DUE, values)
        return [DueReview(Scope(key=row["key"]), row["message_id"]) for row in due]

    async def begin(
        self,
        due: DueReview,
        scopes: frozenset[Scope],
        now: datetime,
        *,
        since: datetime,
        before: datetime,
        limit: int,
    ) -> ReviewMaterial | None:
        """Record that a review begins, and return up to `limit` messages typed after `since`.

        `scopes` are all scopes of the person. Returns None if one of them was reviewed after
        `before`, or if an erasure is running in one of them.
        """
        values = {
            "scopes": scope_parameter(scopes),
            "since": rows.to_timestamp(since),
            "limit": limit,
        }

        def begin(connection: Connection) -> ReviewMaterial | None:
            """Check that the review is still due, record it, and load the messages."""
            reviewed_at = connection.execute(_SELECT_LATEST_REVIEW, values).fetchone()["at"]
            if reviewed_at is not None and reviewed_at > rows.to_timestamp(before):
                return None
            epoch = current_epoch(connection, scope_parameter(scopes))
            if epoch is None:
                return None
            record = {
                "scope_id": rows.ensure_scope(connection, due.scope),
                "message_id": due.message_id,
                "at": rows.to_timestamp(now),
            }
            connection.execute(_RECORD, record)
            latest_first = [read_message(row) for row in connection.execute(_SELECT_TYPED, values)]
            return ReviewMaterial(latest_first[::-1], epoch)

        return await self._database.write(begin)

    async def propose(
        self, notes: Sequence[PendingNote], scopes: frozenset[Scope], epoch: ErasureEpoch
    ) -> list[PendingNote]:
        """Store the proposals of a review, and return the new ones with their ids.

        Skip proposals that already wait, that were rejected in one of the person's `scopes`, or
        that exceed the limit. Raises StaleReadError if data in the scopes of `epoch` was erased
        since.
        """

        def write(connection: Connection) -> list[PendingNote]:
            """Store the notes that weren't rejected, and return those that didn't wait already."""
            rejections = _load_rejections(connection, scopes)
            statement = "SELECT COALESCE(MAX(id), 0) AS id FROM pending_notes"
            last_id = connection.execute(statement).fetchone()["id"]
            waiting_notes = [
                insert_pending(connection, note)
                for note in notes
                if rejections.keys().isdisjoint(_digest(note))
            ]
            return [note for note in waiting_notes if note is not None and note.id > last_id]

        return await self._database.write(write, epoch)

    async def record_rejection(self, note: PendingNote) -> None:
        """Record that a person rejected a change, so that no review proposes it again."""
        await self._database.write(lambda connection: _record_rejection(connection, note))

    async def reword(
        self, note: PendingNote, reworded: PendingNote, epoch: ErasureEpoch | None = None
    ) -> None:
        """Replace the words of a waiting change with the words of a person.

        The change then belongs to that person and no longer to a message. Its earlier words count
        as rejected. Raises StaleReadError if data in the scopes of `epoch` was erased since.
        """

        def write(connection: Connection) -> None:
            if note.target != TOOL_CALL:
                _record_rejection(connection, note)
            values = {
                "id": note.id,
                "operations": rows.dump_json([astuple(each) for each in reworded.operations]),
                "account": reworded.account.key if reworded.account else None,
                "reason": reworded.reason,
            }
            connection.execute(_REWORD, values)

        await self._database.write(write, epoch)


def _record_rejection(connection: Connection, note: PendingNote) -> None:
    """Add the digests of a change to the rejected ones of its scope."""
    rejections = list(_load_rejections(connection, frozenset({note.scope})))
    latest = list(dict.fromkeys([*rejections, *_digest(note)]))[-MAX_REJECTIONS:]
    values = {
        "scope_id": rows.ensure_scope(connection, note.scope),
        "rejections": json.dumps(latest),
    }
    connection.execute(_RECORD_REJECTIONS, values)


def _load_rejections(connection: Connection, scopes: frozenset[Scope]) -> dict[str, None]:
    """Return the digests of the rejected changes in these scopes, oldest first.

    The digests are the keys of a dict, because keys are unique and keep their order.
    """
    values = {"scopes": scope_parameter(scopes)}
    digests: list[str] = []
    for row in connection.execute(_SELECT_REJECTIONS, values).fetchall():
        digests += json.loads(row["rejections"])
    return dict.fromkeys(digests)


def _digest(note: PendingNote) -> list[str]:
    """Return two digests of a proposed change: of its wording, and of the message that it cites.

    Two digests are needed because the model may word the same proposal differently, or cite another
    message for it. Proposals to end the same fact have equal digests, whatever their wording. The
    digests don't contain the person's words.
    """
    keys = []
    for operation in note.operations:
        words = "" if note.target == FACT else " ".join(words_of(fold(operation.content)))
        keys.append(f"{note.target}|{operation.action}|{operation.path}|{words.casefold()}")
        if note.target != FACT:
            keys.append(f"{note.target}|{operation.path}|message {note.message_id}")
    return [blake2b(key.encode(), digest_size=DIGEST_BYTES).hexdigest() for key in keys]
