"""Store embeddings: one vector for each message that recall may find.

Vectors have length 1 and are stored as float16. An empty vector marks a text that the embedding
service refuses. If a message is erased, undone or edited, triggers delete its vector in the same
transaction. `load_batch` finds the messages that need a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.store.engine import IS_SHOWN, Connection
from core.store.rows import get_meta, set_meta

# Keys of `state_meta`.
MODEL_META_KEY = "vectors_model"
SIZE_META_KEY = "vectors_size"
"""Size of a vector in bytes."""
SEARCHED_META_KEY = "vectors_until"
"""The id of the last message that was checked for a missing vector. Triggers lower this id when an
earlier message changes."""
MAX_SEARCHED_MESSAGES = 2_000
"""One call checks this many messages for missing vectors, which takes a few milliseconds."""

_SELECT_LAST_TO_SEARCH = """
SELECT MAX(id)
FROM (SELECT id FROM messages WHERE id > :after_id ORDER BY id LIMIT :max_searched) AS searched
"""
# The messages in a range of ids that have no vector of the current model and size.
_SELECT_WITHOUT_VECTOR = f"""
SELECT messages.id, messages.text, messages.sender_name FROM messages
JOIN sessions ON sessions.id = messages.session_id
LEFT JOIN message_vectors ON message_vectors.message_id = messages.id
    AND message_vectors.model = :model AND length(message_vectors.vector) IN (0, :size)
WHERE messages.id > :after_id AND messages.id <= :last_id AND message_vectors.message_id IS NULL
    AND {IS_SHOWN} AND NOT sessions.is_delegated
ORDER BY messages.id LIMIT :count
"""
_INSERT_VECTOR = f"""
INSERT INTO message_vectors (message_id, model, vector)
SELECT messages.id, :model, :vector FROM messages
WHERE messages.id = :id AND messages.text = :text AND messages.sender_name IS :name AND {IS_SHOWN}
ON CONFLICT (message_id) DO UPDATE SET model = excluded.model, vector = excluded.vector
"""
"""Does nothing if the message was erased or changed during the call to the embedding service."""
# Changes nothing if a trigger or another process has changed the value meanwhile.
_ADVANCE = "UPDATE state_meta SET value = :after WHERE key = :key AND value = :before"
_COUNT_UNSEARCHED = "SELECT COUNT(*) FROM messages WHERE id > :after_id AND kind = 'chat'"


class UnembeddedMessage(NamedTuple):
    """A message without a vector, with the text to embed."""

    id: int
    text: str
    # The sender's name.
    name: str | None


class EmbeddingBatch(NamedTuple):
    """Messages without a vector from a range of message ids, oldest first."""

    passages: Sequence[UnembeddedMessage]
    # The search began after this message.
    after_id: int
    # The search ended with this message.
    last_id: int


def load_batch(connection: Connection, model: str, size: int, count: int) -> EmbeddingBatch:
    """Load up to `count` messages without a vector of this model and size, oldest first.

    `size` is in bytes. 0 means the size of the stored vectors.
    """
    after_id = _searched_until(connection, model, size)
    search = {"after_id": after_id, "max_searched": MAX_SEARCHED_MESSAGES}
    last_id: int = connection.execute(_SELECT_LAST_TO_SEARCH, search).fetchone()[0] or after_id
    messages = _list_unembedded(connection, model, size, after_id, last_id, count)
    if len(messages) == count:
        # The batch is full, so there may be more messages without a vector before `last_id`.
        last_id = messages[-1].id
    return EmbeddingBatch(messages, after_id, last_id)


def store_vectors(
    connection: Connection,
    model: str,
    size: int,
    batch: EmbeddingBatch,
    vectors: Sequence[bytes],
) -> None:
    """Store the vectors of a batch, in the order of the batch's passages.

    If the model or size is new, the search for missing vectors starts again at the first message,
    and all older vectors are replaced.
    """
    if not _is_same_kind(connection, model, size):
        set_meta(connection, MODEL_META_KEY, model)
        set_meta(connection, SIZE_META_KEY, str(size))
        set_meta(connection, SEARCHED_META_KEY, "0")
    for message, vector in zip(batch.passages, vectors, strict=True):
        values = {**message._asdict(), "model": model, "vector": vector}
        connection.execute(_INSERT_VECTOR, values)

    # Messages that were edited or redone during the call to the service still have no vector.
    remaining = _list_unembedded(connection, model, size, batch.after_id, batch.last_id, 1)
    searched_until = remaining[0].id - 1 if remaining else batch.last_id
    progress = {
        "key": SEARCHED_META_KEY,
        "before": str(batch.after_id),
        "after": str(searched_until),
    }
    connection.execute(_ADVANCE, progress)


def count_unembedded(connection: Connection, model: str, size: int) -> int:
    """Estimate how many messages have no vector.

    Every message that `load_batch` hasn't reached yet counts.
    """
    after_id = _searched_until(connection, model, size)
    count: int = connection.execute(_COUNT_UNSEARCHED, {"after_id": after_id}).fetchone()[0]
    return count


def _list_unembedded(
    connection: Connection, model: str, size: int, after_id: int, last_id: int, count: int
) -> list[UnembeddedMessage]:
    """List at most `count` messages without a vector after `after_id` and up to `last_id`."""
    values = {
        "model": model,
        "size": size or int(get_meta(connection, SIZE_META_KEY) or 0),
        "after_id": after_id,
        "last_id": last_id,
        "count": count,
    }
    return [UnembeddedMessage(*row) for row in connection.execute(_SELECT_WITHOUT_VECTOR, values)]


def _searched_until(connection: Connection, model: str, size: int) -> int:
    """Return the id after which the search continues, or 0 for a new model or size."""
    if not _is_same_kind(connection, model, size):
        return 0
    return int(get_meta(connection, SEARCHED_META_KEY) or 0)


def _is_same_kind(connection: Connection, model: str, size: int) -> bool:
    """Return whether the stored vectors have this model and size. Size 0 matches any size."""
    if get_meta(connection, MODEL_META_KEY) != model:
        return False
    return size in (0, int(get_meta(connection, SIZE_META_KEY) or 0))
