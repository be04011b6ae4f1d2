"""Use mem0: its platform, your own server, or its library in this process with Qdrant in a folder.

mem0's own model derives memories from a turn. On the platform, this happens some time later. Mneme
finds the memories of an item by the item's key, which is in their metadata. The library needs the
extra `mneme-gateway[mem0]`, and only one process may use its folder.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from config.files import Secret
from config.variables import export_variables
from core.errors import ConfigError, DeliveryError, NotReadyError, Sentence
from core.guard.tool_definitions import ToolArguments, build_tool
from core.memory.http import SEARCH, JsonService, number_of, objects, segment, text_of
from core.memory.model_server import Embedder, EmbedderOptions, library_version
from core.memory.service import (
    PROMPT_PACKAGE,
    Entry,
    RemoteMemory,
    RemoteService,
    SyncItem,
    clean,
    describe_server,
    setup_option,
)
from core.types import Effect, Json, Tool, ToolContext

# The field in the metadata of a memory for the key of the item that it was derived from.
KEY = "mneme"
# The prefix of remote ids that name an event: work that the platform hasn't finished yet.
EVENT = "event:"
PAGE_SIZE = 100
MAX_PAGES = 100
PACKAGE = "mem0ai"
DEPLOYMENTS = ("platform", "self_hosted", "embedded")
# The timeout of calls to the models of the library.
MODEL_TIMEOUT_S = 20.0


@dataclass(frozen=True, kw_only=True)
class Options(EmbedderOptions):
    deployment: str = field(metadata={"help": "platform, self_hosted or embedded"})
    url: str = setup_option("https://api.mem0.ai", "where it listens, if self_hosted")
    key: Secret = setup_option(Secret(""), "the key of the platform or the server")
    infer: bool = field(
        default=True, metadata={"help": "whether its model derives facts from a turn"}
    )
    llm_url: str = field(
        default="", metadata={"help": "embedded: an OpenAI-compatible server for its model"}
    )
    llm_model: str = field(default="gpt-5-mini", metadata={"help": "embedded: the model"})
    embedder_url: str = field(
        default="", metadata={"help": "embedded: the server for embeddings, if it's another one"}
    )


class _Update(ToolArguments):
    memory_id: str
    text: str = Field(min_length=1, max_length=2_000)


class Mem0(RemoteService):
    name = "mem0"
    options = Options
    search_tool = "mem0_search"
    add_tool = "mem0_add"
    forget_tool = "mem0_delete"

    def __init__(self, options: Options) -> None:
        """Choose the engine for the deployment. Raises ConfigError if an option is invalid."""
        super().__init__(options)
        self._infer = options.infer
        self._check_choice("deployment", options.deployment, DEPLOYMENTS)
        self._engine: _ServerEngine | _LibraryEngine
        if options.deployment == "embedded":
            self._engine = _LibraryEngine(options)
        else:
            self._engine = _ServerEngine(options)

    async def initialize(self, folder: Path) -> None:
        await super().initialize(folder)
        await self._engine.open(folder)

    async def shutdown(self) -> None:
        await self._engine.close()

    async def probe(self) -> Sentence:
        return await self._engine.describe()

    async def find(self, space: str, query: str, limit: int) -> Sequence[RemoteMemory]:
        """Return the memories of the space that match the query, in mem0's order."""
        memories = []
        for result in objects(await self._engine.search(space, query, limit), "results"):
            text = text_of(result, "memory")
            if text and _belongs_to(space, result):
                memory = RemoteMemory(
                    id=text_of(result, "id"),
                    text=text,
                    at=_date_of(result),
                    score=number_of(result, "score"),
                )
                memories.append(memory)
        return memories

    async def keep(self, space: str, item: SyncItem) -> Sequence[str]:
        """Store an item, and return the ids of its memories.

        If the platform derives the memories later, the id of that event is returned instead.
        """
        if item.is_retry:
            existing_ids = await self._find_ids(space, item.key)
            if existing_ids:
                return existing_ids
        # Notes, and texts that the model adds with a tool, are stored unchanged.
        infer = self._infer and item.kind == "turn"
        answer = await self._engine.add(space, item, infer)
        event = text_of(answer, "event_id")
        if event:
            return [EVENT + event]
        ids = [text_of(result, "id") for result in objects(answer, "results")]
        return [memory_id for memory_id in ids if memory_id]

    async def erase(self, entry: Entry) -> None:
        await self._delete_items(entry)

    async def holds(self, entry: Entry) -> bool:
        return bool(await self._find_ids(entry.space, entry.key))

    async def erase_all(self, entries: Sequence[Entry]) -> None:
        """Erase all entries together, so that the memories of the space are listed only once.

        Raises DeliveryError if mem0 still returns memories of the entries afterwards.
        """
        await self._delete_items(*entries)
        if await self._find_ids(entries[0].space, *(entry.key for entry in entries)):
            raise DeliveryError("service_keeps_text", name=self.name)
        for entry in entries:
            self.record.drop(entry.key)

    async def _delete_items(self, *entries: Entry) -> None:
        """Delete the memories of the entries.

        Raises DeliveryError while an event is pending, because its memories would appear only after
        the deletion.
        """
        if isinstance(self._engine, _ServerEngine):
            for entry in entries:
                for remote_id in entry.remote or ():
                    if not remote_id.startswith(EVENT):
                        continue
                    if await self._engine.is_pending(remote_id.removeprefix(EVENT)):
                        raise NotReadyError(
                            "service_not_processed", name=self.name, retry_after_s=5.0
                        )
        keys = [entry.key for entry in entries]
        for memory_id in await self._find_ids(entries[0].space, *keys):
            await self._engine.delete(memory_id)

    async def tools(self) -> Sequence[Tool]:
        update = build_tool("mem0_update", _Update, self._run_update, PROMPT_PACKAGE, Effect.CHANGE)
        return [*await super().tools(), update]

    async def _run_update(self, arguments: _Update, context: ToolContext) -> str:
        """Change the text of a memory that the person may see."""

        async def update(space: str, memory_id: str) -> bool:
            if not await self._is_in_space(memory_id, space):
                return False
            await self._engine.update(memory_id, clean(arguments.text))
            return True

        await self.change(arguments.memory_id, context, update)
        return "mem0 has changed it."

    async def take_out(self, space: str, memory_id: str) -> bool:
        if not await self._is_in_space(memory_id, space):
            return False
        await self._engine.delete(memory_id)
        return True

    async def _is_in_space(self, memory_id: str, space: str) -> bool:
        return text_of(await self._engine.get(memory_id), "user_id") == space

    async def _find_ids(self, space: str, *keys: str) -> list[str]:
        """Return the ids of all memories that were derived from the items with these keys."""
        ids = []
        for memory in await self._engine.list_memories(space):
            has_key = text_of(memory.get("metadata"), KEY) in keys
            if has_key and _belongs_to(space, memory):
                ids.append(text_of(memory, "id"))
        return ids


class _ServerEngine:
    """Calls the platform or your own server.

    The two differ in their paths and in the header for the key.
    """

    def __init__(self, options: Options) -> None:
        """Check the options of the deployment, and prepare the header with the key.

        Raises ConfigError if the key of the platform or the URL of the server is missing.
        """
        self._is_platform = options.deployment == "platform"
        key = options.key.value
        if self._is_platform and not key:
            raise ConfigError("memory_needs_key", name="mem0", variable="MEM0_API_KEY")
        if not self._is_platform and options.url == Options.url:
            raise ConfigError("memory_needs_url", name="mem0")
        headers = {}
        if key:
            headers = {"Authorization": f"Token {key}"} if self._is_platform else {"X-API-Key": key}
        self.http = JsonService("mem0", options.url, headers)

    async def open(self, folder: Path) -> None:
        """Do nothing: a server needs no folder."""

    async def close(self) -> None:
        await self.http.close()

    async def describe(self) -> Sentence:
        """Return a description of the server for the owner, after checking the server and the key.

        Raises DeliveryError if the server doesn't answer as expected.
        """
        if not self._is_platform:
            await self.list_memories("mneme-nobody")
            return Sentence("probe_mem0_server", {"place": describe_server(self.http)})
        answer = await self.http.call("GET", "/v1/ping/", call_timeout=SEARCH)
        if not text_of(answer, "org_id"):
            raise DeliveryError("service_is_other", name="mem0")
        return Sentence("probe_mem0_platform", {"project": text_of(answer, "project_id")})

    async def search(self, space: str, query: str, limit: int) -> Any:
        request = {"query": query, "filters": {"user_id": space}, "top_k": limit}
        path = "/v3/memories/search/" if self._is_platform else "/search"
        return await self.http.call("POST", path, request, call_timeout=SEARCH, is_repeatable=True)

    async def add(self, space: str, item: SyncItem, infer: bool) -> Any:
        """Send an item and return the server's answer.

        With `infer`, mem0's model derives memories from the item.
        """
        request: dict[str, Any] = {
            **_messages_of(item),
            "user_id": space,
            "infer": infer,
            "metadata": {KEY: item.key},
        }
        if self._is_platform:
            request["timestamp"] = int(item.at.timestamp())
        path = "/v3/memories/add/" if self._is_platform else "/memories"
        return await self.http.call("POST", path, request)

    async def list_memories(self, space: str) -> Sequence[Json]:
        if self._is_platform:
            return await self._list_platform_memories(space)
        answer = await self.http.call(
            "GET", "/memories", params={"user_id": space, "top_k": PAGE_SIZE * MAX_PAGES}
        )
        return objects(answer, "results")

    async def _list_platform_memories(self, space: str) -> Sequence[Json]:
        """Return the memories on the first `MAX_PAGES` pages of a space."""
        memories: list[Json] = []
        for page in range(1, MAX_PAGES + 1):
            answer = await self.http.call(
                "POST",
                "/v3/memories/",
                {"filters": {"user_id": space}},
                params={"page": page, "page_size": PAGE_SIZE},
                is_repeatable=True,
            )
            memories += objects(answer, "results")
            if not answer.get("next"):
                break
        return memories

    async def get(self, memory_id: str) -> Any:
        return await self.http.call("GET", self._path_of(memory_id), missing=None)

    async def update(self, memory_id: str, text: str) -> None:
        await self.http.call("PUT", self._path_of(memory_id), {"text": text})

    async def delete(self, memory_id: str) -> None:
        await self.http.call("DELETE", self._path_of(memory_id), missing=None)

    async def is_pending(self, event: str) -> bool:
        answer = await self.http.call("GET", f"/v1/event/{segment(event)}/", missing=None)
        return text_of(answer, "status").upper() in ("PENDING", "RUNNING")

    def _path_of(self, memory_id: str) -> str:
        path_segment = segment(memory_id)
        return f"/v1/memories/{path_segment}/" if self._is_platform else f"/memories/{path_segment}"


class _LibraryEngine:
    """Calls mem0's library in this process.

    The library blocks, so each call runs in a thread. The call continues there if its caller is
    cancelled. `close` waits for all calls, because SQLite crashes the process if a database is
    closed while another thread writes to it.
    """

    def __init__(self, options: Options) -> None:
        """Check the options.

        Raises ConfigError if an option is missing or the library isn't installed.
        """
        if not options.llm_url and not options.embedder_url:
            raise ConfigError("memory_needs_model", name="mem0")
        if library_version(PACKAGE) is None:
            raise ConfigError(
                "memory_needs_package",
                name="mem0",
                library="mem0ai",
                command='pip install "mneme-gateway[mem0]"',
            )
        self._options = options
        # Checks the server for `describe`. The library makes its own requests.
        self._embedder = Embedder("mem0", options, options.llm_url)
        self._memory: Any = None
        self._running_calls: set[asyncio.Task[Any]] = set()

    async def open(self, folder: Path) -> None:
        self._memory = await asyncio.to_thread(self._create_memory, folder)

    def _create_memory(self, folder: Path) -> Any:
        """Import the library and open its store in the folder."""
        export_variables({"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "mem0")})
        logging.getLogger("mem0").setLevel(logging.CRITICAL)
        from mem0 import Memory

        memory = Memory.from_config(self._build_config(folder))
        for model in (memory.llm, memory.embedding_model):
            # Without a timeout, a call that hangs in its thread would keep the process from ending.
            model.client = model.client.with_options(timeout=MODEL_TIMEOUT_S, max_retries=0)
        return memory

    def _build_config(self, folder: Path) -> dict[str, Any]:
        """Return the configuration of the library: store, embeddings and model."""
        options = self._options
        url = options.llm_url or options.embedder_url
        key = options.key.value or "none"
        store = {
            "path": str(folder / "qdrant"),
            "on_disk": True,
            "collection_name": "mneme",
            "embedding_model_dims": options.embedder_dims,
        }
        embedder = {
            "openai_base_url": options.embedder_url or url,
            "model": options.embedder_model,
            "api_key": key,
            "embedding_dims": options.embedder_dims,
        }
        llm = {"openai_base_url": url, "model": options.llm_model, "api_key": key}
        return {
            "vector_store": {"provider": "qdrant", "config": store},
            "embedder": {"provider": "openai", "config": embedder},
            "llm": {"provider": "openai", "config": llm},
            # The history would contain erased memories, so it isn't written to disk.
            "history_db_path": ":memory:",
        }

    async def close(self) -> None:
        await self._embedder.close()
        if self._memory is None:
            return
        if self._running_calls:
            await asyncio.wait(self._running_calls)
        for part in (self._memory.vector_store, self._memory.llm, self._memory.embedding_model):
            await asyncio.to_thread(part.client.close)

    async def describe(self) -> Sentence:
        """Return a description of the library for the owner.

        A request for one embedding checks that the server answers, accepts the key and has the
        model. Raises ConfigError if the embedding has another size than configured.
        """
        await self._embedder.embed(["hello"])
        values = {"version": library_version(PACKAGE), "model": self._options.embedder_model}
        return Sentence("probe_mem0_library", values)

    async def search(self, space: str, query: str, limit: int) -> Any:
        return await self._run(self._memory.search, query, filters={"user_id": space}, top_k=limit)

    async def add(self, space: str, item: SyncItem, infer: bool) -> Any:
        metadata = {KEY: item.key, "said_at": item.at.isoformat()}
        return await self._run(
            self._memory.add, **_messages_of(item), user_id=space, metadata=metadata, infer=infer
        )

    async def list_memories(self, space: str) -> Sequence[Json]:
        answer = await self._run(
            self._memory.get_all, filters={"user_id": space}, top_k=PAGE_SIZE * MAX_PAGES
        )
        return objects(answer, "results")

    async def get(self, memory_id: str) -> Any:
        return await self._run(self._memory.get, memory_id)

    async def update(self, memory_id: str, text: str) -> None:
        await self._run(self._memory.update, memory_id, text=text)

    async def delete(self, memory_id: str) -> None:
        if await self.get(memory_id) is not None:
            await self._run(self._memory.delete, memory_id)
        # The library stores the last turns in this database, and would derive the deleted memory
        # from them again. So the database is replaced with an empty one.
        self._memory.db = type(self._memory.db)(":memory:")

    async def _run(self, call: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        """Run a call in a thread and return its result.

        If the caller is cancelled, the call continues.
        """
        task = asyncio.create_task(asyncio.to_thread(call, *args, **kwargs))
        self._running_calls.add(task)
        task.add_done_callback(self._finish_call)
        return await asyncio.shield(task)

    def _finish_call(self, task: asyncio.Task[Any]) -> None:
        """Remove a finished task from the running ones, and mark its error as handled."""
        self._running_calls.discard(task)
        if not task.cancelled():
            # If the caller was cancelled, no one awaits the task, and asyncio would log its error.
            task.exception()


def _messages_of(item: SyncItem) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": text} for role, text in item.lines]}


def _belongs_to(space: str, memory: Json) -> bool:
    """Return whether a memory belongs to this space or names no space.

    The check is needed because a server may ignore our filter.
    """
    return text_of(memory, "user_id") in ("", space)


def _date_of(memory: Json) -> str:
    return text_of(memory.get("metadata"), "said_at") or text_of(memory, "updated_at", "created_at")
