"""Finds what an erasure has to take of what has come in and is no message yet: events that wait for their answer, and
updates that could not be read. Only reads.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from core.privacy.quoting import Quoting
from core.records import Claim
from core.store import codec
from core.store.erasure_list import ErasureList
from core.store.scope_filter import visible
from core.store.search_types import Query
from core.types import Account, Inbound

SENDER = """
CAST(COALESCE(
    json_extract(raw, '$.message.from.id'), json_extract(raw, '$.edited_message.from.id'),
    json_extract(raw, '$.callback_query.from.id'), json_extract(raw, '$.my_chat_member.from.id')
) AS TEXT)
"""
"""Whose an update is, as far as it says so where everybody else's does."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An event in the inbox; `key` names it for ever, `message_id` is its row where it has one already."""

    key: str
    inbound: Inbound
    message_id: int | None


def waiting(connection: sqlite3.Connection, claim: Claim, scopes: list[str]) -> Iterator[_Waiting]:
    """What waits in these scopes; for who is limited to his own words, his."""
    rows = connection.execute(
        f"""
        SELECT inbox.address_id, inbox.external_id, inbox.inbound, messages.id AS message_id
        FROM inbox LEFT JOIN messages
            ON messages.address_id = inbox.address_id AND messages.external_id = inbox.external_id
        WHERE inbox.address_id IN (SELECT sessions.address_id FROM sessions WHERE {visible()})
            OR json_extract(inbox.inbound, '$.scope') IN (SELECT value FROM json_each(:scopes))
        ORDER BY inbox.id
        """,
        {"scopes": json.dumps(scopes)},
    )
    for row in rows:
        inbound = codec.load_inbound(row["inbound"])
        if not claim.is_limited or inbound.sender.id == claim.account.user_id:
            yield _Waiting(f"{row['address_id']} {row['external_id']}", inbound, row["message_id"])


def is_asked_for(inbound: Inbound, query: Query, quoting: Quoting) -> bool:
    """Whether a message that waits has the words, and what else can be told of it is as it should be."""
    is_so = (
        (not query.text or quoting.has_words(*said(inbound)))
        and "user" in query.roles
        and query.session is None
        and query.title is None
        and (not query.platforms or inbound.address.platform in query.platforms)
        and (query.after is None or inbound.sent_at >= query.after)
        and (query.before is None or inbound.sent_at < query.before)
        and (not query.sender or query.sender.casefold() in (inbound.sender.id, inbound.sender.name.casefold()))
    )
    return is_so and inbound.kind == "message" and inbound.command is None


def said(inbound: Inbound) -> tuple[str, ...]:
    """All words of an event."""
    typed = inbound.command.arguments if inbound.command else ""
    return (inbound.text, typed, *(attachment.name for attachment in inbound.attachments))


def rows_of(connection: sqlite3.Connection, found: ErasureList) -> tuple[list[int], list[int]]:
    """What became of those that waited: the inbox entries that are there still, and the messages they are by now."""
    pairs = [key.partition(" ") for key in found.waiting]
    values = {"pairs": json.dumps([[int(address), external] for address, _, external in pairs])}
    entries, messages = (
        [
            row[0]
            for row in connection.execute(
                f"""
                SELECT {table}.id FROM json_each(:pairs) AS pair CROSS JOIN {table}
                ON {table}.address_id = json_extract(pair.value, '$[0]')
                    AND {table}.external_id = json_extract(pair.value, '$[1]')
                """,
                values,
            )
        ]
        for table in ("inbox", "messages")
    )
    return entries, messages


def failed_updates(connection: sqlite3.Connection, claim: Claim, quoting: Quoting, scopes: list[str]) -> list[int]:
    """Updates that could not be read and have the words: all of them for the owner, one's own for everybody else."""
    own = {key.removeprefix("account:") for key in scopes} | {claim.account.key}
    rows = connection.execute(
        f"""
        SELECT update_id, platform, raw, CASE WHEN json_valid(raw) THEN {SENDER} END AS sender
        FROM raw_updates WHERE failed_at IS NOT NULL
        """
    )
    return [
        row["update_id"]
        for row in rows
        if (claim.is_owner or Account(platform=row["platform"], user_id=row["sender"] or "").key in own)
        and quoting.has_words(_readable(row["raw"]))
    ]


def _readable(raw: str) -> str:
    """An update as platforms send it, with every letter as itself."""
    try:
        return codec.dump(json.loads(raw))
    except ValueError:
        return raw
