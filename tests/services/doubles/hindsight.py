"""Hindsight: banks of documents, each with facts.

A document that is retained asynchronously becomes facts some time later.

It follows https://hindsight.vectorize.io."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any
from uuid import UUID

from aiohttp import web

from tests.services.doubles.double import Double, best, body_of

BANK = "/v1/default/banks/{bank}"


class HindsightDouble(Double):
    """Makes one fact of each document, and a second one by experience."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count(1)
        self.banks: dict[str, dict[str, list[dict[str, Any]]]] = {}
        """Facts by bank and document."""
        self.waiting: dict[str, tuple[str, dict[str, Any]]] = {}
        """By operation: bank and item of which nothing is made yet."""
        self.done: dict[str, str] = {}
        """By operation: what it was told, which it keeps until the record of it is deleted."""
        self.is_late = False

    def texts(self) -> Sequence[str]:
        kept = [
            fact["text"]
            for bank in self.banks.values()
            for facts in bank.values()
            for fact in facts
        ]
        return [*kept, *(text for text in self.done.values() if text not in kept)]

    def routes(self) -> Sequence[web.RouteDef]:
        document, operation = f"{BANK}/documents/{{document}}", f"{BANK}/operations/{{operation}}"
        return [
            web.get("/version", self._version),
            web.post(f"{BANK}/memories", self._retain),
            web.get(f"{BANK}/memories/list", self._list),
            web.post(f"{BANK}/memories/recall", self._recall),
            web.post(f"{BANK}/reflect", self._reflect),
            web.get(document, self._document),
            web.delete(document, self._delete),
            web.get(operation, self._operation),
            web.delete(f"{operation}/delete", self._forget),
        ]

    def work(self) -> None:
        """Make facts of the waiting documents."""
        for operation, (bank, item) in self.waiting.items():
            self._make(bank, item)
            self.done[operation] = item["content"]
        self.waiting.clear()

    def _make(self, bank: str, item: dict[str, Any]) -> None:
        at = str(item.get("timestamp"))
        fact = {
            "id": str(UUID(int=next(self._numbers))),
            "text": item["content"],
            "type": "world",
            "mentioned_at": at,
        }
        self.banks.setdefault(bank, {})[item["document_id"]] = [
            fact | {"document_id": item["document_id"]}
        ]

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response(
            {"api_version": "1.1.0", "features": {"observations": True, "mcp": True}}
        )

    async def _retain(self, request: web.Request) -> web.Response:
        body, bank = await body_of(request), request.match_info["bank"]
        if not isinstance(body.get("items"), list) or not body["items"]:
            return web.json_response({"detail": "items are missing"}, status=422)
        said = {
            "success": True,
            "bank_id": bank,
            "items_count": len(body["items"]),
            "async": body.get("async", False),
        }
        operation = None
        for item in body["items"]:
            if not body.get("async"):
                self._make(bank, item)
                continue
            operation = str(UUID(int=next(self._numbers)))
            self.waiting[operation] = (bank, item)
            self.banks.setdefault(bank, {})
        if not self.is_late:
            self.work()
        return web.json_response({**said, "operation_id": operation})

    async def _list(self, request: web.Request) -> web.Response:
        facts = [fact for facts in self._bank(request).values() for fact in facts]
        return web.json_response(
            {"items": facts[: int(request.query["limit"])], "total": len(facts)}
        )

    async def _recall(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        facts = [
            fact
            for facts in self._bank(request).values()
            for fact in facts
            if fact["type"] in body["types"]
        ]
        found = best(body["query"], facts, lambda fact: str(fact["text"]), 50)
        return web.json_response({"results": [fact for _, fact in found]})

    async def _reflect(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        facts = [fact for facts in self._bank(request).values() for fact in facts]
        found = best(body["query"], facts, lambda fact: str(fact["text"]), 3)
        return web.json_response(
            {"text": " ".join(fact["text"] for _, fact in found), "based_on": {}, "usage": {}}
        )

    async def _document(self, request: web.Request) -> web.Response:
        document = request.match_info["document"]
        if document not in self._bank(request):
            raise self._not_found()
        return web.json_response({"id": document, "bank_id": request.match_info["bank"]})

    async def _delete(self, request: web.Request) -> web.Response:
        gone = self._bank(request).pop(request.match_info["document"], None)
        if gone is None:
            raise self._not_found()
        return web.json_response({"success": True, "memory_units_deleted": len(gone)})

    async def _operation(self, request: web.Request) -> web.Response:
        operation = request.match_info["operation"]
        status = (
            "pending"
            if operation in self.waiting
            else "completed"
            if operation in self.done
            else "not_found"
        )
        return web.json_response({"operation_id": operation, "status": status})

    async def _forget(self, request: web.Request) -> web.Response:
        if self.done.pop(request.match_info["operation"], None) is None:
            raise self._not_found()
        return web.json_response({"success": True})

    def _bank(self, request: web.Request) -> dict[str, list[dict[str, Any]]]:
        found = self.banks.get(request.match_info["bank"])
        if found is None:
            raise self._not_found()
        return found

    @staticmethod
    def _not_found() -> web.HTTPNotFound:
        return web.HTTPNotFound(text='{"detail": "not found"}', content_type="application/json")
