"""The graph of Graphiti: Kuzu in a folder of the home, or your own Neo4j or FalkorDB.

This module connects the library to the graph. It works around Kuzu's crashes, and turns errors of
the library and the graph into ours.
"""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.masking import has_url_password
from config.variables import export_variables
from core.errors import PAYLOAD_ERRORS, ConfigError, DeliveryError, MnemeError
from core.memory.http import SEARCH
from core.memory.model_server import library_version

NEO4J_SCHEMES = ("bolt://", "bolt+s://", "neo4j://", "neo4j+s://")
FALKOR_SCHEME = "falkor://"
FALKOR_PORT = 6379
# The minimum similarity of facts that are found. The library's own minimum of 0.6 leaves out most
# facts that answer a question in other words.
MIN_SIMILARITY = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The location of the graph. An empty `url` means Kuzu in a folder of the home."""

    url: str = ""
    user: str = ""
    password: str = ""

    @property
    def is_embedded(self) -> bool:
        return not self.url

    @property
    def place(self) -> str:
        """What the owner reads: Kuzu, or the scheme of the address."""
        return self.url.partition("://")[0] or "Kuzu"

    def check(self) -> None:
        """Check the address, and that the graph's client is installed.

        Raises ConfigError if the address has an unknown scheme or a password, or if a package is
        missing.
        """
        if self.url and not self.url.startswith((*NEO4J_SCHEMES, FALKOR_SCHEME)):
            raise ConfigError("memory_graph_url")
        if has_url_password(self.url):
            raise ConfigError(
                "memory_url_password", name="zep", option="graph_url", secret="graph_password"
            )
        if library_version("graphiti-core") is None:
            raise ConfigError(
                "memory_needs_package",
                name="zep",
                library="Graphiti",
                command='pip install "mneme-gateway[graphiti]"',
            )
        if self.is_embedded and library_version("kuzu") is None:
            raise ConfigError("memory_needs_kuzu")
        if self.url.startswith(FALKOR_SCHEME) and library_version("falkordb") is None:
            raise ConfigError(
                "memory_needs_package",
                name="zep",
                library="falkordb",
                command="pip install falkordb",
            )

    def create_driver(self, folder: Path) -> Any:
        """Return the library's driver for the graph. Kuzu's files are in the folder."""
        if self.is_embedded:
            return _create_kuzu_driver(folder)
        if self.url.startswith(FALKOR_SCHEME):
            return self._create_falkor_driver()
        from graphiti_core.driver.neo4j_driver import Neo4jDriver

        return Neo4jDriver(self.url, self.user or None, self.password or None)

    def _create_falkor_driver(self) -> Any:
        from graphiti_core.driver.falkordb_driver import FalkorDriver

        host, _, port = self.url.removeprefix(FALKOR_SCHEME).rstrip("/").partition(":")
        return FalkorDriver(
            host=host,
            port=int(port or FALKOR_PORT),
            username=self.user or None,
            password=self.password or None,
        )

    async def check_server(self) -> None:
        """Raise DeliveryError unless the graph server answers a query."""
        await asyncio.to_thread(import_library)
        with translate_errors():
            driver = await asyncio.to_thread(self.create_driver, Path())
            try:
                async with asyncio.timeout(SEARCH.total_s):
                    await driver.execute_query("RETURN 1 AS one")
            except TimeoutError as error:
                raise DeliveryError(
                    "service_graph_no_answer", seconds=f"{SEARCH.total_s:g}"
                ) from error
            finally:
                await driver.close()


def import_library() -> None:
    """Import the library without its telemetry and its log. The import takes two seconds."""
    export_variables({"GRAPHITI_TELEMETRY_ENABLED": "false"})
    # The library's messages quote what people said.
    logging.getLogger("graphiti_core").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import graphiti_core  # noqa: F401


def _create_kuzu_driver(folder: Path) -> Any:
    with warnings.catch_warnings():
        # Kuzu works, but its driver warns that it will be removed from the library.
        warnings.simplefilter("ignore", DeprecationWarning)
        from graphiti_core.driver.kuzu_driver import KuzuDriver

        driver = KuzuDriver(str(folder / "graph.kuzu"))
    # The library expects this attribute, which the driver lacks in 0.31.
    driver._database = ""
    driver.search_interface = _create_vector_search(driver)
    return driver


def _create_vector_search(driver: Any) -> Any:
    """Return a search by meaning only, for Kuzu.

    Kuzu 0.11 crashes the process if a text in its full-text index is changed and then deleted, or
    when it opens a graph after a kill that followed such a deletion. So the graph has no full-text
    index.
    """
    from graphiti_core.driver.search_interface.search_interface import SearchInterface
    from graphiti_core.search.search_utils import edge_similarity_search, node_similarity_search

    plain_driver = copy(driver)

    class VectorSearch(SearchInterface):  # type: ignore[misc]
        async def edge_similarity_search(self, _: Any, *args: Any, **__: Any) -> list[Any]:
            # The last argument is the library's minimum similarity. Without a search by words, it
            # would hide most facts that a new one may contradict.
            return list(await edge_similarity_search(plain_driver, *args[:-1], MIN_SIMILARITY))

        async def node_similarity_search(self, _: Any, *args: Any, **kwargs: Any) -> list[Any]:
            return list(await node_similarity_search(plain_driver, *args, **kwargs))

        async def edge_fulltext_search(self, *_: Any, **__: Any) -> list[Any]:
            return []

        async def node_fulltext_search(self, *_: Any, **__: Any) -> list[Any]:
            return []

        async def episode_fulltext_search(self, *_: Any, **__: Any) -> list[Any]:
            return []

    return VectorSearch()


def close_kuzu(driver: Any) -> None:
    """Close the graph. The driver leaves this to the garbage collector.

    Kuzu crashes if a connection is closed during a query, so all queries are awaited first.
    """
    driver.client.executor.shutdown(wait=True)
    driver.client.close()
    driver.db.close()


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn errors of the library and the graph into DeliveryError without their texts.

    The texts may quote people.
    """
    from graphiti_core.errors import EdgesNotFoundError, GraphitiError, NodeNotFoundError
    from neo4j.exceptions import AuthError, DriverError, Neo4jError

    try:
        yield
    except (MnemeError, EdgesNotFoundError, NodeNotFoundError):
        raise
    except (DriverError, ConnectionError) as error:
        raise DeliveryError("service_graph_unreached") from error
    except AuthError as error:
        raise DeliveryError("service_graph_login") from error
    except (Neo4jError, GraphitiError, RuntimeError, *PAYLOAD_ERRORS) as error:
        raise DeliveryError("service_graph_failed", kind=type(error).__name__) from error
