"""What every test may ask for: a home, an open state.db, a clock; and the guard that keeps sockets on loopback."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.store.sqlite.database import Database
from tests.fixtures.clock import SteadyClock


@pytest.fixture(autouse=True)
def _only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may reach a real platform or model by mistake."""
    real = socket.socket.connect

    def connect(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else ""
        if self.family in (socket.AF_INET, socket.AF_INET6) and host not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test tried to connect to {host}")
        real(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", connect)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "TELEGRAM_BOT_TOKEN", "DISCORD_BOT_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty $MNEME_HOME."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("MNEME_HOME", str(folder))
    return folder


@pytest.fixture(scope="session")
def new_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new state.db, closed: to be copied, because drawing its schema takes longer than most tests."""
    path = tmp_path_factory.mktemp("new") / "state.db"

    async def draw() -> None:
        async with Database.open(path):
            pass

    asyncio.run(draw())
    return path


@pytest.fixture
async def database(tmp_path: Path, new_database: Path) -> AsyncIterator[Database]:
    """A new state.db on disk, open."""
    async with Database.open(Path(shutil.copy(new_database, tmp_path))) as opened:
        yield opened


@pytest.fixture
def clock() -> SteadyClock:
    """Friday 20 November 2026, 12:00 UTC, standing still."""
    return SteadyClock()
