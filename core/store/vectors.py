"""Embeddings in state.db: for each message that recall may find one vector, and which messages wait for one.

Erased, undone or edited, a message loses its vector in the same transaction (triggers in
`core/store/sqlite/schema.py`); nothing is done where one is said. Vectors are of length 1, as float16; an empty one is
of a text that the service refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.store.rows import Connection, meta, set_meta
from core.store.sqlite.schema import SHOWN

MODEL, SIZE, UNTIL = "vectors_model", "vectors_size", "vectors_until"
"""Keys of `state_meta`: of which model the vectors are, how many bytes long, and up to which message it has been looked
for those without; what changes before that takes it back (by trigger)."""
LOOKED_AT = 2_000
"""So many messages are gone through at once for those without a vector: some milliseconds."""
_LAST = "SELECT MAX(id) FROM (SELECT id FROM messages WHERE id > :until ORDER BY id LIMIT :looked_at)"
_WITHOUT = f"""
SELECT messages.id, messages.text, messages.sender_name FROM messages
JOIN sessions ON sessions.id = messages.session_id
LEFT JOIN message_vectors ON message_vectors.message_id = messages.id AND message_vectors.model = :model
    AND length(message_vectors.vector) IN (0, :size)
WHERE messages.id > :until AND messages.id <= :last AND {SHOWN} AND NOT sessions.is_delegated
    AND message_vectors.message_id IS NULL
ORDER BY messages.id LIMIT :count
"""
_KEEP = f"""
INSERT INTO message_vectors (message_id, model, vector)
SELECT messages.id, :model, :vector FROM messages
WHERE messages.id = :id AND messages.text = :text AND messages.sender_name IS :name AND {SHOWN}
ON CONFLICT (message_id) DO UPDATE SET model = excluded.model, vector = excluded.vector
"""
"""Not where the message was erased or changed while the service was asked."""
_ADVANCE = "UPDATE state_meta SET value = :after WHERE key = :key AND value = :before"
_UNREAD = "SELECT COUNT(*) FROM messages WHERE id > :until AND kind = 'chat'"


class Passage(NamedTuple):
    """A message without a vector."""

    id: int
    text: str
    name: str | None


class Waiting(NamedTuple):
    """Messages without a vector, oldest first. `until` was, and `last` is, where looking for them has got to."""

    passages: Sequence[Passage]
    until: int
    last: int


def waiting(connection: Connection, model: str, size: int, count: int) -> Waiting:
    """The next `count` without a vector of this model and of `size` bytes; 0: of the size of those that there are."""
    until = _until(connection, model, size)
    last: int = connection.execute(_LAST, {"until": until, "looked_at": LOOKED_AT}).fetchone()[0] or until
    found = _without(connection, model, size, until, last, count)
    return Waiting(found, until, found[-1].id if len(found) == count else last)


def _without(connection: Connection, model: str, size: int, until: int, last: int, count: int) -> list[Passage]:
    size = size or int(meta(connection, SIZE) or 0)
    values = {"model": model, "size": size, "until": until, "last": last, "count": count}
    return [Passage(*row) for row in connection.execute(_WITHOUT, values)]


def keep(connection: Connection, model: str, size: int, taken: Waiting, vectors: Sequence[bytes]) -> None:
    """A vector for each of the passages, in their order; those of another model or size will be replaced."""
    if not _is_same(connection, model, size):
        set_meta(connection, MODEL, model)
        set_meta(connection, SIZE, str(size))
        set_meta(connection, UNTIL, "0")
    for passage, vector in zip(taken.passages, vectors, strict=True):
        connection.execute(_KEEP, {**passage._asdict(), "model": model, "vector": vector})
    # What was changed or brought back while the service was asked still has none.
    left = _without(connection, model, size, taken.until, taken.last, 1)
    after = left[0].id - 1 if left else taken.last
    connection.execute(_ADVANCE, {"key": UNTIL, "before": str(taken.until), "after": str(after)})


def count_waiting(connection: Connection, model: str, size: int) -> int:
    """About how many messages wait for a vector."""
    found: int = connection.execute(_UNREAD, {"until": _until(connection, model, size)}).fetchone()[0]
    return found


def _until(connection: Connection, model: str, size: int) -> int:
    return int(meta(connection, UNTIL) or 0) if _is_same(connection, model, size) else 0


def _is_same(connection: Connection, model: str, size: int) -> bool:
    return meta(connection, MODEL) == model and size in (0, int(meta(connection, SIZE) or 0))
