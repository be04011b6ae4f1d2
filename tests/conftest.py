"""What every test may ask for: a home, an open state.db, a clock; and the guard that keeps sockets
on loopback."""

from __future__ import annotations

import gc
import os
import re
import shutil
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import settings

from config.settings import Settings
from core.store.sqlite.database import Database
from gateway import queues
from tests.fixtures.clock import SteadyClock
from tests.fixtures.stores import (
    IS_POSTGRES_RUN,
    TestStores,
    make_loader,
    open_store,
    use_stores,
)

# The fixtures of this module are a plugin, which must not be imported before.
if TYPE_CHECKING:
    from tests.fixtures.postgres import PostgresServer

pytest_plugins = ["tests.fixtures.postgres"]

# What is logged while nothing was configured: drawing a traceback with its variables takes a
# second.
structlog.configure(
    processors=[structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
)
# What a test waits for most is the disk. One in memory is as real to SQLite; nothing here cuts the
# power.
MEMORY = Path("/dev/shm")
FOLDER = Path(__file__).parent
ROOM_BYTES = 2_000_000_000
LEFT_OUT_MARK = re.compile(r"\bnot (\w+)")
# `pytestmark = pytest.mark.slow`, or a list of marks.
MODULE_MARKS = re.compile(r"^pytestmark = (\[[^\]]*\]|.*)", re.MULTILINE)
MARK_NAME = re.compile(r"\bpytest\.mark\.(\w+)")
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
# `make soak` goes through the same properties with the other one.
settings.register_profile("quick", max_examples=20, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=2_000, deadline=None)
settings.load_profile("quick")
# Thousands of tests and the classes of the clients are gone through at every collection, a tenth of
# all time.
gc.set_threshold(20_000, 20, 20)
# Nothing that a worker collects before its first test becomes garbage.
if "PYTEST_XDIST_WORKER" in os.environ:
    gc.disable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Don't import a module of which every test is left out, as `make check` leaves out slow ones.

    Half of the modules are such. Importing them takes as long as running the tests of the others.
    """
    left_out = LEFT_OUT_MARK.findall(config.getoption("markexpr"))
    if not left_out or collection_path.suffix != ".py":
        return None
    marks = MODULE_MARKS.findall(collection_path.read_text(encoding="utf-8"))
    names = set(MARK_NAME.findall(" ".join(marks)))
    return True if names.intersection(left_out) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each worker of a whole run import a share of the modules before the others.

    In a new clone, pytest rewrites the asserts of a module before its first import, which takes as
    long as all imports. So no module is rewritten by every worker.
    """
    config = session.config
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if not worker or [Path(argument).name for argument in config.args] != config.getini(
        "testpaths"
    ):
        return
    paths = [path for path in sorted(FOLDER.rglob("test_*.py")) if _is_collected(path, config)]
    for path in paths[
        int(worker.removeprefix("gw")) :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    ]:
        # The collection reports what fails.
        with suppress(Exception, pytest.skip.Exception):
            import_module(".".join(path.relative_to(FOLDER.parent).with_suffix("").parts))


def _is_collected(path: Path, config: pytest.Config) -> bool:
    is_left_out = set(path.relative_to(FOLDER).parts) & set(config.getini("norecursedirs"))
    return not is_left_out and not pytest_ignore_collect(path, config)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may reach a real platform or model by mistake."""
    real = socket.socket.connect

    def connect(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else ""
        if self.family in (socket.AF_INET, socket.AF_INET6) and host not in (
            "127.0.0.1",
            "::1",
            "localhost",
        ):
            raise AssertionError(f"a test tried to connect to {host}")
        real(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", connect)
    for name in (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "TELEGRAM_BOT_TOKEN",
        "DISCORD_BOT_TOKEN",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty $MNEME_HOME."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("MNEME_HOME", str(folder))
    return folder


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with the mark `both_engines` on SQLite and PostgreSQL."""
    if metafunc.definition.get_closest_marker("both_engines") and not IS_POSTGRES_RUN:
        metafunc.parametrize("store_engine", ["sqlite", "postgres"], indirect=True)


@pytest.fixture(autouse=True)
def store_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The engine of the stores that the test opens: "sqlite" or "postgres"."""
    engine: str = getattr(request, "param", "postgres" if IS_POSTGRES_RUN else "sqlite")
    if engine == "sqlite":
        yield engine
        return

    def get_server() -> PostgresServer:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        return server

    stores = TestStores(get_server)
    use_stores(stores)
    monkeypatch.setattr(Settings, "load", make_loader(Settings.load))
    try:
        yield engine
    finally:
        use_stores(None)
        stores.close()


@pytest.fixture
async def database(tmp_path: Path, store_engine: str) -> AsyncIterator[Database]:
    """A new store, open."""
    async with open_store(tmp_path / "state.db") as opened:
        yield opened


@pytest.fixture(autouse=True)
def _no_wait_for_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer forwards, albums and long texts at once, as if no further part could arrive."""
    monkeypatch.setattr(queues, "NEXT_PART_WAIT_S", 0.0)


@pytest.fixture
def waits_for_parts(_no_wait_for_parts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let forwards, albums and long texts wait for their further parts, as they do for people."""
    monkeypatch.setattr(queues, "NEXT_PART_WAIT_S", queues.BURST_WINDOW_S)


@pytest.fixture
def clock() -> SteadyClock:
    """Friday 20 November 2026, 12:00 UTC, standing still."""
    return SteadyClock()
