"""What only the store of LangGraph has: its file, a search by words, and options that must fit."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError, ToolError
from core.memory.plugins import Plugins
from core.types import Scope
from tests.fixtures.provider_contract import SAID
from tests.fixtures.provider_harness import ANA, BEN, harness, provider
from tests.services.doubles.double import running
from tests.services.registry import SERVICES
from tests.services.test_zep import forget

LANGCHAIN = SERVICES["langchain"]
pytestmark = pytest.mark.slow
needs_library = pytest.mark.skipif(
    find_spec("langgraph") is None, reason="LangGraph is not here: `make services` has it"
)


def made(home: Path, **options: Any) -> Any:
    return Plugins(home).create_provider("langchain", options, {"POSTGRES_PASSWORD": "secret"})


@needs_library
async def test_search_without_embeddings_finds_words_and_leaves_out_the_rest(home: Path) -> None:
    async with harness(home, [made(home)]) as one, one.working():
        await one.turn(SAID)
        await one.turn("Our boat is called Molly.")
        await one.carried(2)
        (line,) = await one.recalled("what is the boat called?")
        assert "Molly" in line
        assert await one.recalled("a word that nobody said: xylophone") == []


@needs_library
async def test_search_without_embeddings_reads_all_pages(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.memory.services.langchain.PAGE_SIZE", 2)
    async with harness(home, [made(home)]) as one, one.working():
        for name in ("Molly", "Rex", "Tom", "Bella", "Luna"):
            await one.turn(f"The animal {name} lives here.")
        await one.carried(5)
        for name in ("Molly", "Luna"):
            assert name in (await one.recalled(f"who is {name}?"))[0]


@needs_library
async def test_erased_text_is_not_left_in_the_file(home: Path) -> None:
    async with harness(home, [made(home)]) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        file = home / "providers" / "langchain" / "store.db"
        assert b"Porto" in file.read_bytes()
        rows = await one.conversations.load_history(await one.session(), frozenset({ANA}))
        gone = [row.id for row in rows]
        for number in gone:
            await one.database.execute(
                "UPDATE messages SET kind = 'command', text = '' WHERE id = :id", {"id": number}
            )
        await one.queue.forget(gone)
        one.worker.wake()
        await one.carried(2)
    assert not [path for path in file.parent.glob("store.db*") if b"Porto" in path.read_bytes()]


@needs_library
async def test_opening_that_is_cancelled_during_the_import_starts_no_thread(home: Path) -> None:
    provider = made(home)
    threads = set(threading.enumerate())
    opening = asyncio.create_task(provider.initialize(home))
    # The cancellation arrives as soon as the task first waits.
    asyncio.get_running_loop().call_soon(opening.cancel)
    await asyncio.wait([opening])
    assert opening.cancelled()
    assert set(threading.enumerate()) == threads


@needs_library
async def test_embeddings_of_a_forgotten_text_are_deleted(home: Path) -> None:
    file = home / "providers" / "langchain" / "store.db"
    async with (
        running(double := LANGCHAIN.double()),
        harness(home, [LANGCHAIN.made(home, double)], timeout_s=60) as one,
        one.working(),
    ):
        await one.turn(SAID)
        await one.turn("Our boat is called Molly.")
        await one.carried(2)
        assert _count_rows(file) == (2, 2)
        await forget(one, SAID)
        await one.carried(3)
        assert len(double.texts()) == _count_rows(file)[1] == 1
        assert "Molly" in (await one.recalled("what is the boat called?"))[0]


@needs_library
async def test_embeddings_that_an_earlier_version_left_are_deleted_at_the_start(
    home: Path,
) -> None:
    file = home / "providers" / "langchain" / "store.db"
    async with running(double := LANGCHAIN.double()):
        async with (
            harness(home, [LANGCHAIN.made(home, double)], timeout_s=60) as one,
            one.working(),
        ):
            await one.turn(SAID)
            await one.turn("Our boat is called Molly.")
            await one.carried(2)
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("DELETE FROM store WHERE CAST(value AS TEXT) LIKE '%Porto%'")
        assert _count_rows(file) == (1, 2)
        for service in (LANGCHAIN.made(home, double), made(home)):
            async with harness(home, [service], timeout_s=60) as one:
                await one.memory.externals["langchain"].call(60, "is_available")
            assert _count_rows(file) == (1, 1)


def _count_rows(file: Path) -> tuple[int, int]:
    """Count the texts and the embeddings in the file."""
    with closing(sqlite3.connect(file)) as connection:
        (texts,) = connection.execute("SELECT count(*) FROM store").fetchone()
        (embeddings,) = connection.execute("SELECT count(*) FROM store_vectors").fetchone()
    return texts, embeddings


@needs_library
async def test_tool_deletes_only_what_the_person_may_see(home: Path) -> None:
    async with harness(home, [made(home)]) as one, one.working():
        await one.turn(SAID)
        await one.carried(1)
        tools = {tool.name: tool for tool in await one.memory.tools()}
        mine, other = await one.context(ANA), await one.context(BEN)
        room = await one.context(Scope.group("telegram", "-5"))
        shown = await tools["langchain_search"].run({"query": SAID}, mine)
        memory_id = shown.split(" ")[0]
        assert memory_id.startswith("langchain:turn/")
        for context, why in ((other, "There is no memory"), (room, "In a group")):
            with pytest.raises(ToolError, match=why):
                await tools["langchain_delete"].run({"memory_id": memory_id}, context)
        for unknown in ("turn/../x", "other/1", "0" * 8):
            with pytest.raises(ToolError, match="There is no memory"):
                await tools["langchain_delete"].run({"memory_id": unknown}, mine)
        assert await one.recalled(SAID)
        await tools["langchain_delete"].run({"memory_id": memory_id}, mine)
        assert await one.recalled(SAID) == []


@needs_library
def test_langchain_vector_store_without_an_embeddings_server_names_the_missing_setting(
    home: Path,
) -> None:
    with pytest.raises(ConfigError, match="embedder_url is missing"):
        provider(home, "vectors", {}, {})


@pytest.mark.skipif(find_spec("langgraph") is not None, reason="its library is here")
def test_missing_library_is_named_with_the_command_that_installs_it(home: Path) -> None:
    with pytest.raises(ConfigError, match=r"pip install \"mneme-gateway\[langchain\]\""):
        made(home)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"url": "redis://host"}, "should be an address like postgresql://host/database"),
        ({"url": "postgresql://ana:secret@host/db"}, "must not contain a password"),
        (
            {"embedder_url": "not an address"},
            "embedder_url should be an address that begins with http:// or https://",
        ),
        ({"embedder_url": "http://key@host"}, "without a key"),
        ({"namespace": "a/b"}, "namespace should be"),
    ],
)
def test_invalid_langchain_option_is_refused_with_a_sentence(
    home: Path, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        made(home, **options)
