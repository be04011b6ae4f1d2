"""Everything stored about a person beside the conversations (see `archive.py`), table by table, as plain values, but
what runs out by itself (codes, buttons). In rooms only what this person said and made.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from core.store import rows
from core.store.erasure import LANES, SENDER
from core.store.rows import scope_parameter, visible
from core.store.sessions import SAID
from core.store.sqlite.database import Database
from core.store.sqlite.dialect import in_list, is_within, list_value
from core.types import Account, Scope

PAGE_ROWS = 500
_IN_ROOMS = "sessions.scope_id IN (SELECT id FROM scopes WHERE substr(key, 1, 5) = 'room:')"
_PROMPT = f"CASE WHEN {is_within('sessions.sight', 'scopes')} THEN system_prompt END AS system_prompt"
"""Not one that was written when more could be seen: it has notes of an account that was unlinked since."""


def _mine(column: str) -> str:
    return in_list(column, "accounts")


def _in_scope(table: str, also: str = "", more: str = "") -> str:
    """All columns of a table where its scope is the person's, or `also` holds."""
    return f"""
        SELECT {table}.*, scopes.key AS scope{more} FROM {table} JOIN scopes ON scopes.id = {table}.scope_id
        WHERE {visible(f"{table}.scope_id")} {f"OR {also}" if also else ""}
    """


_ACCOUNT = "platform || ':' || user_id"
_NAMES = """, (
    SELECT json_group_array(entities.shown) FROM fact_entities
    JOIN entities ON entities.id = fact_entities.entity_id WHERE fact_entities.fact_id = facts.id
) AS names"""

KINDS: Mapping[str, str] = {
    "account": f"SELECT platform, user_id, name, admitted_at FROM accounts WHERE {_mine(_ACCOUNT)}",
    "session": f"""
        SELECT sessions.id, scopes.key AS scope, addresses.platform, addresses.chat_id, addresses.thread_id, title,
            model, {_PROMPT}, started_at, last_at, ended_at, end_reason, messages
        FROM sessions JOIN scopes ON scopes.id = sessions.scope_id
        JOIN addresses ON addresses.id = sessions.address_id WHERE {visible()}
    """,
    "command, notice or tool": f"""
        SELECT messages.id, messages.session_id, scopes.key AS scope, role, kind, text, blocks, tool_name, sender_id,
            sender_name, created_at
        FROM sessions JOIN scopes ON scopes.id = sessions.scope_id
        CROSS JOIN messages ON messages.session_id = sessions.id
        WHERE {visible()} AND NOT ({SAID}) AND (messages.text <> '' OR messages.blocks IS NOT NULL)
    """,
    "said in a room": f"""
        SELECT messages.id, messages.session_id, scopes.key AS scope, kind, text, sender_id, sender_name, created_at
        FROM sessions JOIN scopes ON scopes.id = sessions.scope_id
        CROSS JOIN messages ON messages.session_id = sessions.id
        JOIN addresses ON addresses.id = messages.address_id
        WHERE {_IN_ROOMS} AND NOT {visible()} AND NOT sender_is_nobody AND text <> ''
        AND {_mine("addresses.platform || ':' || sender_id")}
    """,
    "fact": _in_scope("facts", _mine("account"), _NAMES),
    "change of a fact": _in_scope("fact_changes", _mine("account")),
    "change of a note": _in_scope("notes", _mine("account")),
    "change of a note put aside": _in_scope("pending_notes", _mine("account")),
    "job": _in_scope("jobs", _mine("account")),
    "waiting": f"""
        SELECT inbound, received_at FROM inbox WHERE address_id IN (SELECT address_id FROM sessions WHERE {visible()})
        OR {_mine("json_extract(inbound, '$.address.platform') || ':' || json_extract(inbound, '$.sender.id')")}
    """,
    "update that could not be read": f"""
        SELECT platform, raw, error, failed_at FROM raw_updates
        WHERE failed_at NOT NULL AND {_mine(f"platform || ':' || CASE WHEN json_valid(raw) THEN {SENDER} END")}
    """,
    "to be delivered": f"""
        SELECT lane, kind, payload, created_at FROM outbox WHERE payload NOT NULL AND lane IN ({LANES})
    """,
    "model call": _in_scope("calls"),
}
"""What is stored, by its name in an export."""

_UNSAID = {"scope_id", "address_id", "folded", "reply_id"}
"""Digests, and columns that repeat others."""
_JSON = {"blocks", "inbound", "names", "operations", "payload"}


class PersonalData:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def held(self, scopes: frozenset[Scope], accounts: Sequence[Account]) -> AsyncIterator[Mapping[str, object]]:
        """Each row as ``{"kind": ..., ...}``, times in ISO 8601, without empty values."""
        values = {
            "scopes": scope_parameter(scopes),
            "accounts": list_value(rows.clean(account.key) for account in accounts if "\0" not in account.key),
            "limit": PAGE_ROWS,
        }
        for kind, statement in KINDS.items():
            paged = f"{statement} ORDER BY 1 LIMIT :limit OFFSET :offset"
            offset, has_more = 0, True
            while has_more:
                page = await self._database.fetch_all(paged, {**values, "offset": offset})
                for row in page:
                    yield {"kind": kind, **_plain(dict(row))}
                offset, has_more = offset + PAGE_ROWS, len(page) == PAGE_ROWS


def _plain(row: Mapping[str, Any]) -> dict[str, object]:
    """A row without empty and repeating columns; its own column `kind` becomes `sort`."""
    plain: dict[str, object] = {}
    for name, value in row.items():
        if value is None or value == "" or name in _UNSAID:
            continue
        key = "sort" if name == "kind" else name
        if isinstance(value, float) and (name == "at" or name.endswith("_at") or name.startswith("valid_")):
            plain[key] = rows.moment(value).isoformat()
        else:
            plain[key] = json.loads(value) if name in _JSON else value
    return plain
