"""These tests are about SQLite's files, so they run on no other engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.store.sqlite.database import Database
from tests.fixtures.new_database import place


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """A new state.db on disk, open."""
    async with Database.open(place(tmp_path / "state.db")) as opened:
        yield opened
