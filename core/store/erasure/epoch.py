"""Count erasures in the erasure epoch, so that erased words aren't written back.

A turn or job remembers the epoch at which it begins to read. If data in its scopes is erased after
that, its writes are refused, because they may repeat the erased words. Each erasure also adds a
line to a journal outside of state.db. The line is encrypted with a key that changes whenever the
epoch advances.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime

from core.store.engine import Connection
from core.store.erasure.journal import Journal, next_key, xor_with_key
from core.store.rows import get_meta, set_meta
from core.store.visibility import EPOCH_META_KEY, epoch_number, scope_parameter
from core.types import Scope

JOURNAL_META_KEY = "erasure_key"
"""The key in `state_meta` of the secret that encrypts the journal line of the next erasure.

Each advance of the epoch replaces the secret with its digest. Only a backup from before an erasure
has the secret for the line of that erasure, and such a backup contains the erased words anyway.
"""

UNKNOWN_META_KEY = "unknown_erasures"
"""The key in `state_meta` that says that erasures may be missing, because a backup was restored
without the journal of its home. The value is the journal key of that moment."""

# The key in `state_meta` of the journal lines that were reported as unreadable, as a JSON list of
# digests.
_REPORTED_META_KEY = "reported_erasures"
_SELECT_FOR_JOURNAL = """
SELECT id, address, account, scopes, made_at, json_remove(list, '$.messages') AS list
FROM erasures WHERE id = :id
"""
"""Leaves out message ids, because in a restored backup they may belong to other messages. A replay
of the journal searches for the words instead."""
_SELECT_CONTENT = "SELECT 1 FROM messages UNION ALL SELECT 1 FROM note_changes LIMIT 1"
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
    set_meta(connection, JOURNAL_META_KEY, next_key(old_key))
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
    key = f"{get_meta(connection, JOURNAL_META_KEY)}"
    ciphertext = xor_with_key(key, token, content).hex()
    return f"{epoch_number(connection)} {now:%Y-%m-%d} {token} {ciphertext}"


def replay_journal(
    connection: Connection, journal: str, now: datetime
) -> tuple[int, Sequence[str]]:
    """Begin the erasures that a restored backup doesn't contain yet.

    The journal lists the erasures. The epoch advances to that of the last line that the backup can
    decrypt. Other lines may belong to another state.db: if the epoch followed them, the lines of
    this one would be skipped when its journal arrives later. Returns the number of erasures that
    began, and the days (ISO 8601) of unreadable lines, once for each line. If state.db is empty,
    returns no days, because there was nothing to erase.
    """
    backup_epoch = line_epoch = epoch_number(connection)
    key = f"{get_meta(connection, JOURNAL_META_KEY)}"
    reported = json.loads(get_meta(connection, _REPORTED_META_KEY) or "[]")
    # The tokens of the erasures. An erasure may have several lines.
    tokens: set[str] = set()
    # The days of unreadable lines, by the digests of the lines.
    unreadable: dict[str, str] = {}
    parsed = Journal.parse(journal)
    for line in parsed.lines:
        digest = _digest_line(f"{line.epoch} {line.token}")
        if line.epoch <= backup_epoch or digest in reported:
            continue
        key, line_epoch = next_key(key, line.epoch - line_epoch), line.epoch
        try:
            values = line.decrypt(key)
        except ValueError:
            unreadable[digest] = line.day
            continue
        while epoch_number(connection) < line.epoch:
            advance_epoch(connection)
        connection.execute(_INSERT_BEGUN, {**values, "now": now})
        tokens.add(line.token)

    if tokens:
        # The journal has arrived. A restore that also repeats other erasures sets this again.
        connection.execute("DELETE FROM state_meta WHERE key = :key", {"key": UNKNOWN_META_KEY})
    for text, day in parsed.find_damaged_days(backup_epoch).items():
        unreadable[_digest_line(text)] = day
    new_days = {digest: day for digest, day in unreadable.items() if digest not in reported}
    if new_days:
        set_meta(connection, _REPORTED_META_KEY, json.dumps([*reported, *new_days]))
    has_content = connection.execute(_SELECT_CONTENT).fetchone() is not None
    return len(tokens), sorted(set(new_days.values())) if has_content else []


def note_unknown_erasures(connection: Connection) -> None:
    """Note that erasures of the home of a restored backup may be missing here."""
    set_meta(connection, UNKNOWN_META_KEY, f"{get_meta(connection, JOURNAL_META_KEY)}")


def _digest_line(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()[:16]
