"""Supermemory: its cloud, or a server of one's own. A scope is a namespace, and a turn a document in it. Two dialects
are spoken: `ns`, that of version 5 of its clients, and the older `v4`, which calls a namespace a container tag.

The service's own model makes memories of a document some time later; until then its text is found. Sent twice under one
id a document is appended to, so it is looked for before anything is sent again. It goes with its memories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from core.errors import ConfigError, DeliveryError
from core.guard.guard import Arguments, service_text, tool_of
from core.memory.http import SEARCH, JsonService, number_of, objects, segment, text_of
from core.memory.service import PROMPTS, AskedOptions, Entry, Found, ServerOptions, ServerService, Told
from core.types import Json, Tool, ToolContext

CLOUD = "https://api.supermemory.ai"
MODES, DREAMING = ("hybrid", "memories"), ("dynamic", "instant")
KEY, SAID_AT = "mneme", "said_at"
"""In the metadata of a document, and of what is made of it."""
UNDER_WAY = ("queued", "extracting", "chunking", "embedding", "indexing")
PAGE, PAGES = 100, 100


@dataclass(frozen=True, kw_only=True)
class Options(ServerOptions, AskedOptions):
    api: str = field(default="ns", metadata={"help": "its dialect: ns, or v4 for a server of yours", "ask": True})
    url: str = field(
        default=CLOUD, metadata={"help": "the cloud, or where your server listens: http://127.0.0.1:6767", "ask": True}
    )
    search_mode: str = field(default="hybrid", metadata={"help": "memories, or hybrid: what was said as well"})
    dreaming: str = field(
        default="dynamic", metadata={"help": "dynamic, or instant: a memory of each turn at once, which costs more"}
    )


class Supermemory(ServerService):
    name = "supermemory"
    options = Options
    cloud = CLOUD
    search_tool, add_tool, forget_tool = "supermemory_search", "supermemory_store", "supermemory_forget"
    taken_out = "recalls it no longer; what was said, of which it was made, stays there"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        if options.api not in DIALECTS or options.search_mode not in MODES or options.dreaming not in DREAMING:
            raise ConfigError(
                "api should be ns or v4, search_mode hybrid or memories, and dreaming dynamic or instant."
            )
        self._api = DIALECTS[options.api](self._http, options)

    async def probe(self) -> str:
        if not await self._api.answers(f"{self._namespace}-nobody"):
            raise DeliveryError(
                "what answers at the url of supermemory does not speak this dialect: set api to another"
            )
        return f"supermemory, {self.where}; memories, search and a profile by its dialect {self._api.name}"

    async def find(self, space: str, query: str, limit: int) -> Sequence[Found]:
        found = objects(await self._api.search(space, query, limit), "results")
        # A memory may say what was said in the same words, and an earlier version of it is no longer so.
        texts = {text_of(one, "memory", "chunk"): one for one in reversed(found) if one.get("isLatest") is not False}
        texts.pop("", None)
        return [
            Found(id=text_of(one, "id"), text=text, at=_since(one), score=number_of(one, "similarity"))
            for text, one in reversed(texts.items())
        ][:limit]

    async def keep(self, space: str, told: Told) -> Sequence[str]:
        held = await self._api.document(space, told.key) if told.is_again else None
        return [text_of(held or _document(await self._api.add(space, told)), "id")]

    async def erase(self, entry: Entry) -> None:
        held = await self._api.document(entry.space, entry.key)
        if held is not None:
            system = held.get("system") if isinstance(held.get("system"), dict) else held
            # What is under way would be made of it afterwards.
            if text_of(system, "status") in UNDER_WAY or text_of(system, "dreamingStatus") == "dreaming":
                raise DeliveryError("supermemory has not made memories of it yet", retry_after_s=5.0)
            await self._api.delete(entry.space, text_of(held, "id"))

    async def holds(self, entry: Entry) -> bool:
        return await self._api.document(entry.space, entry.key) is not None

    async def tools(self) -> Sequence[Tool]:
        return [*await super().tools(), tool_of("supermemory_profile", Arguments, self._profile, PROMPTS)]

    async def take_out(self, space: str, memory_id: str) -> bool:
        return await self._api.forget(space, memory_id)

    async def _profile(self, _: Arguments, context: ToolContext) -> str:
        return await self.said(context, self.ask, "")

    async def ask(self, space: str, query: str) -> str:
        """Its profile of the person, whatever the question: what lasts, then what is new."""
        answer = await self._api.profile(space)
        profile = answer.get("profile") if isinstance(answer, dict) else None
        parts = [profile.get(part) for part in ("static", "dynamic")] if isinstance(profile, dict) else []
        facts = [one for part in parts if isinstance(part, list) for one in part]
        # One that is left out takes no other along.
        said = (service_text(self.name, one if isinstance(one, str) else text_of(one, "memory")) for one in facts)
        return "\n".join(dict.fromkeys(filter(None, said)))


class _Namespaces:
    """The dialect `ns`."""

    name = "ns"

    def __init__(self, http: JsonService, options: Options) -> None:
        self._http, self._options = http, options

    async def answers(self, nobody: str) -> bool:
        """Whether it is spoken there."""
        return await self._http.call("GET", "/ns", params={"limit": 1}, patience=SEARCH, missing=None) is not None

    async def search(self, space: str, query: str, limit: int) -> Any:
        asked = {"query": query, "searchMode": self._options.search_mode, "limit": limit}
        how: Any = {"patience": SEARCH, "is_repeatable": True, "missing": {"results": []}}
        return await self._http.call("POST", f"/ns/{segment(space)}/search", asked, **how)

    async def add(self, space: str, told: Told) -> Any:
        body = {
            "content": _content(told),
            "id": told.key,
            "metadata": _metadata(told),
            "date": told.at.isoformat(),
            "dreaming": self._options.dreaming,
        }
        return await self._http.call("POST", f"/ns/{segment(space)}/document", body)

    async def document(self, space: str, key: str) -> Json | None:
        """That of a key of ours, if it is there."""
        path = f"/ns/{segment(space)}/document/{segment(key)}"
        answer = await self._http.call("GET", path, missing=None)
        return None if answer is None else _document(answer)

    async def delete(self, space: str, document_id: str) -> None:
        await self._http.call("DELETE", f"/ns/{segment(space)}/document", {"ids": [document_id]}, missing=None)

    async def forget(self, space: str, memory_id: str) -> bool:
        """Whether there was such a memory."""
        body = {"ids": [memory_id]}
        answer = await self._http.call("DELETE", f"/ns/{segment(space)}/memories", body, missing={"matches": []})
        return memory_id in [text_of(one, "id") for one in objects(answer, "matches")]

    async def profile(self, space: str) -> Any:
        path = f"/ns/{segment(space)}/profile"
        return await self._http.call("POST", path, {}, patience=SEARCH, is_repeatable=True, missing=None)


class _Tags(_Namespaces):
    """The same in the dialect `v4`."""

    name = "v4"

    async def answers(self, nobody: str) -> bool:
        body = {"containerTags": [nobody], "limit": 1}
        path = "/v3/documents/list"
        return await self._http.call("POST", path, body, patience=SEARCH, is_repeatable=True, missing=None) is not None

    async def search(self, space: str, query: str, limit: int) -> Any:
        asked = {"q": query, "containerTag": space, "searchMode": self._options.search_mode, "limit": limit}
        return await self._http.call("POST", "/v4/search", asked, patience=SEARCH, is_repeatable=True)

    async def add(self, space: str, told: Told) -> Any:
        body = {
            "content": _content(told),
            "containerTag": space,
            "customId": told.key,
            "metadata": _metadata(told),
            "dreaming": self._options.dreaming,
        }
        return await self._http.call("POST", "/v3/documents", body)

    async def document(self, space: str, key: str) -> Json | None:
        """Looked for in the list, since not every server takes our key for the id of a document; that says how far it
        has got."""
        for page in range(1, PAGES + 1):
            only = {"AND": [{"key": KEY, "value": key}]}
            body = {"containerTags": [space], "filters": only, "limit": PAGE, "page": page}
            answer = await self._http.call("POST", "/v3/documents/list", body, is_repeatable=True)
            listed = objects(answer, "memories")
            if found := [text_of(one, "id") for one in listed if text_of(one, "customId") == key]:
                answer = await self._http.call("GET", f"/v3/documents/{segment(found[0])}", missing=None)
                return None if answer is None else _document(answer)
            if len(listed) < PAGE:
                break
        return None

    async def delete(self, space: str, document_id: str) -> None:
        await self._http.call("DELETE", f"/v3/documents/{segment(document_id)}", missing=None)

    async def forget(self, space: str, memory_id: str) -> bool:
        body = {"containerTag": space, "id": memory_id}
        answer = await self._http.call("DELETE", "/v4/memories", body, missing=None)
        return isinstance(answer, dict) and answer.get("forgotten") is True

    async def profile(self, space: str) -> Any:
        body = {"containerTag": space}
        return await self._http.call("POST", "/v4/profile", body, patience=SEARCH, is_repeatable=True, missing=None)


DIALECTS: dict[str, type[_Namespaces]] = {one.name: one for one in (_Namespaces, _Tags)}


def _document(answer: Any) -> Json:
    if not text_of(answer, "id"):
        raise DeliveryError("supermemory gives something else than a document")
    return dict(answer)


def _content(told: Told) -> str:
    """What is nothing but an address it would open, and keep what stands there."""
    return told.text if " " in told.text else f"{told.kind}: {told.text}"


def _metadata(told: Told) -> Json:
    return {KEY: told.key, SAID_AT: told.at.isoformat()}


def _since(one: Json) -> str:
    said_at = text_of(one.get("metadata"), SAID_AT)
    return said_at or text_of(one.get("system"), "updatedAt") or text_of(one, "updatedAt")
