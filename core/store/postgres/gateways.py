"""Store which gateways share a database, and which chats each gateway works on.

All functions run in a write transaction. Writes run one after the other, so two gateways can't take
the same chat.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from core.store.engine import Connection, in_list
from core.store.postgres.schema import LIFE_LOCK
from core.store.visibility import encode_list

_CHAT_OF_INBOX = "addresses.platform || ':' || addresses.chat_id"
_WAITING_CHATS = f"""
SELECT {_CHAT_OF_INBOX} FROM inbox JOIN addresses ON addresses.id = inbox.address_id
"""
_ADOPT = f"""
UPDATE chat_owners SET gateway_id = :heir WHERE gateway_id = :gateway AND (
    chat IN ({_WAITING_CHATS})
    OR chat IN (
        SELECT split_part(address, '/', 1) FROM outbox WHERE done_at IS NULL AND dead_at IS NULL
    )
)
RETURNING chat
"""
_CLAIM_UNOWNED = f"""
INSERT INTO chat_owners (chat, gateway_id)
SELECT DISTINCT {_CHAT_OF_INBOX}, CAST(:gateway AS bigint)
FROM inbox JOIN addresses ON addresses.id = inbox.address_id
WHERE {in_list("addresses.platform", "platforms")}
ON CONFLICT (chat) DO NOTHING
RETURNING chat
"""
_ASSIGN = """
INSERT INTO chat_owners (chat, gateway_id) VALUES (:chat, :gateway) ON CONFLICT (chat) DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class Membership:
    """The gateways that have joined, and the number of the gateway that works on each chat."""

    gateways: frozenset[int]
    owners: dict[str, int]


def load_membership(connection: Connection) -> Membership:
    """Return all gateways, including dead ones that weren't given up yet, and all owners."""
    gateways = connection.execute("SELECT id FROM gateways").fetchall()
    owners = connection.execute("SELECT chat, gateway_id FROM chat_owners").fetchall()
    return Membership(
        frozenset(int(row["id"]) for row in gateways),
        {row["chat"]: int(row["gateway_id"]) for row in owners},
    )


def list_gateways(connection: Connection) -> frozenset[int]:
    """Return the numbers of all gateways, including dead ones that weren't given up yet."""
    rows = connection.execute("SELECT id FROM gateways").fetchall()
    return frozenset(int(row["id"]) for row in rows)


def assign_chat(connection: Connection, chat: str, gateway: int) -> int:
    """Assign a chat to a gateway unless it has an owner. Returns the number of the owner."""
    connection.execute(_ASSIGN, {"chat": chat, "gateway": gateway})
    row = connection.execute(
        "SELECT gateway_id FROM chat_owners WHERE chat = :chat", {"chat": chat}
    ).fetchone()
    return gateway if row is None else int(row["gateway_id"])


def give_up_gateway(connection: Connection, gateway: int, heir: int) -> frozenset[str] | None:
    """Remove a dead gateway. Give its chats with unfinished work to `heir`, and return them.

    Its other chats have no owner any more. Returns None if the gateway is alive, or if one of its
    writes hasn't ended yet.
    """
    statement = f"SELECT pg_try_advisory_xact_lock({LIFE_LOCK}, CAST(:gateway AS integer)) AS dead"
    row = connection.execute(statement, {"gateway": gateway}).fetchone()
    if row is None or not row["dead"]:
        return None
    adopted = connection.execute(_ADOPT, {"gateway": gateway, "heir": heir}).fetchall()
    connection.execute("DELETE FROM gateways WHERE id = :gateway", {"gateway": gateway})
    return frozenset(row["chat"] for row in adopted)


def claim_unowned_chats(
    connection: Connection, gateway: int, platforms: Collection[str]
) -> frozenset[str]:
    """Take all chats of these platforms that have an open inbox entry and no owner."""
    values = {"gateway": gateway, "platforms": encode_list(list(platforms))}
    rows = connection.execute(_CLAIM_UNOWNED, values).fetchall()
    return frozenset(row["chat"] for row in rows)
