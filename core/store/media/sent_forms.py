"""Deletes the text of replaced and removed files from the sent forms of messages."""

from __future__ import annotations

from collections.abc import Mapping

from core.store.engine import Connection, Row
from core.store.usage_limits import record_prefix_break
from core.text.frames import FILE_LEAD

_FORGET_SENT_FORM = """
UPDATE messages SET sent = NULL
WHERE address_id = :address_id AND external_id = :external_id AND sent IS NOT NULL
RETURNING session_id
"""
_FORGET_FRAMES = """
UPDATE messages SET sent = NULL
WHERE id >= :message_id AND sent LIKE :frame
RETURNING session_id
"""


def forget_sent_form(connection: Connection, values: Mapping[str, object]) -> None:
    """Delete the blocks that show the model the replaced or removed file of a message."""
    for row in connection.execute(_FORGET_SENT_FORM, values).fetchall():
        record_prefix_break(connection, row["session_id"], "edit")


def forget_file(connection: Connection, file_id: int, file_row: Row) -> None:
    """Delete the blocks that show the model a removed file, also in messages that quote it.

    Only the message that the file came with and later messages can show the file.
    """
    address_id, external_id, message_id = file_row
    forget_sent_form(connection, {"address_id": address_id, "external_id": external_id})
    if message_id is None:
        return
    values = {"message_id": message_id, "frame": f"%[{FILE_LEAD} {file_id}, %"}
    for row in connection.execute(_FORGET_FRAMES, values).fetchall():
        record_prefix_break(connection, row["session_id"], "edit")
