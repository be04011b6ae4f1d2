"""Deletes the text of replaced and removed files from what the model is sent again.

This is in the sent forms of messages, and in the results of tools that read or found the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

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
_SELECT_RESULTS = """
SELECT id, session_id, tool_name, text, blocks FROM messages
WHERE role = 'tool' AND id > :first_id
    AND (tool_name = :reading_tool OR text LIKE '%"file_id"%' OR text LIKE :frame)
"""
_SELECT_CALL = """
SELECT blocks FROM messages
WHERE session_id = :session_id AND id < :id AND role = 'assistant' AND instr(blocks, :call_id) > 0
ORDER BY id DESC LIMIT 1
"""
_REPLACE_RESULT = """
UPDATE messages SET text = :text, blocks = :blocks, sent = NULL WHERE id = :id
"""
READING_TOOL = "read_document"
"""The name of the tool whose call names the file that its result quotes."""
REMOVED_RESULT = "[This result quoted a file that has been removed since.]"
_FILE_NUMBER = re.compile(rf'"file_id": ?(\d+)|\[{FILE_LEAD} (\d+), ')


def forget_sent_form(connection: Connection, values: Mapping[str, object]) -> None:
    """Delete the blocks that show the model the replaced or removed file of a message."""
    for row in connection.execute(_FORGET_SENT_FORM, values).fetchall():
        record_prefix_break(connection, row["session_id"], "edit")


def forget_file(connection: Connection, file_id: int, file_row: Iterable[Any]) -> None:
    """Delete the blocks that show the model a removed file, also in messages that quote it.

    Only the message that the file came with and later messages can show the file.
    """
    address_id, external_id, message_id = file_row
    forget_sent_form(connection, {"address_id": address_id, "external_id": external_id})
    if message_id is None:
        return
    forget_results(connection, {file_id}, message_id)
    values = {"message_id": message_id, "frame": f"%[{FILE_LEAD} {file_id}, %"}
    for row in connection.execute(_FORGET_FRAMES, values).fetchall():
        record_prefix_break(connection, row["session_id"], "edit")


def forget_results_of_message(connection: Connection, message_id: int) -> None:
    """Delete what tools quoted from the files of a message that is being erased."""
    statement = "SELECT id FROM message_files WHERE message_id = :id"
    file_ids = {row["id"] for row in connection.execute(statement, {"id": message_id}).fetchall()}
    forget_results(connection, file_ids, message_id)


def forget_results(connection: Connection, file_ids: Collection[int], first_id: int = 0) -> None:
    """Replace the results of tools that quote these files, after the message `first_id`."""
    if not file_ids:
        return
    values = {"first_id": first_id, "reading_tool": READING_TOOL, "frame": f"%[{FILE_LEAD} %"}
    for row in connection.execute(_SELECT_RESULTS, values).fetchall():
        if _list_quoted_files(connection, row).isdisjoint(file_ids):
            continue
        blocks = [{**block, "content": REMOVED_RESULT} for block in json.loads(row["blocks"])]
        new_values = {"id": row["id"], "text": REMOVED_RESULT, "blocks": json.dumps(blocks)}
        connection.execute(_REPLACE_RESULT, new_values)
        record_prefix_break(connection, row["session_id"], "edit")


def _list_quoted_files(connection: Connection, row: Row) -> set[int]:
    """Return the numbers of the files that a tool's result quotes."""
    file_ids = {int(number or other) for number, other in _FILE_NUMBER.findall(row["text"])}
    if row["tool_name"] != READING_TOOL or row["blocks"] is None:
        return file_ids if row["blocks"] is not None else set()
    for result in json.loads(row["blocks"]):
        call_id = result.get("tool_use_id", "")
        values = {"session_id": row["session_id"], "id": row["id"], "call_id": call_id}
        call_row = connection.execute(_SELECT_CALL, values).fetchone()
        for block in json.loads(call_row["blocks"]) if call_row is not None else ():
            if block.get("id") == call_id and isinstance(block.get("input"), dict):
                number = block["input"].get("file_id")
                file_ids |= {number} if isinstance(number, int) else set()
    return file_ids
