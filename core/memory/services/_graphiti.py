"""Run Graphiti, Zep's library, in this process.

Its graph is described in `_graphiti_graph.py`. Mneme calls the model and the embeddings itself
(`core/memory/model_server.py`), and the library's telemetry is off.

Adding an episode takes several calls of the model, which is often longer than the timeout of a call
from the outbox. So an addition continues after its caller has timed out, and the next attempt finds
the finished episode. If the process ends during an addition, the next attempt deletes the
incomplete episode and adds the item again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from datetime import datetime
from pathlib import Path
from typing import Any

from core.errors import NotReadyError, Sentence
from core.memory.http import WRITE
from core.memory.model_server import Embedder, JsonModel, library_version
from core.memory.service import RemoteMemory, SyncItem
from core.memory.services._graphiti_graph import (
    MIN_SIMILARITY,
    Graph,
    close_kuzu,
    import_library,
    translate_errors,
)
from core.types import Json

# How long a call waits for an addition that then continues in the background, and how long until
# the next attempt.
ADDITION_WAIT_S = 20.0
ADDITION_RETRY_S = 5.0
PROBE = 'Answer with this JSON object: {"ok": true}'


class GraphitiEngine:
    """The engine of `Zep` that runs in this process."""

    def __init__(self, graph: Graph, model: JsonModel, embedder: Embedder) -> None:
        """Check the graph.

        Raises ConfigError if its address is invalid, or if the library isn't installed.
        """
        graph.check()
        self._graph = graph
        self._model = model
        self._embedder = embedder
        self._graphiti: Any = None
        # The drivers by space.
        self._drivers: dict[str, Any] = {}
        # Additions that are running or whose result hasn't been read yet, by the keys of the items.
        self._additions: dict[str, asyncio.Task[Sequence[str]]] = {}

    async def open(self, folder: Path) -> None:
        await asyncio.to_thread(import_library)
        with translate_errors():
            self._graphiti = await asyncio.to_thread(self._create, folder)
            if not self._graph.is_embedded:
                await self._graphiti.build_indices_and_constraints()

    def _create(self, folder: Path) -> Any:
        """Connect the library to the graph and the models."""
        from graphiti_core import Graphiti
        from graphiti_core.cross_encoder.client import CrossEncoderClient
        from graphiti_core.embedder.client import EmbedderClient
        from graphiti_core.llm_client.client import LLMClient
        from graphiti_core.llm_client.config import LLMConfig

        model, embedder = self._model, self._embedder

        class Model(LLMClient):  # type: ignore[misc]
            async def _generate_response(self, messages: Any, *_: object, **__: object) -> Json:
                return await model.complete(
                    [{"role": message.role, "content": message.content} for message in messages]
                )

        class Embeddings(EmbedderClient):  # type: ignore[misc]
            async def create(self, input_data: Any) -> list[float]:
                texts = [input_data] if isinstance(input_data, str) else list(input_data)[:1]
                return (await embedder.embed(texts))[0]

            async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
                return await embedder.embed(input_data_list)

        class KeepOrder(CrossEncoderClient):  # type: ignore[misc]
            """Leaves search results in their order, because Mneme doesn't use a ranking model."""

            async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
                return [(passage, 0.0) for passage in passages]

        return Graphiti(
            graph_driver=self._graph.create_driver(folder),
            llm_client=Model(LLMConfig()),
            embedder=Embeddings(),
            cross_encoder=KeepOrder(),
        )

    async def close(self) -> None:
        additions = list(self._additions.values())
        for addition in additions:
            addition.cancel()
        await asyncio.gather(*additions, return_exceptions=True)
        await self._model.close()
        await self._embedder.close()
        if self._graphiti is None:
            return
        driver = self._graphiti.driver
        await self._graphiti.close()
        if self._graph.is_embedded:
            await asyncio.to_thread(close_kuzu, driver)
        self._graphiti = None

    async def describe(self) -> Sentence:
        """Return a description for the owner, after checking embeddings, model and graph."""
        await self._embedder.embed(["hello"])
        await self._model.complete([{"role": "user", "content": PROBE}], WRITE)
        if not self._graph.is_embedded:
            await self._graph.check_server()
        version = library_version("graphiti-core")
        return Sentence("probe_graphiti", {"version": version, "place": self._graph.place})

    async def search(self, space: str, query: str, limit: int) -> Sequence[RemoteMemory]:
        """Return the facts of a space that match the query, best first."""
        from graphiti_core.search.search_config_recipes import EDGE_HYBRID_SEARCH_RRF

        config = EDGE_HYBRID_SEARCH_RRF.model_copy(deep=True)
        config.limit = limit
        config.edge_config.sim_min_score = MIN_SIMILARITY
        with translate_errors():
            results = await self._graphiti.search_(query, config, group_ids=[space])
        return [
            RemoteMemory(
                id=edge.uuid,
                text=edge.fact,
                at=_format_time(edge.valid_at),
                until=_format_time(edge.invalid_at or edge.expired_at),
            )
            for edge in results.edges
            if edge.group_id == space
        ]

    async def add(self, space: str, item: SyncItem) -> Sequence[str]:
        """Add an item as an episode, and return the id of the episode.

        If an earlier addition of the item is still running, the call waits for it. Raises
        NotReadyError if that takes too long. The addition then continues in the background.
        """
        addition = self._additions.get(item.key)
        if addition is None:
            addition = asyncio.create_task(self._add(space, item), name="graphiti addition")
            self._additions[item.key] = addition
            addition.add_done_callback(lambda task: self._drop_failed_addition(item.key, task))
        await self._wait_for(addition)
        self._additions.pop(item.key, None)
        return addition.result()

    async def _wait_for(self, addition: asyncio.Task[Sequence[str]]) -> None:
        """Wait for an addition. Raises NotReadyError if it doesn't end in time."""
        done, _ = await asyncio.wait([addition], timeout=ADDITION_WAIT_S)
        if not done:
            raise NotReadyError("service_still_working", name="zep", retry_after_s=ADDITION_RETRY_S)

    def _drop_failed_addition(self, key: str, addition: asyncio.Task[Sequence[str]]) -> None:
        """Forget an addition that failed, so that the next attempt starts over.

        Reading the error marks it as handled.
        """
        if addition.cancelled() or addition.exception() is not None:
            self._additions.pop(key, None)

    async def _add(self, space: str, item: SyncItem) -> Sequence[str]:
        """Add an item as an episode. A retry first deletes an incomplete episode."""
        if item.is_retry:
            await self.delete_episodes(space, await self.find_episodes(space, item.key))
        from graphiti_core.nodes import EpisodeType

        with translate_errors():
            result = await self._graphiti.add_episode(
                name=item.key,
                episode_body="\n".join(f"{role}: {text}" for role, text in item.lines),
                source_description="a conversation",
                reference_time=item.at,
                source=EpisodeType.message,
                group_id=space,
            )
        return [result.episode.uuid]

    async def find_episodes(self, space: str, key: str) -> Sequence[str]:
        """Return the ids of the episodes that were made from the item with this key."""
        query = "match (e:Episodic {group_id: $space, name: $key}) return e.uuid as uuid"
        rows = await self._query(space, query, {"space": space, "key": key})
        return [row["uuid"] for row in rows]

    async def finish_addition(self, key: str) -> None:
        """Wait for an addition that is still running, so that its episode can be deleted.

        The addition isn't cancelled, because Kuzu would continue its query. If the caller times
        out, the next call waits again.
        """
        addition = self._additions.get(key)
        if addition is not None:
            await self._wait_for(addition)
            self._additions.pop(key, None)

    async def delete_episodes(self, space: str, episodes: Sequence[str]) -> None:
        for episode in episodes:
            await self._delete_episode(space, episode)

    async def _delete_episode(self, space: str, episode: str) -> None:
        """Delete an episode, and the facts and people that no other episode mentions.

        Facts that were ended by one of the deleted facts become current again.
        """
        from graphiti_core.errors import EdgesNotFoundError, NodeNotFoundError
        from graphiti_core.nodes import EpisodicNode

        with translate_errors():
            graphiti = await self._scoped_graphiti(space)
            try:
                await self._empty_summaries(graphiti.driver, episode)
                await _replace_ends(
                    graphiti.driver, space, lambda fact: set(fact.episodes) == {episode}
                )
                await graphiti.remove_episode(episode)
            except NodeNotFoundError:
                return
            except EdgesNotFoundError:
                # A crash left an episode without its facts.
                await EpisodicNode.delete_by_uuids(graphiti.driver, [episode])

    async def _empty_summaries(self, driver: Any, episode: str) -> None:
        """Clear the summaries of all people and things that an episode mentions.

        The library rewrites the summaries after a deletion, but keeps the old text if the model
        fails.
        """
        from graphiti_core.nodes import EpisodicNode
        from graphiti_core.search.search_utils import get_mentioned_nodes

        episodes = [await EpisodicNode.get_by_uuid(driver, episode)]
        for node in await get_mentioned_nodes(driver, episodes):
            if node.summary:
                node.summary = ""
                await node.load_name_embedding(driver)
                await node.save(driver)

    async def has_undeleted_facts(self, space: str, episodes: Sequence[str]) -> bool:
        """Return whether facts are left that a deletion of these episodes also deletes.

        The library removes deleted episodes from facts that stay, so a fact that still names one of
        the episodes is such a fact.
        """
        for episode in episodes:
            if await self._has_facts(space, episode):
                return True
        return False

    async def _has_facts(self, space: str, episode: str) -> bool:
        query = "match ()-[r:RELATES_TO]->() where $uuid in r.episodes return r.uuid limit 1"
        if self._graph.is_embedded:
            query = (
                "match (r:RelatesToNode_) where list_contains(r.episodes, $uuid) "
                "return r.uuid limit 1"
            )
        return bool(await self._query(space, query, {"uuid": episode}))

    async def delete_fact(self, space: str, fact: str) -> bool:
        """Delete one fact. Returns False if the space has no such fact."""
        from graphiti_core.edges import EntityEdge
        from graphiti_core.errors import EdgeNotFoundError

        with translate_errors():
            driver = await self._driver(space)
            try:
                edge = await EntityEdge.get_by_uuid(driver, fact)
            except EdgeNotFoundError:
                return False
            if edge.group_id != space:
                return False
            await _replace_ends(driver, space, lambda other: other.uuid == fact)
            await edge.delete(driver)
        return True

    async def _driver(self, space: str) -> Any:
        """Return the driver for a space. In FalkorDB, each space is a graph of its own."""
        driver = self._drivers.get(space)
        if driver is None:
            driver = self._graphiti.driver.clone(database=space)
            if driver is not self._graphiti.driver:
                # FalkorDB's driver builds the indices of the graph in this task.
                await driver._init_task
            self._drivers[space] = driver
        return driver

    async def _scoped_graphiti(self, space: str) -> Any:
        """Return a copy of the library that uses the driver for a space."""
        scoped = copy(self._graphiti)
        scoped.driver = await self._driver(space)
        scoped.clients = scoped.clients.model_copy(update={"driver": scoped.driver})
        return scoped

    async def _query(
        self, space: str, query: str, parameters: Mapping[str, str] | None = None
    ) -> Sequence[Json]:
        with translate_errors():
            driver = await self._driver(space)
            rows, _, _ = await driver.execute_query(query, **(parameters or {}))
        return list(rows)


async def _replace_ends(driver: Any, space: str, is_deleted: Callable[[Any], bool]) -> None:
    """Replace the ends of facts that a fact to delete has ended.

    The library ends a fact when the fact that contradicts it begins. If the contradicting fact is
    deleted, the end must change. If a remaining fact has ended the deleted fact, the beginning of
    the remaining fact is the new end. Otherwise, the fact becomes current again.
    """
    from graphiti_core.edges import EntityEdge
    from graphiti_core.errors import GroupsEdgesNotFoundError

    try:
        facts = await EntityEdge.get_by_group_ids(driver, [space])
    except GroupsEdgesNotFoundError:
        return
    remaining = [fact for fact in facts if not is_deleted(fact)]
    starts = {fact.valid_at for fact in remaining} - {None}
    deleted_by_start = {fact.valid_at: fact for fact in facts if is_deleted(fact)}
    for fact in remaining:
        enders = _find_enders(fact, facts)
        if enders and all(map(is_deleted, enders)):
            last = _follow_ends(enders[0], deleted_by_start, starts)
            has_ended = last.invalid_at in starts
            fact.invalid_at = last.invalid_at if has_ended else None
            fact.expired_at = last.expired_at if has_ended else None
            await fact.load_fact_embedding(driver)
            await fact.save(driver)


def _find_enders(fact: Any, facts: Sequence[Any]) -> Sequence[Any]:
    """Return the facts that may have ended `fact`.

    These began when `fact` ended, and were added before its end was stored. Of these, only the
    facts that were added last count, because the library stores an end right after it has added
    the fact that contradicts it.
    """
    if fact.invalid_at is None:
        return ()
    candidates = [
        other
        for other in facts
        if other.uuid != fact.uuid
        and other.valid_at == fact.invalid_at
        and (fact.expired_at is None or other.created_at <= fact.expired_at)
    ]
    last_addition = max((other.created_at for other in candidates), default=None)
    return [other for other in candidates if other.created_at == last_addition]


def _follow_ends(fact: Any, deleted_by_start: Mapping[Any, Any], starts: Collection[Any]) -> Any:
    """Return the last of several deleted facts that ended one another, beginning with `fact`."""
    followers = dict(deleted_by_start)
    while fact.invalid_at in followers and fact.invalid_at not in starts:
        fact = followers.pop(fact.invalid_at)
    return fact


def _format_time(time: datetime | None) -> str:
    return time.isoformat() if time else ""
