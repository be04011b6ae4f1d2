"""Files of messages, on each engine."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from core.errors import StaleReadError
from core.store.engine import Database
from core.store.media.files import MADE_PREFIX, AttachedFile, FileContent, Files
from core.types import Address
from tests.fixtures.stored_history import ANA, StoredHistory


async def test_file_that_a_tool_made_belongs_to_the_message_and_is_erased_with_it(
    database: Database,
) -> None:
    files = Files(database)
    _, message_id = await StoredHistory(database).session(["Draw my diary"])
    chart = AttachedFile(
        scope=ANA,
        address=Address(platform="telegram", chat_id="1"),
        external_id=f"{MADE_PREFIX}1",
        position=0,
        message_id=message_id,
        kind="image",
        name="draw",
        size=3,
        at=datetime(2026, 1, 1, tzinfo=UTC),
        content=FileContent(hash="ab" * 32, type="image/png", size=3, width=1, height=1),
    )

    stored = await files.store(chart)
    assert stored.message_id == message_id
    await files.drop_orphans(datetime.now(UTC))
    assert await files.load_by_message_id(message_id, frozenset({ANA})) == [stored]

    await database.execute("DELETE FROM messages WHERE id = :id", {"id": message_id})
    assert await files.find(stored.id, frozenset({ANA})) is None
    assert await files.list_removals() == ["ab" * 32]
    with pytest.raises(StaleReadError):
        await files.store(chart)
