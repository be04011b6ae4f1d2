"""Call version 4 of the API of Zep's cloud.

Each space is a user in the cloud. The user's graph contains the episodes, and the facts that the
cloud's model derives from them. Deriving takes some time, and an episode can be deleted only
afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.errors import ConfigError, DeliveryError, NotReadyError, Sentence
from core.memory.http import SEARCH, JsonService, number_of, objects, segment, text_of
from core.memory.service import RemoteMemory, SpaceIds, SyncItem
from core.types import Json

# The fields in the metadata of an episode: the key of the item, and the number of the part.
KEY = "mneme"
PART = "mneme_part"
# The attributes of a fact with an end that no longer counts: that end, and the new end, which is
# empty if the fact is current again. The cloud can change the attributes of a fact, but not its
# end.
OLD_END = "mneme_void_end"
NEW_END = "mneme_other_end"
# The cloud takes at most 10,000 characters per episode, so a long item becomes several.
EPISODE_CHARS = 9_000
PAGE_SIZE = 50
MAX_PAGES = 100
# The time until the next attempt at a deletion that must wait for the cloud's model.
PENDING_RETRY_S = 5.0


class CloudEngine:
    """The engine of `Zep` that calls the cloud."""

    def __init__(self, url: str, key: str) -> None:
        """Prepare the header with the key. Raises ConfigError if the key is missing."""
        if not key:
            raise ConfigError("memory_needs_key", name="zep", variable="ZEP_API_KEY")
        self._http = JsonService("zep", url, {"Authorization": f"Api-Key {key}"})
        self._graphs = SpaceIds(self._find_graph, self._create_graph)

    async def open(self, folder: Path) -> None:
        """Do nothing: the cloud needs no folder."""

    async def close(self) -> None:
        await self._http.close()

    async def describe(self) -> Sentence:
        """Check the key with a request, and return a description for the owner."""
        project = await self._http.call("GET", "/project", call_timeout=SEARCH)
        if not text_of(project, "uuid"):
            raise DeliveryError("service_is_other", name="zep")
        name = text_of(project, "name") or text_of(project, "uuid")
        return Sentence("probe_zep_cloud", {"project": name})

    async def search(self, space: str, query: str, limit: int) -> Sequence[RemoteMemory]:
        """Return the facts of a space that match the query, best first."""
        return await self._graphs.read(
            space, lambda graph: self._search_edges(graph, query, limit), ()
        )

    async def _search_edges(self, graph: str, query: str, limit: int) -> Sequence[RemoteMemory]:
        """Search a graph, and return its facts as memories."""
        answer = await self._http.call(
            "POST",
            f"/graphs/{segment(graph)}/search/edges",
            {"query": query},
            params={"page_size": min(limit, PAGE_SIZE)},
            call_timeout=SEARCH,
            is_repeatable=True,
        )
        return [
            RemoteMemory(
                id=text_of(edge, "uuid"),
                text=text_of(edge, "fact"),
                at=text_of(edge, "valid_at", "created_at"),
                until=_end_of(edge),
                score=number_of(edge, "score"),
            )
            for edge in objects(answer, "items")
            if text_of(edge, "fact") and text_of(edge, "graph_uuid") in ("", graph)
        ]

    async def add(self, space: str, item: SyncItem) -> Sequence[str]:
        """Add an item as one or more episodes, and return their ids."""
        return await self._graphs.write(space, lambda graph: self._add_episodes(graph, item))

    async def _add_episodes(self, graph: str, item: SyncItem) -> Sequence[str]:
        existing: dict[int, str] = {}
        if item.is_retry:
            for episode in await self._list_episodes(graph, item.key):
                part = int(number_of(episode.get("metadata") or {}, PART))
                existing[part] = text_of(episode, "uuid")
        for part, text in enumerate(_split(item)):
            if part not in existing:
                existing[part] = await self._add_episode(graph, item, part, text)
        return [existing[part] for part in sorted(existing)]

    async def _add_episode(self, graph: str, item: SyncItem, part: int, text: str) -> str:
        request = {
            "data": text,
            "type": "message",
            "reference_time": item.at.isoformat(),
            "source_description": "a conversation",
            "metadata": {KEY: item.key, PART: part},
        }
        # The cloud ignores a request with a key that it already has. A new graph has new keys.
        service = self._http.with_headers({"Idempotency-Key": f"{graph}-{item.key}-{part}"})
        answer = await service.call("POST", f"/graphs/{segment(graph)}/episodes", request)
        episode = text_of(answer.get("episode") if isinstance(answer, dict) else None, "uuid")
        if not episode:
            raise DeliveryError("service_not_confirmed", name="zep")
        return episode

    async def find_episodes(self, space: str, key: str) -> Sequence[str]:
        """Return the ids of the episodes that were made from the item with this key."""
        episodes = await self._graphs.read(space, lambda graph: self._list_episodes(graph, key), ())
        return [text_of(episode, "uuid") for episode in episodes]

    async def finish_addition(self, key: str) -> None:
        """Do nothing, because additions don't continue after their call."""

    async def delete_episodes(self, space: str, episodes: Sequence[str]) -> None:
        """Delete the episodes of an item, and the facts that come from no other episode.

        Raises NotReadyError until the cloud's model has read all the episodes, because their facts
        would appear after the deletion.
        """
        await self._graphs.read(space, lambda graph: self._delete_from_graph(graph, episodes), None)

    async def _delete_from_graph(self, graph: str, episodes: Sequence[str]) -> None:
        for episode in episodes:
            found = await self._get_episode(graph, episode)
            if isinstance(found, dict) and found.get("processed") is False:
                raise NotReadyError(
                    "service_not_processed", name="zep", retry_after_s=PENDING_RETRY_S
                )
        await self._delete_edges(graph, await self._list_own_edges(graph, episodes))
        for episode in episodes:
            await self._http.call("DELETE", _episode_path(graph, episode), missing=None)

    async def has_undeleted_facts(self, space: str, episodes: Sequence[str]) -> bool:
        """Return whether facts are left that a deletion of these episodes also deletes.

        The cloud keeps the ids of deleted episodes in its facts, so the other episodes of a fact
        are looked up.
        """
        edges = await self._graphs.read(
            space, lambda graph: self._list_own_edges(graph, episodes), ()
        )
        return bool(edges)

    async def _list_own_edges(self, graph: str, episodes: Sequence[str]) -> Sequence[str]:
        """Return the ids of the facts that come only from these episodes.

        Deleted episodes don't count.
        """
        sources: dict[str, set[str]] = {}
        for episode in episodes:
            for edge in await self._list_edges(graph, episode):
                sources[text_of(edge, "uuid")] = _sources_of(edge) - {*episodes}
        return [edge for edge, others in sources.items() if not await self._exists(graph, others)]

    async def _exists(self, graph: str, episodes: Collection[str]) -> bool:
        """Return whether one of the episodes exists.

        Facts still name episodes that were deleted.
        """
        for episode in episodes:
            if await self._get_episode(graph, episode) is not None:
                return True
        return False

    async def _get_episode(self, graph: str, episode: str) -> Any:
        return await self._http.call("GET", _episode_path(graph, episode), missing=None)

    async def delete_fact(self, space: str, fact: str) -> bool:
        """Delete one fact. Returns False if the space has no such fact."""
        return await self._graphs.read(space, lambda graph: self._delete_edge(graph, fact), False)

    async def _delete_edge(self, graph: str, edge: str) -> bool:
        """Delete a fact. Returns True, which `SpaceIds.read` passes on.

        Raises NotFound if the fact isn't in the graph. The graph is then looked up again.
        """
        await self._http.call("GET", _edge_path(graph, edge))
        await self._delete_edges(graph, [edge])
        return True

    async def _delete_edges(self, graph: str, edges: Sequence[str]) -> None:
        """Delete facts. Before that, replace the ends that they gave to other facts."""
        if edges:
            await self._replace_ends(graph, edges)
        for edge in edges:
            await self._http.call("DELETE", _edge_path(graph, edge), missing=None)

    async def _replace_ends(self, graph: str, deleted_ids: Collection[str]) -> None:
        """Replace the ends of facts that ended when one of the facts to delete began.

        An end stays if a remaining fact began then, too. If a remaining fact has ended the deleted
        fact, the beginning of the remaining fact is the new end. Otherwise, the fact becomes
        current again.
        """
        edges = await self._list_all(f"/graphs/{segment(graph)}/edges/list", {})
        remaining = [edge for edge in edges if text_of(edge, "uuid") not in deleted_ids]
        starts = {text_of(edge, "valid_at") for edge in remaining}
        deleted_ends = {
            text_of(edge, "valid_at"): _end_of(edge)
            for edge in edges
            if text_of(edge, "uuid") in deleted_ids
        }
        for edge in remaining:
            end = _end_of(edge)
            if end and end in deleted_ends and end not in starts:
                await self._replace_end(graph, edge, _follow_ends(end, deleted_ends, starts))

    async def _replace_end(self, graph: str, edge: Json, new_end: str) -> None:
        """Mark the end of a fact as replaced. The fact is current again if `new_end` is empty."""
        marks = {OLD_END: text_of(edge, "invalid_at", "expired_at"), NEW_END: new_end}
        await self._http.call(
            "PATCH",
            _edge_path(graph, text_of(edge, "uuid")),
            {"attributes": marks},
            is_repeatable=True,
            missing=None,
        )

    async def _find_graph(self, space: str) -> str | None:
        """Return the id of a space's graph, or None if the cloud has no user for the space."""
        user = await self._http.call(
            "POST",
            "/users/lookup",
            {"user_id": space},
            call_timeout=SEARCH,
            is_repeatable=True,
            missing=None,
        )
        return None if user is None else _graph_of(user)

    async def _create_graph(self, space: str) -> str:
        """Create the user of a space, and return the id of the user's graph.

        The request has no idempotency key, because the cloud could then answer with a deleted user.
        """
        return _graph_of(await self._http.call("POST", "/users", {"user_id": space}))

    async def _list_episodes(self, graph: str, key: str) -> list[Json]:
        """Return the episodes of the item with this key."""
        condition = {"property_name": KEY, "operator": "eq", "value": key}
        filters = {"metadata_filters": {"type": "and", "filters": [condition]}}
        episodes = await self._list_all(f"/graphs/{segment(graph)}/episodes/list", filters)
        return [episode for episode in episodes if text_of(episode.get("metadata"), KEY) == key]

    async def _list_edges(self, graph: str, episode: str) -> list[Json]:
        """Return the facts that come from an episode."""
        path = f"/graphs/{segment(graph)}/edges/list"
        edges = await self._list_all(path, {"episode_uuids": [episode]})
        return [edge for edge in edges if episode in _sources_of(edge)]

    async def _list_all(self, path: str, filters: Json) -> list[Json]:
        """Return the items on the first `MAX_PAGES` pages of a list."""
        items: list[Json] = []
        params: dict[str, str | int] = {"page_size": PAGE_SIZE}
        for _ in range(MAX_PAGES):
            answer = await self._http.call(
                "POST",
                path,
                {"filters": filters},
                params=params,
                is_repeatable=True,
            )
            items += objects(answer, "items")
            cursor = text_of(answer, "next_cursor")
            if not cursor:
                break
            params["cursor"] = cursor
        return items


def _split(item: SyncItem) -> Sequence[str]:
    """Return the text of an item in parts that the cloud accepts.

    Each part consists of whole lines. A line that is too long is split.
    """
    parts = [""]
    for role, text in item.lines:
        line = f"{role}: {text}"
        for start in range(0, len(line), EPISODE_CHARS):
            piece = line[start : start + EPISODE_CHARS]
            if parts[-1] and len(parts[-1]) + len(piece) >= EPISODE_CHARS:
                parts.append("")
            parts[-1] = f"{parts[-1]}\n{piece}".strip()
    return parts


def _episode_path(graph: str, episode: str) -> str:
    return f"/graphs/{segment(graph)}/episodes/{segment(episode)}"


def _edge_path(graph: str, edge: str) -> str:
    return f"/graphs/{segment(graph)}/edges/{segment(edge)}"


def _end_of(edge: Json) -> str:
    """Return when a fact ended, or "" if it hasn't.

    If the end was replaced, the new end is returned.
    """
    end, attributes = text_of(edge, "invalid_at", "expired_at"), edge.get("attributes")
    if end and text_of(attributes, OLD_END) == end:
        return text_of(attributes, NEW_END)
    return end


def _follow_ends(end: str, deleted_ends: Mapping[str, str], starts: Collection[str]) -> str:
    """Return the start of the remaining fact that ended the last of several deleted facts.

    `deleted_ends` has the ends of the deleted facts by their starts. Returns "" if no remaining
    fact began at the last end.
    """
    ends = dict(deleted_ends)
    while end in ends and end not in starts:
        end = ends.pop(end)
    return end if end in starts else ""


def _sources_of(edge: Json) -> set[str]:
    """Return the ids of the episodes that a fact comes from."""
    episodes = edge.get("episode_uuids")
    return {str(episode) for episode in episodes} if isinstance(episodes, list) else set()


def _graph_of(user: Any) -> str:
    """Return the id of a user's graph. Raises DeliveryError if the answer doesn't contain it."""
    graph = text_of(user, "graph_uuid")
    if not graph:
        raise DeliveryError("service_bad_answer", name="zep")
    return graph
