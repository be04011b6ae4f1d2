"""LangGraph's store in a file of the home, which is real, and its server for embeddings.

It follows https://docs.langchain.com/oss/python/langgraph/persistence.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.services.doubles.double import Double, body_of
from tests.services.model_server import embedded

DIMENSIONS = 1536


class LangChainDouble(Double):
    """Only the embeddings can fail. Stored data is read from the store's file."""

    def routes(self) -> Sequence[web.RouteDef]:
        return [web.post("/embeddings", self._embed)]

    async def _embed(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        vectors = [embedded(str(text), body["dimensions"]) for text in body["input"]]
        data = [
            {"object": "embedding", "index": place, "embedding": vector}
            for place, vector in enumerate(vectors)
        ]
        return web.json_response({"object": "list", "data": data, "model": body["model"]})

    def texts(self) -> Sequence[str]:
        files = [home / "providers" / "langchain" / "store.db" for home in self.homes]
        return [text for file in files if file.exists() for text in _read_texts(file)]


def _read_texts(file: Path) -> Sequence[str]:
    connection = sqlite3.connect(file, timeout=60)
    try:
        rows = connection.execute("SELECT value FROM store").fetchall()
    except sqlite3.OperationalError:
        # The store hasn't made its table yet.
        return []
    finally:
        connection.close()
    return [json.loads(value)["text"] for (value,) in rows]


class VectorsDouble(LangChainDouble):
    """The plugin in docs/extending.md, whose store is one file of JSON."""

    def texts(self) -> Sequence[str]:
        files = [home / "providers" / "vectors" / "vectors.json" for home in self.homes]
        stores = [_read_store(file) for file in files if file.exists()]
        return [entry["text"] for store in stores for entry in store.values()]


def _read_store(file: Path) -> dict[str, Any]:
    """Read the file of a vector store, which is empty or half written while it changes."""
    try:
        store: dict[str, Any] = json.loads(file.read_text())
    except ValueError:
        return {}
    return store
