"""Supermemory in both dialects: documents by namespace.

A search finds their text at once, and their memories some time later.

It follows https://supermemory.ai/docs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from aiohttp import web

from tests.services.doubles.double import Double, best, body_of

AT = "2026-05-04T09:00:00Z"
SPACE = "/ns/{space}"


class SupermemoryDouble(Double):
    """Makes one memory of each document.

    The first memory of a space is static, so it is part of the profile. A text with a known id is
    appended to its document.
    """

    def __init__(self, *, dialect: str = "ns") -> None:
        super().__init__()
        self._numbers = count(1)
        self.dialect = dialect
        self.documents: dict[tuple[str, str], dict[str, Any]] = {}
        """By space and id of the caller."""
        self.memories: dict[str, dict[str, Any]] = {}
        self.opened: list[str] = []
        """Addresses that were sent as documents."""
        self.is_late = False
        self.is_filtering = True
        """Whether a list is narrowed by its filters, which not every server does."""

    def texts(self) -> Sequence[str]:
        return [text for one in self.documents.values() for text in one["said"]]

    def routes(self) -> Sequence[web.RouteDef]:
        if self.dialect == "ns":
            return [
                web.get("/ns", self._namespaces),
                web.post(f"{SPACE}/document", self._add),
                web.get(f"{SPACE}/document/{{id}}", self._get),
                web.delete(f"{SPACE}/document", self._delete),
                web.post(f"{SPACE}/search", self._search),
                web.post(f"{SPACE}/profile", self._profile),
                web.delete(f"{SPACE}/memories", self._forget),
            ]
        return [
            web.post("/v3/documents", self._add),
            web.post("/v3/documents/list", self._list),
            web.get("/v3/documents/{id}", self._get_one),
            web.delete("/v3/documents/{id}", self._delete_one),
            web.post("/v4/search", self._search),
            web.post("/v4/profile", self._profile),
            web.delete("/v4/memories", self._forget_one),
        ]

    def work(self) -> None:
        """Make memories of the waiting documents."""
        for (space, _), document in self.documents.items():
            if document["status"] != "done":
                document["status"] = "done"
                number = f"memory-{next(self._numbers)}"
                one = {
                    "id": number,
                    "memory": document["said"][-1],
                    "space": space,
                    "document": document["id"],
                }
                self.memories[number] = {
                    **one,
                    "metadata": document["metadata"],
                    "forgotten": False,
                }

    async def _add(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        space = request.match_info.get("space") or body["containerTag"]
        if not body["content"].strip():
            return web.json_response({"error": "content is required"}, status=400)
        if " " not in body["content"] and "://" in body["content"]:
            self.opened.append(body["content"])
        number = f"document-{next(self._numbers)}"
        key = body.get("customId" if self.dialect == "v4" else "id") or number
        made = {
            "id": number,
            "key": key,
            "space": space,
            "said": [],
            "metadata": body.get("metadata", {}),
        }
        document = self.documents.setdefault((space, key), made)
        document["said"].append(body["content"])
        document["status"] = "queued"
        if not self.is_late:
            self.work()
        return web.json_response({"id": document["id"], "status": document["status"]})

    async def _get(self, request: web.Request) -> web.Response:
        found = self._found(request.match_info["space"], request.match_info["id"])
        if found is None:
            return web.json_response({"error": "Document not found"}, status=404)
        return web.json_response(self._shown(found))

    async def _get_one(self, request: web.Request) -> web.Response:
        found = [one for one in self.documents.values() if one["id"] == request.match_info["id"]]
        if not found:
            return web.json_response({"error": "Document not found"}, status=404)
        return web.json_response({**self._shown(found[0]), "raw": None, "taskType": "memory"})

    async def _list(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        kept = [one for one in self.documents.values() if one["space"] in body["containerTags"]]
        for only in body.get("filters", {}).get("AND", []) if self.is_filtering else ():
            kept = [one for one in kept if one["metadata"].get(only["key"]) == only["value"]]
        page, size = int(body.get("page", 1)), int(body.get("limit", 10))
        shown = [self._shown(one) for one in kept[(page - 1) * size : page * size]]
        for one in shown:
            # Only the document itself has this field.
            del one["dreamingStatus"]
        pages = {
            "currentPage": page,
            "limit": size,
            "totalItems": len(kept),
            "totalPages": -(-len(kept) // size),
        }
        return web.json_response({"memories": shown, "pagination": pages})

    def _shown(self, document: dict[str, Any]) -> dict[str, Any]:
        is_over = document["status"] == "done"
        times = {"createdAt": AT, "updatedAt": AT}
        state = {
            "status": document["status"],
            "dreamingStatus": "done" if is_over else "dreaming",
            **times,
        }
        shown = {
            "id": document["id"],
            "type": "text",
            "title": None,
            "summary": None,
            "metadata": document["metadata"],
        }
        if self.dialect == "ns":
            return {**shown, "content": "\n".join(document["said"]), "system": state}
        return {**shown, **state, "customId": document["key"], "containerTags": [document["space"]]}

    async def _delete(self, request: web.Request) -> web.Response:
        errors, deleted = [], 0
        for asked in (await body_of(request))["ids"]:
            if (found := self._found(request.match_info["space"], asked)) is None:
                errors.append({"id": asked, "error": "Document not found"})
            else:
                self._drop(found)
                deleted += 1
        return web.json_response({"count": deleted, "errors": errors})

    async def _delete_one(self, request: web.Request) -> web.Response:
        asked = request.match_info["id"]
        found = [one for one in self.documents.values() if asked in (one["id"], one["key"])]
        if not found:
            return web.json_response({"error": "Document not found"}, status=404)
        if found[0]["status"] != "done":
            return web.json_response({"error": "Document is still processing"}, status=409)
        self._drop(found[0])
        return web.Response(status=204)

    def _drop(self, document: dict[str, Any]) -> None:
        del self.documents[document["space"], document["key"]]
        self.memories = {
            key: one for key, one in self.memories.items() if one["document"] != document["id"]
        }

    def _found(self, space: str, asked: str) -> dict[str, Any] | None:
        kept = [one for one in self.documents.values() if one["space"] == space]
        return next((one for one in kept if asked in (one["id"], one["key"])), None)

    async def _search(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        space = request.match_info.get("space") or body["containerTag"]
        results = [
            {"id": one["id"], "memory": one["memory"], "metadata": one["metadata"]}
            for one in self._recalled(space)
        ]
        if body.get("searchMode", "hybrid") == "hybrid":
            results += [
                {"id": f"chunk-{one['id']}-{place}", "chunk": text, "metadata": one["metadata"]}
                for one in self.documents.values()
                if one["space"] == space
                for place, text in enumerate(one["said"])
            ]
        asked = body["query" if self.dialect == "ns" else "q"]
        found = best(
            asked,
            results,
            lambda one: str(one.get("memory") or one["chunk"]),
            body.get("limit", 10),
        )
        if self.dialect == "ns":
            more = {
                "isLatest": True,
                "isInference": False,
                "system": {"updatedAt": AT, "createdAt": AT},
            }
            return web.json_response(
                {
                    "results": [{**one, "similarity": score, **more} for score, one in found],
                    "searchTime": 1.0,
                }
            )
        shown = [{**one, "similarity": score, "updatedAt": AT} for score, one in found]
        return web.json_response({"results": shown, "timing": 1.0, "total": len(shown)})

    def _recalled(self, space: str) -> list[dict[str, Any]]:
        return [
            one for one in self.memories.values() if one["space"] == space and not one["forgotten"]
        ]

    async def _profile(self, request: web.Request) -> web.Response:
        space = request.match_info.get("space") or (await body_of(request))["containerTag"]
        facts = [
            {"id": one["id"], "memory": one["memory"]} if self.dialect == "ns" else one["memory"]
            for one in self._recalled(space)
        ]
        profile: dict[str, Any] = {"static": facts[:1], "dynamic": facts[1:]}
        return web.json_response(
            {"profile": profile | ({"buckets": {}} if self.dialect == "ns" else {})}
        )

    async def _forget(self, request: web.Request) -> web.Response:
        errors, matches = [], []
        for asked in (await body_of(request))["ids"]:
            if one := self._taken(request.match_info["space"], asked):
                matches.append({"id": asked, "memory": one["memory"]})
            else:
                errors.append({"id": asked, "error": "Memory not found"})
        return web.json_response({"count": len(matches), "errors": errors, "matches": matches})

    async def _forget_one(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        if self._taken(body["containerTag"], body["id"]) is None:
            return web.json_response({"error": "Memory not found"}, status=404)
        return web.json_response({"id": body["id"], "forgotten": True})

    def _taken(self, space: str, asked: str) -> dict[str, Any] | None:
        one = self.memories.get(asked)
        if one is None or one["space"] != space or one["forgotten"]:
            return None
        one["forgotten"] = True
        return one

    async def _namespaces(self, request: web.Request) -> web.Response:
        names = sorted({space for space, _ in self.documents})
        shown = [
            {"namespace": name, "system": {"createdAt": AT, "updatedAt": AT}} for name in names
        ]
        pages = {"currentPage": 1, "limit": 10, "totalItems": len(names), "totalPages": 1}
        return web.json_response({"namespaces": shown, "pagination": pages})
