"""SQL statements that select the messages older than the retention settings allow.

``:before`` is the time before which messages expire. ``:scopes`` are the scopes. ``:thread`` is the
topic or thread, ``''`` for messages outside of any, or ``'*'`` for all.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.store.engine import in_list
from core.store.visibility import visible

_IN_IDS = in_list("id", "ids")
SELECT_EXPIRED_MESSAGES = f"""
SELECT messages.id FROM messages JOIN sessions ON sessions.id = messages.session_id
JOIN addresses ON addresses.id = messages.address_id
WHERE {visible()} AND created_at < :before AND text <> ''
    AND :thread IN ('*', addresses.thread_id)
ORDER BY messages.id LIMIT :limit
"""
COUNT_EXPIRED_MESSAGES = f"""
SELECT COUNT(*) FROM messages JOIN sessions ON sessions.id = messages.session_id
WHERE {visible()} AND created_at < :before AND text <> ''
"""
DELETE_EXPIRED_CALLS = (
    f"DELETE FROM model_calls WHERE {visible('model_calls.scope_id')} AND at < :before"
)
SELECT_SPARED: Mapping[str, str] = {
    "facts": f"SELECT id FROM facts WHERE {_IN_IDS} AND (is_pinned OR last_at >= :before)",
    "fact_changes": f"SELECT id FROM fact_changes WHERE {_IN_IDS} AND at >= :before",
    "note_changes": f"""
        SELECT id FROM note_changes WHERE {_IN_IDS} AND (
            at >= :before OR is_pinned OR after IN (SELECT after FROM note_changes WHERE is_pinned)
        )
    """,
    "repeats": f"SELECT id FROM messages WHERE {_IN_IDS} AND created_at >= :before",
    "jobs": f"SELECT id FROM jobs WHERE {_IN_IDS} AND ended_at IS NULL",
}
"""Selects the rows among ``:ids`` that don't expire: newer and pinned rows, and active jobs."""
SELECT_PINNED_NOTES = f"""
SELECT DISTINCT after FROM note_changes
WHERE {visible("note_changes.scope_id")} AND is_pinned AND after IS NOT NULL
"""
DETACH_KEPT_FACTS = f"""
UPDATE facts SET message_id = NULL
WHERE {in_list("message_id", "messages")} AND (is_pinned OR last_at >= :before)
"""
"""Detaches kept facts from their message. Otherwise, a trigger would delete them with it."""
