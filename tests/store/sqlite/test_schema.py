"""What was stored by earlier versions reads as what it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.store.sqlite import opening
from core.store.sqlite.database import Database
from core.store.sqlite.schema import MIGRATIONS

_BEFORE = """
INSERT INTO scopes (id, key) VALUES (1, 'account:telegram:42');
INSERT INTO addresses (id, platform, chat_id) VALUES (1, 'telegram', '42'), (2, 'import', '1');
INSERT INTO sessions (id, address_id, scope_id, started_at, last_at) VALUES (1, 1, 1, 0, 0);
INSERT INTO messages (id, session_id, address_id, role, text, sent, is_forward, created_at) VALUES
    (1, 1, 1, 'user', 'typed', '[{"type":"text","text":"as it was sent"}]', 0, 0),
    (2, 1, 1, 'user', 'passed on', NULL, 1, 0),
    (3, 1, 2, 'user', 'from elsewhere', NULL, 0, 0),
    (4, 1, 2, 'assistant', 'an answer', NULL, 0, 0);
"""


async def test_messages_of_a_home_without_origins_get_theirs_and_keep_their_sent_form(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "MIGRATIONS", MIGRATIONS[:1])
        async with Database.open(path) as database:
            for statement in _BEFORE.split(";\n"):
                await database.write(lambda connection, one=statement: connection.execute(one))  # type: ignore[misc]
    async with Database.open(path) as database:
        found = await database.read(
            lambda connection: connection.execute(
                "SELECT origin, sent FROM messages ORDER BY id"
            ).fetchall()
        )
    assert [row["origin"] for row in found] == ["typed", "forwarded", "imported", "typed"]
    assert found[0]["sent"] == '[{"type":"text","text":"as it was sent"}]'
