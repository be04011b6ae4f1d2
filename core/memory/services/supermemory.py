"""Use Supermemory, in its cloud or on your own server.

Each scope is a namespace, and each turn is a document in the namespace. Mneme supports two dialects
of the API: `ns`, which version 5 of Supermemory's own clients use, and the older `v4`, which calls
a namespace a container tag.

The model of the service derives memories from a document some time later. Until then, a search
finds the text of the document. If a document is sent twice with the same id, the service appends
the second copy to the first. So before a retry, Mneme checks whether the document exists. Deleting
a document also deletes its memories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from core.errors import DeliveryError, Sentence
from core.guard.guard import clean_service_text
from core.guard.tool_definitions import ToolArguments, build_tool
from core.memory.http import SEARCH, JsonService, number_of, objects, segment, text_of
from core.memory.service import (
    PROMPT_PACKAGE,
    Entry,
    ReflectionOptions,
    RemoteMemory,
    ServerOptions,
    ServerService,
    SyncItem,
    setup_option,
)
from core.types import Effect, Json, Tool, ToolContext

CLOUD = "https://api.supermemory.ai"
SEARCH_MODES = ("hybrid", "memories")
DREAMING_MODES = ("dynamic", "instant")
# Metadata fields of a document and its memories: our key, and when the words were written.
KEY = "mneme"
SAID_AT = "said_at"
RUNNING_STATUSES = ("queued", "extracting", "chunking", "embedding", "indexing")
PAGE_SIZE = 100
MAX_PAGES = 100


@dataclass(frozen=True, kw_only=True)
class Options(ServerOptions, ReflectionOptions):
    api: str = setup_option("ns", "its dialect: ns, or v4 for your own server")
    url: str = setup_option(
        CLOUD, "the cloud, or the address of your server, like http://127.0.0.1:6767"
    )
    search_mode: str = field(
        default="hybrid",
        metadata={"help": "what is searched: memories, or hybrid for the conversations as well"},
    )
    dreaming: str = field(
        default="dynamic",
        metadata={"help": "dynamic, or instant: a memory of each turn at once, which costs more"},
    )


class Supermemory(ServerService):
    name = "supermemory"
    options = Options
    cloud = CLOUD
    search_tool = "supermemory_search"
    add_tool = "supermemory_store"
    forget_tool = "supermemory_forget"
    forget_receipt = "no longer recalls it, but still has the messages that it was made from"

    def __init__(self, options: Options) -> None:
        """Check the options and choose the dialect. Raises ConfigError if an option is invalid."""
        super().__init__(options)
        self._check_choice("api", options.api, DIALECTS)
        self._check_choice("search_mode", options.search_mode, SEARCH_MODES)
        self._check_choice("dreaming", options.dreaming, DREAMING_MODES)
        self._api = DIALECTS[options.api](self._http, options)

    async def probe(self) -> Sentence:
        """Return a description of the server.

        Raises DeliveryError if the server doesn't support the dialect.
        """
        if not await self._api.is_spoken(f"{self._namespace}-nobody"):
            raise DeliveryError("service_other_dialect", name=self.name)
        values = {"place": self.location, "dialect": self._api.name}
        return Sentence("probe_supermemory", values)

    async def find(self, space: str, query: str, limit: int) -> Sequence[RemoteMemory]:
        """Return the memories and parts of documents that match, without duplicate texts."""
        results = objects(await self._api.search(space, query, limit), "results")
        memories: dict[str, RemoteMemory] = {}
        for result in results:
            text = text_of(result, "memory", "chunk")
            # A result that isn't the latest is an outdated version of a memory. A memory and the
            # part of a document that it was derived from may have the same text.
            if not text or text in memories or result.get("isLatest") is False:
                continue
            memories[text] = RemoteMemory(
                id=text_of(result, "id"),
                text=text,
                at=_date_of(result),
                score=number_of(result, "similarity"),
            )
        return list(memories.values())[:limit]

    async def keep(self, space: str, item: SyncItem) -> Sequence[str]:
        """Store an item as a document, and return the id of the document."""
        document = None
        if item.is_retry:
            document = await self._api.load_document(space, item.key)
        if document is None:
            document = _check_document(await self._api.add(space, item))
        return [text_of(document, "id")]

    async def erase(self, entry: Entry) -> None:
        """Delete the document of an item.

        Raises DeliveryError while the service is processing it.
        """
        document = await self._api.load_document(entry.space, entry.key)
        if document is None:
            return
        state = document.get("system")
        if not isinstance(state, dict):
            state = document
        # Memories that are still being derived would appear after the deletion.
        is_dreaming = text_of(state, "dreamingStatus") == "dreaming"
        if is_dreaming or text_of(state, "status") in RUNNING_STATUSES:
            raise DeliveryError("service_not_processed", name=self.name, retry_after_s=5.0)
        await self._api.delete_document(entry.space, text_of(document, "id"))

    async def holds(self, entry: Entry) -> bool:
        return await self._api.load_document(entry.space, entry.key) is not None

    async def tools(self) -> Sequence[Tool]:
        profile = build_tool(
            "supermemory_profile", ToolArguments, self._run_profile, PROMPT_PACKAGE, Effect.READ
        )
        return [*await super().tools(), profile]

    async def take_out(self, space: str, memory_id: str) -> bool:
        return await self._api.forget_memory(space, memory_id)

    async def _run_profile(self, _: ToolArguments, context: ToolContext) -> str:
        return await self.ask_spaces(context, self.ask, "")

    async def ask(self, space: str, query: str) -> str:
        """Return the person's profile, lasting facts first. The question is ignored.

        Suspicious facts are left out.
        """
        answer = await self._api.load_profile(space)
        profile = answer.get("profile") if isinstance(answer, dict) else None
        if not isinstance(profile, dict):
            return ""
        lines = []
        for part in ("static", "dynamic"):
            facts = profile.get(part)
            for fact in facts if isinstance(facts, list) else ():
                text = fact if isinstance(fact, str) else text_of(fact, "memory")
                # Each fact is checked separately, so that a suspicious fact doesn't hide the rest.
                lines.append(clean_service_text(self.name, text))
        return "\n".join(dict.fromkeys(filter(None, lines)))


class _NamespaceDialect:
    """Calls a server that supports the dialect `ns`."""

    name = "ns"

    def __init__(self, http: JsonService, options: Options) -> None:
        self._http = http
        self._options = options

    async def is_spoken(self, unused_space: str) -> bool:
        """Return whether the server supports this dialect.

        To find out, this lists the namespaces, which only such a server can do.
        """
        answer = await self._http.call(
            "GET", "/ns", params={"limit": 1}, call_timeout=SEARCH, missing=None
        )
        return answer is not None

    async def search(self, space: str, query: str, limit: int) -> Any:
        """Return the answer to a search. A space that doesn't exist has no results."""
        request = {"query": query, "searchMode": self._options.search_mode, "limit": limit}
        return await self._http.call(
            "POST",
            f"/ns/{segment(space)}/search",
            request,
            call_timeout=SEARCH,
            is_repeatable=True,
            missing={"results": []},
        )

    async def add(self, space: str, item: SyncItem) -> Any:
        """Store an item as a document."""
        document = {
            "content": _content_of(item),
            "id": item.key,
            "metadata": _metadata_of(item),
            "date": item.at.isoformat(),
            "dreaming": self._options.dreaming,
        }
        return await self._http.call("POST", f"/ns/{segment(space)}/document", document)

    async def load_document(self, space: str, key: str) -> Json | None:
        """Return the document with our key, or None."""
        path = f"/ns/{segment(space)}/document/{segment(key)}"
        answer = await self._http.call("GET", path, missing=None)
        return None if answer is None else _check_document(answer)

    async def delete_document(self, space: str, document_id: str) -> None:
        request = {"ids": [document_id]}
        path = f"/ns/{segment(space)}/document"
        await self._http.call("DELETE", path, request, missing=None)

    async def forget_memory(self, space: str, memory_id: str) -> bool:
        """Delete a memory. Returns False if there is no such memory."""
        request = {"ids": [memory_id]}
        path = f"/ns/{segment(space)}/memories"
        answer = await self._http.call("DELETE", path, request, missing={"matches": []})
        return memory_id in [text_of(match, "id") for match in objects(answer, "matches")]

    async def load_profile(self, space: str) -> Any:
        path = f"/ns/{segment(space)}/profile"
        return await self._http.call(
            "POST", path, {}, call_timeout=SEARCH, is_repeatable=True, missing=None
        )


class _TagDialect(_NamespaceDialect):
    """Calls a server that supports the dialect `v4`."""

    name = "v4"

    async def is_spoken(self, unused_space: str) -> bool:
        """Return whether the server supports this dialect.

        To find out, this lists documents by tag, which only such a server can do.
        """
        request = {"containerTags": [unused_space], "limit": 1}
        answer = await self._http.call(
            "POST",
            "/v3/documents/list",
            request,
            call_timeout=SEARCH,
            is_repeatable=True,
            missing=None,
        )
        return answer is not None

    async def search(self, space: str, query: str, limit: int) -> Any:
        """Return the answer to a search in a container tag."""
        request = {
            "q": query,
            "containerTag": space,
            "searchMode": self._options.search_mode,
            "limit": limit,
        }
        return await self._http.call(
            "POST", "/v4/search", request, call_timeout=SEARCH, is_repeatable=True
        )

    async def add(self, space: str, item: SyncItem) -> Any:
        """Store an item as a document."""
        document = {
            "content": _content_of(item),
            "containerTag": space,
            "customId": item.key,
            "metadata": _metadata_of(item),
            "dreaming": self._options.dreaming,
        }
        return await self._http.call("POST", "/v3/documents", document)

    async def load_document(self, space: str, key: str) -> Json | None:
        """Return the document with our key, or None.

        Some servers don't accept our key as the id of a document. So the id is looked up in the
        list of documents first. The document itself is then loaded, because the list doesn't
        contain its status.
        """
        document_id = await self._find_document_id(space, key)
        if document_id is None:
            return None
        path = f"/v3/documents/{segment(document_id)}"
        answer = await self._http.call("GET", path, missing=None)
        return None if answer is None else _check_document(answer)

    async def _find_document_id(self, space: str, key: str) -> str | None:
        """Return the id of the document with our key from the list of documents, or None.

        At most `MAX_PAGES` pages of the list are searched.
        """
        for page in range(1, MAX_PAGES + 1):
            request = {
                "containerTags": [space],
                "filters": {"AND": [{"key": KEY, "value": key}]},
                "limit": PAGE_SIZE,
                "page": page,
            }
            answer = await self._http.call(
                "POST", "/v3/documents/list", request, is_repeatable=True
            )
            documents = objects(answer, "memories")
            for document in documents:
                if text_of(document, "customId") == key:
                    return text_of(document, "id")
            if len(documents) < PAGE_SIZE:
                break
        return None

    async def delete_document(self, space: str, document_id: str) -> None:
        await self._http.call("DELETE", f"/v3/documents/{segment(document_id)}", missing=None)

    async def forget_memory(self, space: str, memory_id: str) -> bool:
        request = {"containerTag": space, "id": memory_id}
        answer = await self._http.call("DELETE", "/v4/memories", request, missing=None)
        return isinstance(answer, dict) and answer.get("forgotten") is True

    async def load_profile(self, space: str) -> Any:
        request = {"containerTag": space}
        return await self._http.call(
            "POST", "/v4/profile", request, call_timeout=SEARCH, is_repeatable=True, missing=None
        )


DIALECTS: dict[str, type[_NamespaceDialect]] = {
    dialect.name: dialect for dialect in (_NamespaceDialect, _TagDialect)
}


def _check_document(answer: Any) -> Json:
    """Return the document in an answer. Raises DeliveryError if the answer has no id."""
    if not text_of(answer, "id"):
        raise DeliveryError("service_bad_answer", name="supermemory")
    return dict(answer)


def _content_of(item: SyncItem) -> str:
    """Return the text of an item. A text without a space gets a prefix, such as "note: ".

    A text without a space may be a URL. Without the prefix, the service would open the URL and
    store the page.
    """
    return item.text if " " in item.text else f"{item.kind}: {item.text}"


def _metadata_of(item: SyncItem) -> Json:
    return {KEY: item.key, SAID_AT: item.at.isoformat()}


def _date_of(result: Json) -> str:
    said_at = text_of(result.get("metadata"), SAID_AT)
    return said_at or text_of(result.get("system"), "updatedAt") or text_of(result, "updatedAt")
