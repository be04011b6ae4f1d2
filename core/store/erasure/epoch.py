"""Count erasures in the erasure epoch, so that erased words aren't written back.

A turn or job remembers the epoch at which it begins to read. If data in its scopes is erased after
that, its writes are refused, because they may repeat the erased words. Each erasure also adds a
line to a journal outside of state.db. The line is encrypted with a key that changes whenever the
epoch advances.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import datetime
from operator import xor

from core.store.engine import Connection
from core.store.rows import get_meta, set_meta
from core.store.visibility import EPOCH_META_KEY, epoch_number, scope_parameter
from core.types import Scope

JOURNAL_META_KEY = "erasure_key"
"""The key in `state_meta` of the secret that encrypts the journal line of the next erasure.

Each advance of the epoch replaces the secret with its digest. Only a backup from before an erasure
has the secret for the line of that erasure, and such a backup contains the erased words anyway.
"""

# Matches the epoch, the day, the token of the erasure, and the ciphertext in hexadecimal, e.g. "12
# 2026-11-20 Zk3bQw 9f02c4".
_JOURNAL_LINE = re.compile(r"(?m)^(\d{1,6}) (\S{10}) (\S+) ((?:[0-9a-f]{2})+)$")
_SELECT_FOR_JOURNAL = """
SELECT id, address, account, scopes, made_at, json_remove(list, '$.messages') AS list
FROM erasures WHERE id = :id
"""
"""Leaves out message ids, because in a restored backup they may belong to other messages. A replay
of the journal searches for the words instead."""
# The name of `address` in the lines of earlier versions.
_EARLIER_ADDRESS = "lane"
_INSERT_BEGUN = """
INSERT INTO erasures (id, address, account, scopes, list, made_at, started_at)
VALUES (:id, :address, :account, :scopes, :list, :made_at, :now)
ON CONFLICT (id) DO UPDATE SET address = excluded.address, account = excluded.account,
    scopes = excluded.scopes, list = excluded.list, made_at = excluded.made_at,
    started_at = excluded.started_at, epoch = NULL, done_at = NULL
"""


def advance_epoch(connection: Connection) -> int:
    """Increase the epoch, replace the journal key with its digest, and return the new epoch."""
    number = epoch_number(connection) + 1
    set_meta(connection, EPOCH_META_KEY, str(number))
    old_key = f"{get_meta(connection, JOURNAL_META_KEY)}"
    set_meta(connection, JOURNAL_META_KEY, hashlib.sha256(old_key.encode()).hexdigest())
    return number


def detach_scopes(connection: Connection, scopes: frozenset[Scope]) -> None:
    """Refuse the writes of running turns and jobs that have seen one of the scopes.

    These turns and jobs restart. Call this when a person loses access to a scope, for example after
    unlinking an account.
    """
    values = {"epoch": advance_epoch(connection), "scopes": scope_parameter(scopes)}
    statement = "INSERT INTO scope_detachments (epoch, scopes) VALUES (:epoch, :scopes)"
    connection.execute(statement, values)


def build_journal_line(connection: Connection, token: str, now: datetime) -> str:
    """Return an encrypted journal line for an erasure that has begun.

    Only a backup from before the erasure can decrypt it.
    """
    row = connection.execute(_SELECT_FOR_JOURNAL, {"id": token}).fetchone()
    content = json.dumps(dict(row)).encode()
    ciphertext = _xor_with_key(connection, token, content).hex()
    return f"{epoch_number(connection)} {now:%Y-%m-%d} {token} {ciphertext}"


def replay_journal(
    connection: Connection, journal: str, now: datetime
) -> tuple[int, Sequence[str]]:
    """Begin the erasures that a restored backup doesn't contain yet.

    The journal lists the erasures. The epoch advances to that of the last line. Returns the number
    of erasures that began, and the days (ISO 8601) of unreadable lines. If state.db has no
    messages, return no days, because there was nothing to erase.
    """
    backup_epoch = epoch_number(connection)
    # The tokens of the erasures. An erasure may have several lines.
    tokens: set[str] = set()
    unreadable_days: list[str] = []
    lines = [(int(line[1]), line[2], line[3], line[4]) for line in _JOURNAL_LINE.finditer(journal)]
    for number, day, token, ciphertext in sorted(lines):
        while epoch_number(connection) < number:
            advance_epoch(connection)
        if number <= backup_epoch:
            continue
        try:
            values = _decrypt_line(connection, token, ciphertext)
        except ValueError:
            unreadable_days.append(day)
            continue
        connection.execute(_INSERT_BEGUN, {**values, "now": now})
        tokens.add(token)

    has_messages = connection.execute("SELECT 1 FROM messages LIMIT 1").fetchone() is not None
    if not has_messages:
        return len(tokens), ()
    return len(tokens), list(dict.fromkeys(unreadable_days))


def _decrypt_line(connection: Connection, token: str, ciphertext: str) -> dict[str, object]:
    """Return the columns of an erasure. Raises ValueError if the key doesn't fit the line."""
    content = _xor_with_key(connection, token, bytes.fromhex(ciphertext))
    values: dict[str, object] = json.loads(content)
    if _EARLIER_ADDRESS in values:
        values["address"] = values.pop(_EARLIER_ADDRESS)
    return values


def _xor_with_key(connection: Connection, token: str, content: bytes) -> bytes:
    """Encrypt or decrypt content with the current journal key."""
    seed = f"{get_meta(connection, JOURNAL_META_KEY)} {token}"
    stream = hashlib.shake_256(seed.encode()).digest(len(content))
    return bytes(map(xor, content, stream))
