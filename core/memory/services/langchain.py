"""Use LangChain: a store of LangGraph, in a SQLite file of the home or in your PostgreSQL.

Each scope has a namespace with one part for each kind of item: turns, notes, and texts of the
model. The key of an item is also its key in the store, so an item that is sent twice is stored
once. With a server for embeddings, the store searches by meaning. Otherwise, Mneme ranks the items
by their words. The stores need the extra `mneme-gateway[langchain]`.

A plugin can use any other `BaseStore`: it subclasses `LangChain` and overrides `open_store`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

from config.files import Secret
from config.masking import has_url_password
from core.errors import ConfigError, DeliveryError, Sentence
from core.memory.model_server import Embedder, EmbedderOptions, library_version
from core.memory.service import (
    Entry,
    Kind,
    RemoteMemory,
    RemoteService,
    SyncItem,
    rank_by_words,
    setup_option,
)

T = TypeVar("T")
SQLITE_PACKAGE = "langgraph-checkpoint-sqlite"
POSTGRES_PACKAGE = "langgraph-checkpoint-postgres"
POSTGRES_SCHEMES = ("postgresql://", "postgres://")
# How long Mneme waits for a connection to PostgreSQL.
CONNECT_TIMEOUT_S = 5
CONNECTIONS = 4
# pgvector's index accepts longer embeddings only with half the precision.
MAX_VECTOR_DIMS = 2_000
# Without embeddings, a search reads all items of a space, up to this number.
PAGE_SIZE = 500
MAX_PAGES = 20
KINDS: Sequence[Kind] = get_args(Kind)


@dataclass(frozen=True, kw_only=True)
class Options(EmbedderOptions):
    url: str = setup_option(
        "", "your PostgreSQL, like postgresql://mneme@host/mneme; empty for a file in the home"
    )
    password: Secret = setup_option(Secret(""), "the password of PostgreSQL", needs="url")
    embedder_url: str = setup_option(
        "",
        "an OpenAI-compatible server for embeddings; empty to search by words",
        is_web_address=True,
    )
    key: Secret = setup_option(
        Secret(""), "the key of the server for embeddings", needs="embedder_url"
    )


class LangChain(RemoteService):
    name = "langchain"
    options = Options
    search_tool = "langchain_search"
    add_tool = "langchain_put"
    forget_tool = "langchain_delete"

    def __init__(self, options: Options) -> None:
        """Check the options.

        Raises ConfigError if options contradict each other or a library is missing.
        """
        super().__init__(options)
        self._options = options
        self._is_postgres = options.url.startswith(POSTGRES_SCHEMES)
        if options.url and not self._is_postgres:
            raise ConfigError("memory_store_url", name=self.name)
        if has_url_password(options.url):
            raise ConfigError(
                "memory_url_password", name=self.name, option="url", secret="password"
            )
        self._embedder = Embedder(self.name, options) if options.embedder_url else None
        self._check_libraries()
        self._exit_stack = AsyncExitStack()
        self._store: Any = None

    def _check_libraries(self) -> None:
        """Raise ConfigError if a library or SQLite's support for extensions is missing."""
        if library_version(POSTGRES_PACKAGE if self._is_postgres else SQLITE_PACKAGE) is None:
            raise ConfigError(
                "memory_needs_package",
                name=self.name,
                library="LangGraph",
                command='pip install "mneme-gateway[langchain]"',
            )
        if self._embedder is None or self._is_postgres:
            return
        from core.store.sqlite.opening import can_load_extensions

        if not can_load_extensions():
            raise ConfigError("memory_no_vectors")

    @asynccontextmanager
    async def open_store(self, folder: Path) -> AsyncIterator[Any]:
        """Open the store for the duration of a block. The store may keep its files in `folder`.

        A plugin overrides this method to use another store. If the store has an index, it should
        index the field `text`.
        """
        index = None
        if self._embedder is not None:
            index = {
                "dims": self._options.embedder_dims,
                "embed": self._embedder.embed,
                "fields": ["text"],
            }
        if self._is_postgres:
            opened = self._open_postgres(index)
        else:
            opened = self._open_sqlite(folder, index)
        async with opened as store:
            yield store

    @asynccontextmanager
    async def _open_sqlite(self, folder: Path, index: Any) -> AsyncIterator[Any]:
        """Open the store in a SQLite file of the folder."""
        from langgraph.store.sqlite.aio import AsyncSqliteStore

        from core.store.sqlite.opening import FOREIGN_KEYS, SECURE_DELETE

        # The import takes seconds. If Mneme has meanwhile stopped, the cancellation arrives here,
        # before the thread of a connection starts, which would outlive the event loop.
        await asyncio.sleep(0)
        file = str(folder / "store.db")
        async with AsyncSqliteStore.from_conn_string(file, index=index) as store:
            # Deleted texts are overwritten, so that the file doesn't contain them any more.
            await store.conn.execute(SECURE_DELETE)
            # Without this, the embeddings of a deleted text stay.
            await store.conn.execute(FOREIGN_KEYS)
            await store.setup()
            await _delete_stray_embeddings(store.conn)
            yield store

    @asynccontextmanager
    async def _open_postgres(self, index: Any) -> AsyncIterator[Any]:
        """Open the store in PostgreSQL, with a pool of connections."""
        from langgraph.store.postgres.aio import AsyncPostgresStore
        from psycopg_pool import AsyncConnectionPool

        pool = {
            "min_size": 1,
            "max_size": CONNECTIONS,
            "timeout": float(CONNECT_TIMEOUT_S),
            # A connection that PostgreSQL closed, for example at its restart, is replaced.
            "check": AsyncConnectionPool.check_connection,
            "kwargs": self._connection_arguments(),
        }
        if index is not None and self._options.embedder_dims > MAX_VECTOR_DIMS:
            index = {**index, "ann_index_config": {"kind": "hnsw", "vector_type": "halfvec"}}
        async with AsyncPostgresStore.from_conn_string(
            self._options.url, pool_config=pool, index=index
        ) as store:
            await store.setup()
            yield store

    def _connection_arguments(self) -> dict[str, Any]:
        password = self._options.password.value
        return {
            "connect_timeout": CONNECT_TIMEOUT_S,
            # Without this, the index may return only items of other spaces.
            "options": "-c hnsw.iterative_scan=strict_order",
            **({"password": password} if password else {}),
        }

    async def initialize(self, folder: Path) -> None:
        await super().initialize(folder)
        with self._translate_errors():
            self._store = await self._exit_stack.enter_async_context(self.open_store(folder))

    async def shutdown(self) -> None:
        # Without references, the store ends its background task.
        self._store = None
        await self._exit_stack.aclose()
        if self._embedder is not None:
            await self._embedder.close()
        await asyncio.sleep(0)

    async def probe(self) -> Sentence:
        """Return a description of the store, after checking that its servers answer."""
        search = Sentence("search_by_words")
        if self._embedder is not None:
            await self._embedder.embed(["hello"])
            search = Sentence("search_by_meaning", {"model": self._options.embedder_model})
        place = Sentence("place_home_file")
        if self._is_postgres:
            place = Sentence("PostgreSQL")
            with self._translate_errors():
                await self._check_connection()
        values = {"name": self.name, "place": place, "search": search}
        return Sentence("probe_langchain", values)

    async def _check_connection(self) -> None:
        from psycopg import AsyncConnection

        connection = await AsyncConnection.connect(
            self._options.url, **self._connection_arguments()
        )
        await connection.close()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Turn errors of PostgreSQL into DeliveryError without their texts.

        The texts may quote stored words.
        """
        if not self._is_postgres:
            yield
            return
        from psycopg import Error, OperationalError
        from psycopg.errors import FeatureNotSupported, UndefinedFile

        try:
            yield
        except OperationalError as error:
            raise DeliveryError("service_postgres_unreached", name=self.name) from error
        except (FeatureNotSupported, UndefinedFile) as error:
            raise ConfigError("memory_no_pgvector", name=self.name) from error
        except Error as error:
            raise DeliveryError(
                "service_postgres_failed", name=self.name, kind=type(error).__name__
            ) from error

    async def _call(self, call: Awaitable[T]) -> T:
        with self._translate_errors():
            return await call

    async def find(self, space: str, query: str, limit: int) -> Sequence[RemoteMemory]:
        """Return the memories of a space that match the query, best first."""
        if self._embedder is not None:
            items = await self._call(self._store.asearch((space,), query=query, limit=limit))
            return self._parse_items(space, items)
        items = []
        for page in range(MAX_PAGES):
            page_items = await self._call(
                self._store.asearch((space,), limit=PAGE_SIZE, offset=page * PAGE_SIZE)
            )
            items += page_items
            if len(page_items) < PAGE_SIZE:
                break
        memories = rank_by_words(query, self._parse_items(space, items))
        return [memory for memory in memories if memory.score][:limit]

    def _parse_items(self, space: str, items: Sequence[Any]) -> list[RemoteMemory]:
        """Return the items of this space as memories.

        A search by prefix may also return items of other spaces.
        """
        memories = []
        for item in items:
            text = item.value.get("text")
            if item.namespace[0] == space and isinstance(text, str) and text:
                memories.append(
                    RemoteMemory(
                        id=f"{item.namespace[-1]}/{item.key}",
                        text=text,
                        at=str(item.value.get("at", "")),
                        score=float(getattr(item, "score", None) or 0.0),
                    )
                )
        return memories

    async def keep(self, space: str, item: SyncItem) -> Sequence[str]:
        value = {"text": item.text, "at": item.at.isoformat()}
        await self._call(self._store.aput((space, item.kind), item.key, value))
        return [f"{item.kind}/{item.key}"]

    async def erase(self, entry: Entry) -> None:
        for kind in KINDS:
            await self._call(self._store.adelete((entry.space, kind), entry.key))

    async def holds(self, entry: Entry) -> bool:
        for kind in KINDS:
            if await self._call(self._store.aget((entry.space, kind), entry.key)) is not None:
                return True
        return False

    async def take_out(self, space: str, memory_id: str) -> bool:
        kind, _, key = memory_id.partition("/")
        if kind not in KINDS or await self._call(self._store.aget((space, kind), key)) is None:
            return False
        await self._call(self._store.adelete((space, kind), key))
        return True


async def _delete_stray_embeddings(connection: Any) -> None:
    """Delete embeddings without a text, which earlier versions left in the file."""
    table = "SELECT 1 FROM sqlite_master WHERE name = 'store_vectors'"
    async with connection.execute(table) as cursor:
        if await cursor.fetchone() is None:
            return
    await connection.execute(
        "DELETE FROM store_vectors WHERE NOT EXISTS (SELECT 1 FROM store "
        "WHERE store.prefix = store_vectors.prefix AND store.key = store_vectors.key)"
    )
