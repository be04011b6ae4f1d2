"""Record which tool calls were carried out, so that a restart neither repeats nor loses one.

The message with the model's tool calls is stored before the tools run, and their results
afterwards. If the process is killed in between, the results are missing. `record_call` runs in the
same transaction as the call's effect, so a call without a record wasn't carried out. If a call
waits for approval, the transaction that stores the waiting change records that.

Notes and skills are files, so a transaction of state.db doesn't cover them. A change to a file is
stored before the file is written, and is unfinished until then. After a restart, the content of the
file decides about an unfinished change: it stays, or is deleted together with the record of its
call.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum

from core.store.engine import Connection, Database, in_list
from core.store.rows import get_meta, set_meta
from core.store.visibility import encode_list
from core.types import ToolCallKey

_INSERT_CALL = """
INSERT INTO tool_calls (session_id, call_id, is_waiting)
VALUES (:session_id, :call_id, FALSE) ON CONFLICT DO NOTHING
"""
_INSERT_WAITING_CALL = """
INSERT INTO tool_calls (session_id, call_id, is_waiting) VALUES (:session_id, :call_id, TRUE)
ON CONFLICT (session_id, call_id) DO UPDATE SET is_waiting = TRUE
"""
_DELETE_CALL = "DELETE FROM tool_calls WHERE session_id = :session_id AND call_id = :call_id"
_INSERT_UNFINISHED = """
INSERT INTO unfinished_changes (note_id, session_id, call_id)
VALUES (:note_id, :session_id, :call_id)
"""
_DELETE_CALLS_OF_UNDONE = f"""
DELETE FROM tool_calls WHERE (session_id, call_id) IN (
    SELECT session_id, call_id FROM unfinished_changes WHERE {in_list("note_id", "ids")}
)
"""
_DELETE_UNDONE = f"DELETE FROM note_changes WHERE {in_list('id', 'ids')}"
_DELETE_UNFINISHED = f"DELETE FROM unfinished_changes WHERE {in_list('note_id', 'ids')}"


class CallOutcome(Enum):
    """The recorded outcome of a tool call."""

    DONE = 0
    # The call was stored to wait for approval.
    WAITING = 1
    # Written by an earlier version, which didn't store which of the two happened.
    DONE_OR_WAITING = None


def record_call(connection: Connection, call: ToolCallKey) -> None:
    """Record that this transaction carries out a tool call. A call may write several times."""
    connection.execute(_INSERT_CALL, _key_values(call))


def record_waiting_call(connection: Connection, call: ToolCallKey) -> None:
    """Record that this transaction stores a tool call that waits for approval."""
    connection.execute(_INSERT_WAITING_CALL, _key_values(call))


def read_call_outcomes(connection: Connection, session_id: int) -> dict[str, CallOutcome]:
    """Return the recorded outcomes of a session's calls that have no result yet."""
    statement = "SELECT call_id, is_waiting FROM tool_calls WHERE session_id = ?"
    return {
        row["call_id"]: CallOutcome(row["is_waiting"])
        for row in connection.execute(statement, (session_id,))
    }


def forget_calls(connection: Connection, calls: Sequence[ToolCallKey]) -> None:
    """Delete the records of calls whose results are being stored."""
    for call in calls:
        connection.execute(_DELETE_CALL, _key_values(call))


def begin_approved_call(connection: Connection, session_id: int, approval: str) -> bool:
    """Record that an approved tool call begins. `approval` identifies the approval.

    Returns False if a restart has interrupted the call, because the call may have been carried out.
    """
    statement = "SELECT 1 FROM tool_calls WHERE call_id = ?"
    if connection.execute(statement, (approval,)).fetchone() is not None:
        return False
    record_call(connection, ToolCallKey(session_id, approval))
    return True


def end_approved_call(connection: Connection, approval: str) -> None:
    """Delete the record of an approved call.

    Call this when the call has ended, or when the person knows that it was interrupted.
    """
    connection.execute("DELETE FROM tool_calls WHERE call_id = ?", (approval,))


def begin_changes(
    connection: Connection, change_ids: Sequence[int], call: ToolCallKey | None
) -> None:
    """Record changes to files as unfinished. `call` is the tool call that makes them, if any."""
    call_values: dict[str, object] = {"session_id": None, "call_id": None}
    if call is not None:
        record_call(connection, call)
        call_values = _key_values(call)
    for change_id in change_ids:
        connection.execute(_INSERT_UNFINISHED, {"note_id": change_id, **call_values})


def finish_changes(connection: Connection, change_ids: Sequence[int]) -> None:
    """Record that the files of these changes are written."""
    connection.execute(_DELETE_UNFINISHED, {"ids": encode_list(change_ids)})


def withdraw_changes(connection: Connection, change_ids: Sequence[int]) -> None:
    """Delete unfinished changes whose files weren't written, and the records of their calls."""
    values = {"ids": encode_list(change_ids)}
    connection.execute(_DELETE_CALLS_OF_UNDONE, values)
    connection.execute(_DELETE_UNFINISHED, values)
    connection.execute(_DELETE_UNDONE, values)


def _key_values(call: ToolCallKey) -> dict[str, object]:
    return {"session_id": call.session_id, "call_id": call.call_id}


_TOOL_SET_KEY = "tool_set"


async def record_tool_set(database: Database, digest: str, now: datetime) -> datetime | None:
    """Store the digest of the model's tools, and return when these tools replaced others.

    Returns None if no other tools were recorded before. Sessions that began earlier than the
    returned time had other tools.
    """

    def record(connection: Connection) -> datetime | None:
        known_digest, _, since = (get_meta(connection, _TOOL_SET_KEY) or "").partition(" ")
        if known_digest != digest:
            since = now.isoformat() if known_digest else ""
            set_meta(connection, _TOOL_SET_KEY, f"{digest} {since}")
        return datetime.fromisoformat(since) if since else None

    return await database.write(record)


# The beginning of keys in `state_meta`. The rest names a conversation and a website, and the value
# is the time of a choice and the chosen link.
_LINK_KEY = "link_choice "
LINK_CHOICE_AGE = timedelta(days=1)
"""After this time, the model may choose another link of a website in a conversation."""
_DELETE_OLD_CHOICES = """
DELETE FROM state_meta WHERE substr(key, 1, length(:start)) = :start AND value < :oldest
"""


async def record_link_choice(
    database: Database, sites: Collection[str], link: str, now: datetime
) -> bool:
    """Record that a link of some websites was chosen, and return whether it may be opened.

    It may not be opened if another link was chosen for one of the websites in the last
    `LINK_CHOICE_AGE`. `sites` and `link` are hashes. Each site stands for a website in one
    conversation.
    """
    time = now.astimezone(UTC)

    def record(connection: Connection) -> bool:
        oldest = (time - LINK_CHOICE_AGE).isoformat(timespec="seconds")
        connection.execute(_DELETE_OLD_CHOICES, {"start": _LINK_KEY, "oldest": oldest})
        keys = [f"{_LINK_KEY}{site}" for site in sites]
        choices = [get_meta(connection, key) for key in keys]
        if any(choice is not None and choice.split()[1] != link for choice in choices):
            return False
        for key in keys:
            set_meta(connection, key, f"{time.isoformat(timespec='seconds')} {link}")
        return True

    return await database.write(record)
