"""Everything that is kept about a person beside his conversations, table by table, as plain values to give to him.

In his own scopes that is all of it; in rooms what he said and what he made, and nothing of the others. What was said
with him is exported by `archive.py`; text indexes are made of it and hold nothing else.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from core.store import rows
from core.store.erasure import SENDER
from core.store.rows import scope_parameter, visible
from core.store.sessions import SAID
from core.store.sqlite.database import Database
from core.types import Account, Scope

PAGE_ROWS = 500
_MINE = "IN (SELECT value FROM json_each(:accounts))"
_IN_ROOMS = "sessions.scope_id IN (SELECT id FROM scopes WHERE substr(key, 1, 5) = 'room:')"
_PROMPT = """
CASE WHEN NOT EXISTS (
    SELECT 1 FROM json_each(sessions.sight) WHERE value NOT IN (SELECT value FROM json_each(:scopes))
) THEN system_prompt END AS system_prompt
"""
"""Not one that was written when more could be seen than now: notes of an account that has been parted stand in it."""
_LANES = f"""
IN (SELECT addresses.platform || ':' || addresses.chat_id
    || CASE addresses.thread_id WHEN '' THEN '' ELSE '/' || addresses.thread_id END
    FROM sessions JOIN addresses ON addresses.id = sessions.address_id WHERE {visible()})
"""

KINDS: Mapping[str, str] = {
    "account": f"""
        SELECT platform, user_id, name, admitted_at FROM accounts WHERE platform || ':' || user_id {_MINE}
    """,
    "pairing": f"""
        SELECT platform, user_id, name, created_at, expires_at, used_at FROM pairings
        WHERE platform || ':' || user_id {_MINE}
    """,
    "link": f"""
        SELECT platform, user_id, claimed_platform, claimed_user_id, claimed_name, expires_at, agreed_at, joined_at
        FROM links
        WHERE platform || ':' || user_id {_MINE} OR claimed_platform || ':' || claimed_user_id {_MINE}
    """,
    "link try": f"SELECT account, at FROM link_tries WHERE account {_MINE}",
    "parting": """
        SELECT number, scopes FROM partings WHERE EXISTS (
            SELECT 1 FROM json_each(partings.scopes) WHERE value IN (SELECT value FROM json_each(:scopes))
        )
    """,
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
        AND addresses.platform || ':' || sender_id {_MINE}
    """,
    "fact": f"""
        SELECT facts.*, scopes.key AS scope, (
            SELECT json_group_array(entities.shown) FROM fact_entities
            JOIN entities ON entities.id = fact_entities.entity_id WHERE fact_entities.fact_id = facts.id
        ) AS names
        FROM facts JOIN scopes ON scopes.id = facts.scope_id
        WHERE {visible("facts.scope_id")} OR account {_MINE}
    """,
    "change of a fact": f"""
        SELECT fact_changes.*, scopes.key AS scope FROM fact_changes JOIN scopes ON scopes.id = fact_changes.scope_id
        WHERE {visible("fact_changes.scope_id")} OR account {_MINE}
    """,
    "name in facts": f"""
        SELECT shown, scopes.key AS scope FROM entities JOIN scopes ON scopes.id = entities.scope_id
        WHERE {visible("entities.scope_id")}
    """,
    "change of a note": f"""
        SELECT notes.*, scopes.key AS scope FROM notes JOIN scopes ON scopes.id = notes.scope_id
        WHERE {visible("notes.scope_id")} OR account {_MINE}
    """,
    "change of a note put aside": f"""
        SELECT pending_notes.*, scopes.key AS scope FROM pending_notes JOIN scopes ON scopes.id = pending_notes.scope_id
        WHERE {visible("pending_notes.scope_id")} OR account {_MINE}
    """,
    "job": f"""
        SELECT jobs.*, scopes.key AS scope FROM jobs JOIN scopes ON scopes.id = jobs.scope_id
        WHERE {visible("jobs.scope_id")} OR account {_MINE}
    """,
    "run of a job": f"""
        SELECT runs.* FROM runs JOIN jobs ON jobs.id = runs.job_id
        WHERE {visible("jobs.scope_id")} OR jobs.account {_MINE}
    """,
    "button": f"""
        SELECT account, command, arguments, expires_at, address, scopes.key AS scope
        FROM actions JOIN scopes ON scopes.id = actions.scope_id
        WHERE account {_MINE} OR account IS NULL AND {visible("actions.scope_id")}
    """,
    "waiting": f"""
        SELECT inbound, received_at FROM inbox WHERE address_id IN (SELECT address_id FROM sessions WHERE {visible()})
        OR json_extract(inbound, '$.address.platform') || ':' || json_extract(inbound, '$.sender.id') {_MINE}
    """,
    "update that could not be read": f"""
        SELECT platform, raw, error, failed_at FROM raw_updates
        WHERE failed_at NOT NULL AND platform || ':' || CASE WHEN json_valid(raw) THEN {SENDER} END {_MINE}
    """,
    "incognito since": f"""
        SELECT platform, chat_id, thread_id, at FROM veils JOIN addresses ON addresses.id = veils.address_id
        WHERE address_id IN (SELECT address_id FROM sessions WHERE {visible()})
    """,
    "why a prefix was lost": f"""
        SELECT session_id, cause FROM disturbances
        WHERE session_id IN (SELECT sessions.id FROM sessions WHERE {visible()})
    """,
    "to be delivered": f"SELECT lane, kind, payload, created_at FROM outbox WHERE payload NOT NULL AND lane {_LANES}",
    "erasure": f"SELECT lane, account, made_at, begun_at, done_at FROM erasures WHERE account {_MINE}",
    "model call": f"""
        SELECT calls.*, scopes.key AS scope FROM calls JOIN scopes ON scopes.id = calls.scope_id
        WHERE {visible("calls.scope_id")}
    """,
}
"""What is held, by what it is called in an export."""

_UNSAID = {"scope_id", "address_id", "folded", "imprint", "reply_id"}
"""Columns that say nothing that another one does not say, and digests."""
_JSON = {"blocks", "inbound", "names", "operations", "payload", "scopes"}


class PersonalData:
    """Reads everything; decides nothing about whose it is but by scopes and accounts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def held(self, scopes: frozenset[Scope], accounts: Sequence[Account]) -> AsyncIterator[Mapping[str, object]]:
        """One object for each row, ``{"kind": ..., ...}`` with moments in ISO 8601 and without what is empty."""
        values = {
            "scopes": scope_parameter(scopes),
            "accounts": json.dumps([rows.clean(account.key) for account in accounts if "\0" not in account.key]),
            "limit": PAGE_ROWS,
        }
        for kind, statement in KINDS.items():
            offset, count = 0, PAGE_ROWS
            while count == PAGE_ROWS:

                def work(
                    connection: sqlite3.Connection, statement: str = statement, offset: int = offset
                ) -> list[dict[str, Any]]:
                    found = connection.execute(
                        f"{statement} ORDER BY 1 LIMIT :limit OFFSET :offset", {**values, "offset": offset}
                    )
                    return [dict(row) for row in found]

                page = await self._database.read(work)
                for row in page:
                    yield {"kind": kind, **_plain(row)}
                offset, count = offset + PAGE_ROWS, len(page)


def _plain(row: Mapping[str, Any]) -> dict[str, object]:
    """A row without what is empty or says nothing; its own column `kind` is its sort."""
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
