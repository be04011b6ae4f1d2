"""Use Zep: its cloud, or its library Graphiti in this process.

Each scope is a user in the cloud, and a group id in Graphiti. A turn becomes an episode with its
time. Zep's model derives facts from the episode. In the cloud, this happens some time later. Mneme
shows since when a fact has been true, and when it ended. Forgetting deletes the episode, and the
facts that come from no other existing episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from config.files import Secret
from core.errors import ConfigError, Sentence
from core.memory.model_server import Embedder, EmbedderOptions, JsonModel
from core.memory.service import (
    Entry,
    RemoteMemory,
    RemoteService,
    SyncItem,
    setup_option,
)
from core.memory.services._graphiti import GraphitiEngine
from core.memory.services._graphiti_graph import Graph
from core.memory.services._zep_cloud import CloudEngine

CLOUD = "https://api.getzep.com/api/v4"


@dataclass(frozen=True, kw_only=True)
class Options(EmbedderOptions):
    deployment: str = field(metadata={"help": "cloud, or graphiti for the library"})
    url: str = field(default=CLOUD, metadata={"help": "cloud: where it listens"})
    key: Secret = setup_option(Secret(""), "the key of the cloud, or of the models of graphiti")
    llm_url: str = setup_option(
        "",
        "graphiti: an OpenAI-compatible server for its model",
        needs="deployment=graphiti",
        is_web_address=True,
    )
    llm_model: str = field(default="gpt-5-mini", metadata={"help": "graphiti: the model"})
    embedder_url: str = field(
        default="",
        metadata={
            "help": "graphiti: the server for embeddings, if it's another one",
            "is_web_address": True,
        },
    )
    graph_url: str = setup_option(
        "",
        "graphiti: a graph like neo4j://host or falkor://host; empty for a folder",
        needs="deployment=graphiti",
    )
    graph_user: str = setup_option("", "graphiti: the user of the graph", needs="graph_url")
    graph_password: Secret = setup_option(
        Secret(""), "graphiti: the password of the graph", needs="graph_url"
    )


class Zep(RemoteService):
    name = "zep"
    options = Options
    search_tool = "zep_search"
    add_tool = "zep_add"
    forget_tool = "zep_delete"

    def __init__(self, options: Options) -> None:
        """Choose the engine. Raises ConfigError if an option is missing or invalid."""
        super().__init__(options)
        self._engine: CloudEngine | GraphitiEngine
        if options.deployment == "cloud":
            self._engine = CloudEngine(options.url, options.key.value)
        elif options.deployment == "graphiti":
            self._engine = _create_graphiti(options)
        else:
            raise ConfigError(
                "memory_choice", name=self.name, option="deployment", choices="cloud, graphiti"
            )

    async def initialize(self, folder: Path) -> None:
        await super().initialize(folder)
        await self._engine.open(folder)

    async def shutdown(self) -> None:
        await self._engine.close()

    async def probe(self) -> Sentence:
        return await self._engine.describe()

    async def find(self, space: str, query: str, limit: int) -> Sequence[RemoteMemory]:
        return await self._engine.search(space, query, limit)

    async def keep(self, space: str, item: SyncItem) -> Sequence[str]:
        return await self._engine.add(space, item)

    async def erase(self, entry: Entry) -> None:
        await self._engine.finish_addition(entry.key)
        await self._engine.delete_episodes(entry.space, await self._find_episodes(entry))

    async def holds(self, entry: Entry) -> bool:
        if await self._engine.find_episodes(entry.space, entry.key):
            return True
        return await self._engine.has_undeleted_facts(entry.space, entry.remote or ())

    async def _find_episodes(self, entry: Entry) -> Sequence[str]:
        """Return the ids of an item's episodes, including ids that aren't recorded yet."""
        episodes = await self._engine.find_episodes(entry.space, entry.key)
        return list(dict.fromkeys([*(entry.remote or ()), *episodes]))

    async def take_out(self, space: str, memory_id: str) -> bool:
        return await self._engine.delete_fact(space, memory_id)


def _create_graphiti(options: Options) -> GraphitiEngine:
    """Return the engine that runs in this process.

    Raises ConfigError if an option is missing or invalid.
    """
    if not options.llm_url:
        raise ConfigError("memory_needs_model", name="zep")
    graph = Graph(
        url=options.graph_url, user=options.graph_user, password=options.graph_password.value
    )
    model = JsonModel("zep", options.llm_url, options.llm_model, options.key.value)
    return GraphitiEngine(graph, model, Embedder("zep", options, options.llm_url))
