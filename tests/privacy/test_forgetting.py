"""The order of the work of forgetting, and what becomes of it when something stands in its way."""

from __future__ import annotations

import asyncio

import pytest
from filelock import FileLock

from core.errors import Refused
from core.notes import locking
from core.notes.notebook import Notebook
from core.store.notes import Notes
from core.store.sqlite.database import Database
from tests.fixtures.clock import SteadyClock
from tests.fixtures.forgetting import claim_of, forgetting_of, home_of, remains_of
from tests.fixtures.note_edits import add_note
from tests.fixtures.stored_history import ANA, StoredHistory

pytestmark = pytest.mark.slow


async def test_erasure_waits_for_note_files_locked_by_another_program(
    database: Database, clock: SteadyClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "LOCK_TIMEOUT_S", 0.05)
    await StoredHistory(database).session(["I moved to Zanzibar", "Fine"])
    forgetting = forgetting_of(database, clock)
    traces = await forgetting.prepare("Zanzibar", claim_of())
    folder = home_of(database) / "memories"
    folder.mkdir(exist_ok=True)
    other = FileLock(folder / ".lock", thread_local=False)
    await asyncio.to_thread(other.acquire)
    try:
        with pytest.raises(Refused, match="I'll try again within a minute"):
            await forgetting.erase(traces.token, claim_of())
        assert await forgetting.resume() == 1, "a start is not kept up by it"
        assert await remains_of("Zanzibar", database)
    finally:
        other.release()
    clock.advance(seconds=40)
    while await forgetting.maintain():
        pass
    assert await remains_of("Zanzibar", database) == []


async def test_forget_receipt_counts_the_same_items_as_its_question(
    database: Database, clock: SteadyClock
) -> None:
    await StoredHistory(database).session(["I moved to Zanzibar", "Fine"])
    notebook = Notebook(home_of(database), Notes(database), clock, {"memory": 2_200, "user": 1_375})
    await add_note(notebook, ANA, frozenset({ANA}), "memory", "Lives in Zanzibar")
    forgetting = forgetting_of(database, clock)
    asked = await forgetting.prepare("Zanzibar", claim_of())
    receipt = await forgetting.erase(asked.token, claim_of())
    assert (receipt.counts, receipt.derived) == (asked.counts, asked.derived), (
        "what erasing adds is no copy of it"
    )
    assert dict(receipt.counts) == {"message": 1, "note": 1}
    assert await database.fetch_all("SELECT * FROM note_changes") == []
    assert await remains_of("Zanzibar", database) == []
    assert await notebook.entries(frozenset({ANA}), "memory") == []
