"""Zep's cloud, version 4: users with one graph each, episodes, and the facts that episodes become.

It follows https://help.getzep.com.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any
from uuid import UUID

from aiohttp import web

from tests.services.doubles.double import KEY, Double, best, body_of

AT = "2026-05-03T10:00:00Z"


class ZepDouble(Double):
    """Makes one fact of each line of a person. Several episodes can share a fact."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count(1)
        self.users: dict[str, dict[str, Any]] = {}
        self.episodes: dict[str, dict[str, Any]] = {}
        self.edges: dict[str, dict[str, Any]] = {}
        self._answers: dict[str, dict[str, Any]] = {}
        """By idempotency key."""
        self.is_late = self.is_leaking = False
        """Whether facts come some time after they were told; whether a search gives everybody all
        of them."""

    def is_known(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"Api-Key {KEY}"

    def texts(self) -> Sequence[str]:
        return [edge["fact"] for edge in self.edges.values()]

    def routes(self) -> Sequence[web.RouteDef]:
        graph = "/graphs/{graph}"
        return [
            web.get("/project", self._project),
            web.post("/users", self._create_user),
            web.post("/users/lookup", self._lookup),
            web.post(f"{graph}/episodes", self._add),
            web.post(f"{graph}/episodes/list", self._list_episodes),
            web.get(f"{graph}/episodes/{{id}}", self._get_episode),
            web.delete(f"{graph}/episodes/{{id}}", self._delete_episode),
            web.post(f"{graph}/edges/list", self._list_edges),
            web.get(f"{graph}/edges/{{id}}", self._get_edge),
            web.patch(f"{graph}/edges/{{id}}", self._update_edge),
            web.delete(f"{graph}/edges/{{id}}", self._delete_edge),
            web.post(f"{graph}/search/edges", self._search),
        ]

    def _id(self) -> str:
        return str(UUID(int=next(self._numbers)))

    async def _project(self, request: web.Request) -> web.Response:
        return web.json_response({"uuid": "p-1", "name": "home", "created_at": AT})

    async def _create_user(self, request: web.Request) -> web.Response:
        user_id = (await body_of(request))["user_id"]
        if user_id in self.users:
            return _error(409, "a user with this id exists")
        user = {"uuid": self._id(), "user_id": user_id, "graph_uuid": self._id(), "created_at": AT}
        self.users[user_id] = user
        return web.json_response(user, status=201)

    async def _lookup(self, request: web.Request) -> web.Response:
        user = self.users.get((await body_of(request))["user_id"])
        return web.json_response(user) if user else _error(404, "no such user")

    def _check_graph(self, request: web.Request) -> None:
        """A graph is deleted with its user."""
        graph = request.match_info["graph"]
        if graph not in [user["graph_uuid"] for user in self.users.values()]:
            raise _not_found()

    async def _add(self, request: web.Request) -> web.Response:
        self._check_graph(request)
        body, graph = await body_of(request), request.match_info["graph"]
        if len(body["data"]) > 10_000:
            return _error(400, "data is too long")
        if body["type"] not in ("text", "json", "message"):
            return _error(400, "type is unknown")
        key = request.headers.get("Idempotency-Key", "")
        if key not in self._answers:
            episode = {
                "uuid": self._id(),
                "graph_uuid": graph,
                "content": body["data"],
                "source": body["type"],
                "reference_time": body["reference_time"],
                "metadata": body["metadata"],
                "processed": False,
                "created_at": AT,
            }
            self.episodes[episode["uuid"]] = episode
            if not self.is_late:
                self.work()
            task = {"uuid": self._id(), "status": "pending", "type": "add_episode"}
            self._answers[key] = {"episode": episode, "task": task}
        return web.json_response(self._answers[key], status=202)

    def work(self) -> None:
        for episode in self.episodes.values():
            if not episode["processed"]:
                episode["processed"] = True
                self._make_facts(episode)

    def _make_facts(self, episode: dict[str, Any]) -> None:
        for line in episode["content"].splitlines():
            role, _, fact = line.partition(": ")
            if role != "user":
                continue
            for edge in self.edges.values():
                if (edge["graph_uuid"], edge["fact"]) == (episode["graph_uuid"], fact):
                    edge["episode_uuids"].append(episode["uuid"])
                    break
            else:
                edge = {
                    "uuid": self._id(),
                    "graph_uuid": episode["graph_uuid"],
                    "fact": fact,
                    "name": "SAID",
                    "episode_uuids": [episode["uuid"]],
                    "valid_at": episode["reference_time"],
                    "invalid_at": None,
                    "created_at": AT,
                }
                self.edges[edge["uuid"]] = edge

    def end(self, fact: str, *, by: str) -> None:
        """End a fact, as the model does when another fact contradicts it."""
        edges = {edge["fact"]: edge for edge in self.edges.values()}
        edges[fact]["invalid_at"] = edges[by]["valid_at"]

    async def _list_episodes(self, request: web.Request) -> web.Response:
        wanted = (await body_of(request))["filters"]["metadata_filters"]
        conditions = [
            (one["property_name"], one["value"])
            for one in wanted["filters"]
            if one["operator"] == "eq"
        ]
        episodes = [
            episode
            for episode in self._of(request, self.episodes)
            if all(episode["metadata"].get(name) == value for name, value in conditions)
        ]
        return _page(request, episodes)

    async def _list_edges(self, request: web.Request) -> web.Response:
        wanted = (await body_of(request))["filters"].get("episode_uuids")
        edges = [
            edge
            for edge in self._of(request, self.edges)
            if wanted is None or set(wanted) & set(edge["episode_uuids"])
        ]
        return _page(request, edges)

    async def _get_episode(self, request: web.Request) -> web.Response:
        return web.json_response(self._one(request, self.episodes))

    async def _delete_episode(self, request: web.Request) -> web.Response:
        """All facts stay, even those that only this episode states, so that Mneme doesn't rely on
        the cloud to delete them."""
        del self.episodes[self._one(request, self.episodes)["uuid"]]
        task = {"uuid": self._id(), "status": "pending", "type": "delete_episode"}
        return web.json_response({"task": task}, status=202)

    async def _get_edge(self, request: web.Request) -> web.Response:
        return web.json_response(self._one(request, self.edges))

    async def _update_edge(self, request: web.Request) -> web.Response:
        """Only the fact and the attributes of an edge can be changed."""
        edge, body = self._one(request, self.edges), await body_of(request)
        if not body.keys() <= {"fact", "attributes"}:
            return _error(400, "unknown field")
        edge["fact"] = body.get("fact") or edge["fact"]
        edge["attributes"] = {**edge.get("attributes", {}), **body.get("attributes", {})}
        return web.json_response(edge)

    async def _delete_edge(self, request: web.Request) -> web.Response:
        del self.edges[self._one(request, self.edges)["uuid"]]
        task = {"uuid": self._id(), "status": "pending", "type": "delete_edge"}
        return web.json_response({"task": task}, status=202)

    async def _search(self, request: web.Request) -> web.Response:
        query = (await body_of(request))["query"]
        edges = [*self.edges.values()] if self.is_leaking else self._of(request, self.edges)
        limit = int(request.query.get("page_size", 10))
        matches = best(query, edges, lambda edge: str(edge["fact"]), limit)
        return web.json_response({"items": [{**edge, "score": score} for score, edge in matches]})

    def _of(self, request: web.Request, kept: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
        self._check_graph(request)
        graph = request.match_info["graph"]
        return [one for one in kept.values() if one["graph_uuid"] == graph]

    def _one(self, request: web.Request, kept: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        for one in self._of(request, kept):
            if one["uuid"] == request.match_info["id"]:
                return one
        raise _not_found()


def _not_found() -> web.HTTPNotFound:
    text = '{"error": {"message": "not found"}}'
    return web.HTTPNotFound(text=text, content_type="application/json")


def _page(request: web.Request, items: Sequence[Any]) -> web.Response:
    size = int(request.query.get("page_size", 50))
    start = int(request.query.get("cursor", 0))
    page: dict[str, Any] = {"items": list(items[start : start + size])}
    if len(items) > start + size:
        page["next_cursor"] = str(start + size)
    return web.json_response(page)


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"code": "error", "message": message}}, status=status)
