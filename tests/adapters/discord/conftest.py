"""What the tests of the Discord adapter share: the inbox of a real state.db, and a router that
looks on."""

from __future__ import annotations

import pytest

from core.store.mailbox import Inbox
from core.store.sqlite.database import Database
from tests.fixtures.clock import SteadyClock
from tests.fixtures.fake_router import FakeRouter


@pytest.fixture
def inbox(database: Database, clock: SteadyClock) -> Inbox:
    return Inbox(database, clock)


@pytest.fixture
def router() -> FakeRouter:
    return FakeRouter()
