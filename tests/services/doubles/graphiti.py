"""Graphiti with a graph in a folder of the home, which is real, and its server for models.

It follows https://help.getzep.com/graphiti.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from aiohttp import web

from tests.services.doubles.double import body_of
from tests.services.doubles.langchain import LangChainDouble
from tests.services.model_server import graphiti_facts

TRIES = 20
# Enough for a graph of a test. The default reserves most of the machine.
BUFFER_BYTES = 256_000_000


class GraphitiDouble(LangChainDouble):
    """Only the models can fail. Stored data is read from a copy of the graph."""

    def routes(self) -> Sequence[web.RouteDef]:
        return [*super().routes(), web.post("/chat/completions", self._chat)]

    async def _chat(self, request: web.Request) -> web.Response:
        message = {"role": "assistant", "content": graphiti_facts(await body_of(request))}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"id": "1", "object": "chat.completion", "choices": [choice]})

    def texts(self) -> Sequence[str]:
        files = [home / "providers" / "zep" / "graph.kuzu" for home in self.homes]
        return [text for file in files if file.exists() for text in _read_facts(file)]


def _read_facts(file: Path) -> Sequence[str]:
    """Return the facts in a copy of a graph, which is in the state that a crash at this moment
    would leave."""
    for _ in range(TRIES):
        with TemporaryDirectory() as folder:
            for part in file.parent.glob(f"{file.name}*"):
                if part.exists():
                    shutil.copy(part, folder)
            try:
                return _query_facts(Path(folder) / file.name)
            except RuntimeError:
                # The graph was written while it was copied.
                continue
    return []


def _query_facts(file: Path) -> Sequence[str]:
    kuzu = import_module("kuzu")
    database = kuzu.Database(str(file), buffer_pool_size=BUFFER_BYTES)
    try:
        connection = kuzu.Connection(database)
        rows = connection.execute("MATCH (r:RelatesToNode_) RETURN r.fact AS fact").rows_as_dict()
        return [str(row["fact"]) for row in rows]
    finally:
        database.close()
