"""Read all data that is stored about a person, to export it or to check an erasure.

`core/store/archive.py` exports the messages of conversations.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from itertools import count
from typing import Any

from core.store import messages, rows
from core.store.engine import Connection, Database, in_list, is_within, sent_text_sql
from core.store.erasure.statements import (
    COPY_STATEMENTS,
    FROM_GROUP_QUOTES,
    FROM_OWN_GROUP_MESSAGES,
    IS_IMPORTED,
    IS_VISIBLE_ENTRY,
    RAW_UPDATE_SENDER,
    VISIBLE_CONVERSATION_KEYS,
    VISIBLE_SESSION_IDS,
    ErasureList,
    ErasureRequest,
)
from core.store.facts.rows import ENTITY_NAMES
from core.store.visibility import encode_list, scope_parameter, visible
from core.types import Account, Scope

PAGE_ROWS = 500

_SEES_PROMPT = is_within("sessions.visible_scopes", "scopes")
"""The SQL condition that the person sees everything that the session's prompt may contain.

Otherwise the prompt may contain notes of an account that was unlinked later.
"""
_PROMPT = f"CASE WHEN {_SEES_PROMPT} THEN system_prompt END AS system_prompt"
_IS_HIDDEN_RESULT = f"(role = 'tool' AND kind = 'quote' AND NOT {_SEES_PROMPT})"
"""The SQL condition for tool results of sessions that saw more scopes than the person now sees."""


def _is_own(column: str) -> str:
    """Return the SQL condition that a column contains the key of one of the person's accounts."""
    return in_list(column, "own")


def _select_all(table: str, also: str = "", more_columns: str = "") -> str:
    """Return a statement that selects rows in visible scopes, or for which `also` holds."""
    return f"""
        SELECT {table}.*, scopes.key AS scope{more_columns}
        FROM {table} JOIN scopes ON scopes.id = {table}.scope_id
        WHERE {visible(f"{table}.scope_id")} {f"OR {also}" if also else ""}
    """


_SELECT_UNREADABLE_MESSAGES = f"""
    SELECT messages.id, messages.session_id, scopes.key AS scope, role, kind, text, blocks,
        tool_name, sender_id, sender_name, created_at
    FROM sessions JOIN scopes ON scopes.id = sessions.scope_id
    CROSS JOIN messages ON messages.session_id = sessions.id
    WHERE {visible()} AND NOT ({messages.IS_READABLE}) AND NOT {_IS_HIDDEN_RESULT}
        AND (messages.text <> '' OR messages.blocks IS NOT NULL)
"""
"""Selects the messages that the export of conversations leaves out."""
_ACCOUNT_KEY = "platform || ':' || user_id"
_INBOUND_ACCOUNT_KEY = (
    "json_extract(inbound, '$.address.platform') || ':' || json_extract(inbound, '$.sender.id')"
)
EXPORT_STATEMENTS: Mapping[str, str] = {
    "account": f"""
        SELECT platform, user_id, name, admitted_at FROM accounts WHERE {_is_own(_ACCOUNT_KEY)}
    """,
    "session": f"""
        SELECT sessions.id, scopes.key AS scope, addresses.platform, addresses.chat_id,
            addresses.thread_id, title, model, {_PROMPT}, started_at, last_at, ended_at,
            end_reason, message_count AS messages, CASE WHEN is_delegated THEN 1 END AS is_delegated
        FROM sessions JOIN scopes ON scopes.id = sessions.scope_id
        JOIN addresses ON addresses.id = sessions.address_id WHERE {visible()}
    """,
    "command, notice or tool": f"{_SELECT_UNREADABLE_MESSAGES} AND messages.kind <> 'undone'",
    "undone": f"{_SELECT_UNREADABLE_MESSAGES} AND messages.kind = 'undone'",
    "said in a room": f"""
        SELECT messages.id, messages.session_id, scopes.key AS scope, kind, text, sender_id,
            sender_name, created_at
        {FROM_OWN_GROUP_MESSAGES} AND text <> ''
    """,
    "quoted in a room": f"""
        SELECT messages.id, session_id, scopes.key AS scope, quoted {FROM_GROUP_QUOTES}
    """,
    "what a message answers": f"""
        SELECT messages.id, messages.session_id, scopes.key AS scope, quoted
        FROM sessions JOIN scopes ON scopes.id = sessions.scope_id
        CROSS JOIN messages ON messages.session_id = sessions.id
        WHERE {visible()} AND quoted IS NOT NULL
    """,
    "fact": _select_all("facts", _is_own("account"), f", {ENTITY_NAMES}"),
    "change of a fact": _select_all("fact_changes", _is_own("account")),
    "change of a note": _select_all("note_changes", _is_own("account")),
    "change of a note put aside": _select_all("pending_notes", _is_own("account")),
    "use of a skill": _select_all("skills"),
    "job": _select_all("jobs", _is_own("account")),
    "file": f"""
        SELECT message_files.*, scopes.key AS scope, type, pages, duration_s, note
        FROM message_files JOIN scopes ON scopes.id = message_files.scope_id
        LEFT JOIN files ON files.hash = message_files.hash
        WHERE {visible("message_files.scope_id")} OR {_is_own("account")}
    """,
    "text of a file": f"""
        SELECT message_files.id, name, label, text
        FROM file_parts JOIN message_files ON file_parts.hash = message_files.hash
        WHERE {visible("message_files.scope_id")} OR {_is_own("account")}
    """,
    "thumb on an answer": f"SELECT message_id, verdict, at FROM thumbs WHERE {_is_own('account')}",
    "preference": f"SELECT * FROM preferences WHERE {_is_own('account')}",
    "waiting": f"""
        SELECT inbound, received_at FROM inbox
        WHERE address_id IN (SELECT address_id FROM sessions WHERE {visible()})
        OR {_is_own(_INBOUND_ACCOUNT_KEY)}
    """,
    "update that could not be read": f"""
        SELECT platform, raw, error, failed_at FROM raw_updates
        WHERE failed_at IS NOT NULL AND {_is_own(RAW_UPDATE_SENDER)}
    """,
    "to be delivered": f"""
        SELECT address, kind, payload, created_at FROM outbox
        WHERE payload IS NOT NULL AND address IN ({VISIBLE_CONVERSATION_KEYS})
    """,
    "model call": _select_all("model_calls", _is_own("account")),
}
"""The rows that are stored about a person, by the name of their kind in an export."""

_NO_ID = "SELECT NULL, NULL, NULL,"
"""The beginning of a scan statement whose first three columns aren't used. The statements of
`CopyStatements.select` return two ids and a time in these columns."""
_SCAN_NAMES = {"facts": "fact", "jobs": "reminder", "files": "file"}
_SCAN_COPIES = tuple(
    (_SCAN_NAMES.get(kind, "thing"), statements.select)
    for kind, statements in COPY_STATEMENTS.items()
)
SCAN_STATEMENTS: Sequence[tuple[str, str]] = (
    (
        "message",
        f"""
        {_NO_ID} text, blocks, tools, {sent_text_sql(of_memory=False)} FROM messages
        WHERE session_id IN ({VISIBLE_SESSION_IDS})
        """,
    ),
    ("thing", f"{_NO_ID} system_prompt FROM sessions WHERE {visible()}"),
    ("thing", f"{_NO_ID} display_name FROM entities WHERE {visible('entities.scope_id')}"),
    (
        "recollection",
        f"""
        {_NO_ID} {sent_text_sql(of_memory=True)} FROM messages
        WHERE session_id IN ({VISIBLE_SESSION_IDS})
        """,
    ),
    (
        "thing",
        f"""
        {_NO_ID} inbound ->> 'text', json_extract(inbound, '$.command.arguments'),
            json_extract(inbound, '$.quoted.text'), json_extract(inbound, '$.quoted.name')
        FROM inbox WHERE {IS_VISIBLE_ENTRY}
        """,
    ),
    *_SCAN_COPIES,
    (
        "name",
        f"""
        {_NO_ID} sender_name FROM messages
        WHERE session_id IN ({VISIBLE_SESSION_IDS}) AND NOT ({IS_IMPORTED}) GROUP BY 4
        """,
    ),
    ("name", f"{_NO_ID} name FROM accounts WHERE :owner OR {_is_own(_ACCOUNT_KEY)}"),
    ("message", f"{_NO_ID} text {FROM_OWN_GROUP_MESSAGES} AND :is_alone"),
)
"""Statements that together select all texts that a person sees, each with a name for its rows.

The texts begin at the fourth column.
"""
_OMITTED_COLUMNS = {"scope_id", "address_id", "comparison_form", "reply_id"}
"""Columns that an export leaves out, because they contain digests or repeat other columns."""
_JSON_COLUMNS = {"blocks", "files", "inbound", "names", "operations", "payload", "quoted"}


async def export_personal_data(
    database: Database, scopes: frozenset[Scope], accounts: Sequence[Account]
) -> AsyncIterator[Mapping[str, object]]:
    """Yield all data that is stored about a person, except the messages of `Archive.export`.

    Items look like ``{"kind": "job", ...}``, with times in ISO 8601. From groups, they include only
    the person's own messages and rows, and quotes of the person. Short-lived rows such as codes and
    buttons are left out.
    """
    own_keys = [rows.clean(account.key) for account in accounts if "\0" not in account.key]
    values = {
        "scopes": scope_parameter(scopes),
        "own": encode_list(own_keys),
        "limit": PAGE_ROWS,
    }
    for kind, statement in EXPORT_STATEMENTS.items():
        page_statement = f"{statement} ORDER BY 1 LIMIT :limit OFFSET :offset"
        for offset in count(0, PAGE_ROWS):
            page = await database.fetch_all(page_statement, {**values, "offset": offset})
            for row in page:
                yield {"kind": kind, **_build_item(dict(row))}
            if len(page) < PAGE_ROWS:
                break


def count_matching_texts(
    connection: Connection, request: ErasureRequest, has_words: Callable[..., bool]
) -> Counter[str]:
    """Count the rows that are visible to the person and contain the erased words.

    `has_words` is called with the texts of a row. Returns the counts by the names in
    `SCAN_STATEMENTS`, without zeros.
    """
    values = {
        **ErasureList(request=request).parameters,
        "limited": False,
        "is_alone": not request.scope.is_group,
    }
    counts = Counter[str]()
    for name, statement in SCAN_STATEMENTS:
        for row in connection.execute(statement, values):
            if has_words(*row[3:]):
                counts[name] += 1
    return counts


def _build_item(row: Mapping[str, Any]) -> dict[str, object]:
    """Convert a row to an export item without empty columns.

    The row's column `kind` becomes `sort`, because every item has a `kind` of its own.
    """
    item: dict[str, object] = {}
    for name, value in row.items():
        if value is None or value == "" or name in _OMITTED_COLUMNS:
            continue
        key = "sort" if name == "kind" else name
        is_time = name == "at" or name.endswith("_at") or name.startswith("valid_")
        if isinstance(value, float) and is_time:
            item[key] = rows.to_datetime(value).isoformat()
        elif name in _JSON_COLUMNS:
            item[key] = json.loads(value)
        else:
            item[key] = value
    return item
