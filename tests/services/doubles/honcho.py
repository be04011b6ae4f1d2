"""Honcho: workspaces of peers and sessions, with messages that can't be deleted one by one, and
conclusions that follow later.

It follows https://docs.honcho.dev."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from aiohttp import web

from tests.services.doubles.double import Double, best, body_of

AT = "2026-05-04T09:00:00Z"
WORKSPACE = "/v3/workspaces/{workspace}"


class HonchoDouble(Double):
    """`work` draws one conclusion from each message of an observed peer.

    A deleted session is inactive at once, and `work` removes it. Its name can't be used again."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count(1)
        self.workspaces: set[str] = set()
        self.peers: dict[tuple[str, str], dict[str, Any]] = {}
        self.sessions: dict[tuple[str, str], dict[str, Any]] = {}
        self.messages: dict[str, dict[str, Any]] = {}
        self.conclusions: dict[str, dict[str, Any]] = {}
        self.cards: dict[tuple[str, str], list[str]] = {}
        self.deleted: set[tuple[str, str]] = set()
        self.is_late = False
        self.refused: set[str] = set()
        """Methods for which it is out of order."""

    def texts(self) -> Sequence[str]:
        """Return the messages, and the conclusions that the caller stored.

        Conclusions of the service only repeat messages."""
        made = [one["content"] for one in self.conclusions.values() if not one["source"]]
        return [*(one["content"] for one in self.messages.values()), *made]

    def routes(self) -> Sequence[web.RouteDef]:
        peer, session = f"{WORKSPACE}/peers/{{peer}}", f"{WORKSPACE}/sessions/{{session}}"
        return [
            web.get("/openapi.json", self._openapi),
            web.post("/v3/workspaces", self._workspace),
            web.post(f"{WORKSPACE}/peers", self._peer),
            web.post(f"{peer}/search", self._search),
            web.post(f"{peer}/chat", self._chat),
            web.post(f"{peer}/sessions", self._of_peer),
            web.post(f"{peer}/representation", self._representation),
            web.get(f"{peer}/context", self._context),
            web.get(f"{peer}/card", self._card),
            web.put(f"{peer}/card", self._set_card),
            web.post(f"{WORKSPACE}/sessions", self._session),
            web.post(f"{WORKSPACE}/sessions/list", self._list_sessions),
            web.delete(session, self._delete_session),
            web.post(f"{session}/messages", self._post),
            web.post(f"{session}/messages/list", self._list_messages),
            web.post(f"{WORKSPACE}/conclusions", self._conclude),
            web.post(f"{WORKSPACE}/conclusions/list", self._list_conclusions),
            web.post(f"{WORKSPACE}/conclusions/query", self._query),
            web.delete(f"{WORKSPACE}/conclusions/{{conclusion}}", self._delete_conclusion),
        ]

    def work(self) -> None:
        """Draw conclusions from the messages, and delete the sessions that wait for it."""
        for place in [
            place for place, session in self.sessions.items() if not session["is_active"]
        ]:
            del self.sessions[place]
            for held in (self.messages, self.conclusions):
                gone = [
                    key
                    for key, one in held.items()
                    if (one["workspace_id"], one["session_id"]) == place
                ]
                for key in gone:
                    del held[key]
        told = {one["source"] for one in self.conclusions.values()}
        for message in self.messages.values():
            peers = self.sessions[message["workspace_id"], message["session_id"]]["peers"]
            if message["id"] not in told and peers.get(message["peer_id"], {}).get(
                "observe_me", True
            ):
                text = f"{message['peer_id']} said: {message['content']}"
                self.concluded(
                    message["workspace_id"],
                    message["peer_id"],
                    text,
                    message["session_id"],
                    message["id"],
                )

    def concluded(
        self,
        workspace: str,
        peer: str,
        text: str,
        session: str | None,
        source: str = "",
        sources: Sequence[str] = (),
    ) -> dict[str, Any]:
        number = f"conclusion-{next(self._numbers)}"
        self.conclusions[number] = {
            "id": number,
            "content": text,
            "observer_id": peer,
            "observed_id": peer,
            "session_id": session,
            "workspace_id": workspace,
            "level": "deductive" if sources else "explicit",
            "source_ids": [*sources] or None,
            "created_at": AT,
            "source": source,
        }
        return self.conclusions[number]

    async def _openapi(self, request: web.Request) -> web.Response:
        return web.json_response(
            {"openapi": "3.1.0", "info": {"title": "Honcho API", "version": "3.0.12"}}
        )

    async def _workspace(self, request: web.Request) -> web.Response:
        name = (await body_of(request))["id"]
        self.workspaces.add(name)
        return web.json_response(
            {"id": name, "metadata": {}, "configuration": {}, "created_at": AT}, status=201
        )

    async def _peer(self, request: web.Request) -> web.Response:
        return web.json_response(
            self._made(self._workspace_of(request), (await body_of(request))["id"]), status=201
        )

    def _made(self, workspace: str, peer: str) -> dict[str, Any]:
        made = {
            "id": peer,
            "workspace_id": workspace,
            "created_at": AT,
            "metadata": {},
            "configuration": {},
        }
        return self.peers.setdefault((workspace, peer), made)

    async def _session(self, request: web.Request) -> web.Response:
        workspace, body = self._workspace_of(request), await body_of(request)
        place = (workspace, body["id"])
        if place in self.deleted:
            raise self._not_found()
        made = {
            "id": body["id"],
            "workspace_id": workspace,
            "is_active": True,
            "created_at": AT,
            "configuration": {},
        }
        session = self.sessions.setdefault(place, {**made, "metadata": {}, "peers": {}})
        session["metadata"] = body.get("metadata", session["metadata"])
        for peer, configuration in body.get("peers", {}).items():
            self._made(workspace, peer)
            session["peers"].setdefault(peer, configuration)
        return web.json_response(session, status=201)

    async def _delete_session(self, request: web.Request) -> web.Response:
        if request.method in self.refused:
            return web.json_response({}, status=503)
        session = self._session_of(request)
        session["is_active"] = False
        self.deleted.add((session["workspace_id"], session["id"]))
        if not self.is_late:
            self.work()
        return web.json_response({"message": "Session deleted successfully"}, status=202)

    async def _list_sessions(self, request: web.Request) -> web.Response:
        workspace = self._workspace_of(request)
        return await self._page(
            request, [one for place, one in self.sessions.items() if place[0] == workspace]
        )

    async def _of_peer(self, request: web.Request) -> web.Response:
        workspace, peer = self._peer_of(request)
        kept = [
            one
            for place, one in self.sessions.items()
            if place[0] == workspace and peer in one["peers"]
        ]
        return await self._page(request, kept)

    async def _post(self, request: web.Request) -> web.Response:
        session, body = self._session_of(request), await body_of(request)
        if not 1 <= len(body["messages"]) <= 100:
            return web.json_response({"detail": "1 to 100 messages"}, status=422)
        posted = []
        for message in body["messages"]:
            self._made(session["workspace_id"], message["peer_id"])
            session["peers"].setdefault(message["peer_id"], {})
            number = f"message-{next(self._numbers)}"
            place = {"session_id": session["id"], "workspace_id": session["workspace_id"]}
            kept = {
                "id": number,
                "created_at": AT,
                "metadata": {},
                "token_count": 1,
                **message,
                **place,
            }
            self.messages[number] = kept
            posted.append(kept)
        return web.json_response(posted, status=201)

    async def _list_messages(self, request: web.Request) -> web.Response:
        session = self._session_of(request)
        place = (session["workspace_id"], session["id"])
        kept = [
            one
            for one in self.messages.values()
            if (one["workspace_id"], one["session_id"]) == place
        ]
        return await self._page(request, kept)

    async def _search(self, request: web.Request) -> web.Response:
        (workspace, peer), body = self._peer_of(request), await body_of(request)
        kept = [
            one
            for one in self.messages.values()
            if (one["workspace_id"], one["peer_id"]) == (workspace, peer)
        ]
        found = best(body["query"], kept, lambda one: str(one["content"]), body.get("limit", 10))
        return web.json_response([one for _, one in found])

    async def _chat(self, request: web.Request) -> web.Response:
        (workspace, peer), body = self._peer_of(request), await body_of(request)
        kept = [
            one
            for one in self.conclusions.values()
            if (one["workspace_id"], one["observed_id"]) == (workspace, peer)
        ]
        found = best(body["query"], kept, lambda one: str(one["content"]), 3)
        return web.json_response({"content": " ".join(one["content"] for _, one in found) or None})

    async def _representation(self, request: web.Request) -> web.Response:
        return web.json_response({"representation": self._represented(*self._peer_of(request))})

    async def _context(self, request: web.Request) -> web.Response:
        place = self._peer_of(request)
        ids = {"peer_id": place[1], "target_id": place[1]}
        return web.json_response(
            {**ids, "representation": self._represented(*place), "peer_card": self.cards.get(place)}
        )

    def _represented(self, workspace: str, peer: str) -> str:
        kept = [
            one
            for one in self.conclusions.values()
            if (one["workspace_id"], one["observed_id"]) == (workspace, peer)
        ]
        return "\n".join(f"[{one['created_at'][:10]}] {one['content']}" for one in kept)

    async def _card(self, request: web.Request) -> web.Response:
        return web.json_response({"peer_card": self.cards.get(self._peer_of(request))})

    async def _set_card(self, request: web.Request) -> web.Response:
        self.cards[self._peer_of(request)] = (await body_of(request))["peer_card"]
        return web.json_response({"peer_card": self.cards[self._peer_of(request)]})

    async def _conclude(self, request: web.Request) -> web.Response:
        workspace, body = self._workspace_of(request), await body_of(request)
        made = []
        for one in body["conclusions"]:
            known = (workspace, one["observer_id"]) in self.peers
            if not known or (
                one.get("session_id") and (workspace, one["session_id"]) not in self.sessions
            ):
                raise self._not_found()
            made.append(
                self.concluded(workspace, one["observed_id"], one["content"], one.get("session_id"))
            )
        return web.json_response(made, status=201)

    async def _list_conclusions(self, request: web.Request) -> web.Response:
        workspace = self._workspace_of(request)
        return await self._page(
            request, [one for one in self.conclusions.values() if one["workspace_id"] == workspace]
        )

    async def _query(self, request: web.Request) -> web.Response:
        workspace, body = self._workspace_of(request), await body_of(request)
        kept = [one for one in self.conclusions.values() if one["workspace_id"] == workspace]
        kept = [one for one in kept if _fits(one, body.get("filters"))]
        found = best(body["query"], kept, lambda one: str(one["content"]), body.get("top_k", 10))
        return web.json_response([one for _, one in found])

    async def _delete_conclusion(self, request: web.Request) -> web.Response:
        if self.conclusions.pop(request.match_info["conclusion"], None) is None:
            raise self._not_found()
        return web.Response(status=204)

    async def _page(self, request: web.Request, kept: Sequence[dict[str, Any]]) -> web.Response:
        body = await body_of(request) if request.can_read_body else {}
        kept = [one for one in kept if _fits(one, body.get("filters"))]
        page, size = int(request.query.get("page", 1)), int(request.query.get("size", 50))
        shown = kept[(page - 1) * size : page * size]
        pages = -(-len(kept) // size)
        return web.json_response(
            {"items": shown, "total": len(kept), "page": page, "size": size, "pages": pages}
        )

    def _workspace_of(self, request: web.Request) -> str:
        name = request.match_info["workspace"]
        if name not in self.workspaces:
            raise self._not_found()
        return name

    def _peer_of(self, request: web.Request) -> tuple[str, str]:
        place = (self._workspace_of(request), request.match_info["peer"])
        if place not in self.peers:
            raise self._not_found()
        return place

    def _session_of(self, request: web.Request) -> dict[str, Any]:
        session = self.sessions.get((self._workspace_of(request), request.match_info["session"]))
        if session is None:
            raise self._not_found()
        return session

    @staticmethod
    def _not_found() -> web.HTTPNotFound:
        return web.HTTPNotFound(text='{"detail": "not found"}', content_type="application/json")


def _fits(one: dict[str, Any], filters: dict[str, Any] | None) -> bool:
    for name, wanted in (filters or {}).items():
        if name == "metadata":
            if not wanted.items() <= one["metadata"].items():
                return False
        elif one.get(name) != wanted:
            return False
    return True
