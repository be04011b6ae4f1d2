"""The store's tests run on each engine: on SQLite, and on a real PostgreSQL server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest

from core.store.engine import Database
from core.store.postgres import database as postgres
from core.store.sqlite import database as sqlite
from tests.fixtures.new_database import place
from tests.fixtures.stores import IS_POSTGRES_RUN

OpenStore = Callable[[], AbstractAsyncContextManager[Database]]


POSTGRES = pytest.param("postgres", marks=pytest.mark.slow)
FOLDER = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave all rows of a table on PostgreSQL but the first to `make postgres`.

    A row is about a value. That a method works on PostgreSQL shows with one of them.
    """
    if IS_POSTGRES_RUN:
        return
    kept: dict[tuple[Path, str], pytest.Item] = {}
    left_out: set[pytest.Item] = set()
    for item in items:
        if not isinstance(item, pytest.Function) or FOLDER not in item.path.parents:
            continue
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if parameters.get("open_store") != "postgres" or len(parameters) == 1:
            continue
        if kept.setdefault((item.path, item.originalname), item) is not item:
            left_out.add(item)
    if left_out:
        config.hook.pytest_deselected(items=[*left_out])
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(params=[POSTGRES] if IS_POSTGRES_RUN else ["sqlite", POSTGRES])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    """Opens the store of the test, once more with each call, as another process would."""
    if request.param == "postgres":
        return partial(postgres.Database.open, request.getfixturevalue("postgres_url"))
    return partial(sqlite.Database.open, place(tmp_path / "state.db"))


@pytest.fixture
async def database(open_store: OpenStore) -> AsyncIterator[Database]:
    """An open store without any message, on each engine."""
    async with open_store() as opened:
        yield opened
