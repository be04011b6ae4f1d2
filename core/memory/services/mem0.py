"""mem0: its platform, a server of one's own, or its library in this process with Qdrant in a folder.

mem0 makes memories of a turn by a model of its own, on the platform some time later, so they are found again by the key
in their metadata. Its library needs the extra `mneme-gateway[mem0]` and has its folder for itself: one process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic import Field

from config.files import Secret
from config.settings import hand_over
from core.errors import ConfigError, DeliveryError
from core.guard.guard import Arguments, tool_of
from core.memory.http import SEARCH, JsonService, number_of, objects, segment, text_of
from core.memory.service import PROMPTS, Entry, Found, RemoteService, ServiceOptions, Told, clean
from core.types import Json, Tool, ToolContext

KEY = "mneme"
"""In the metadata of a memory: of what it was made."""
EVENT = "event:"
"""Begins what the platform calls work that is not done yet."""
PAGE, PAGES = 100, 100
PATIENCE_S = 20.0
"""Of a call of the library's models."""


@dataclass(frozen=True, kw_only=True)
class Options(ServiceOptions):
    deployment: str = field(metadata={"help": "platform, self_hosted or embedded"})
    url: str = field(default="https://api.mem0.ai", metadata={"help": "where it listens, if self_hosted", "ask": True})
    key: Secret = field(default=Secret(""), metadata={"help": "the key of the platform or the server", "ask": True})
    infer: bool = field(default=True, metadata={"help": "whether its model reads facts out of a turn"})
    llm_url: str = field(default="", metadata={"help": "embedded: an OpenAI-compatible server for its model"})
    llm_model: str = field(default="gpt-5-mini", metadata={"help": "embedded: the model"})
    embedder_url: str = field(default="", metadata={"help": "embedded: such a server for embeddings, if another"})
    embedder_model: str = field(default="text-embedding-3-small", metadata={"help": "embedded: the embedding model"})
    embedder_dims: int = field(default=1536, metadata={"help": "embedded: how many dimensions that has"})


class _Update(Arguments):
    memory_id: str
    text: str = Field(min_length=1, max_length=2_000)


class Mem0(RemoteService):
    name = "mem0"
    options = Options
    search_tool, add_tool, forget_tool = "mem0_search", "mem0_add", "mem0_delete"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._infer = options.infer
        if options.deployment not in ("platform", "self_hosted", "embedded"):
            raise ConfigError("deployment of mem0 should be platform, self_hosted or embedded.")
        self._engine = _Library(options) if options.deployment == "embedded" else _Remote(options)

    async def initialize(self, folder: Path) -> None:
        await super().initialize(folder)
        await self._engine.open(folder)

    async def shutdown(self) -> None:
        await self._engine.close()

    async def probe(self) -> str:
        return await self._engine.about()

    async def find(self, space: str, query: str, limit: int) -> Sequence[Found]:
        found = objects(await self._engine.search(space, query, limit), "results")
        return [
            Found(id=text_of(one, "id"), text=text, at=_since(one), score=number_of(one, "score"))
            for one in found
            if (text := text_of(one, "memory")) and _is_of(space, one)
        ]

    async def keep(self, space: str, told: Told) -> Sequence[str]:
        if told.is_again and (held := await self._held(space, told.key)):
            return held
        answer = await self._engine.add(space, told, self._infer and told.kind == "turn")
        if event := text_of(answer, "event_id"):
            return [EVENT + event]
        return [text_of(one, "id") for one in objects(answer, "results") if text_of(one, "id")]

    async def erase(self, entry: Entry) -> None:
        await self._take_out(entry)

    async def holds(self, entry: Entry) -> bool:
        return bool(await self._held(entry.space, entry.key))

    async def erase_all(self, entries: Sequence[Entry]) -> None:
        await self._take_out(*entries)
        if await self._held(entries[0].space, *(one.key for one in entries)):
            raise DeliveryError("mem0 still finds what it has erased")
        for entry in entries:
            self.record.drop(entry.key)

    async def _take_out(self, *entries: Entry) -> None:
        for event in [one for entry in entries for one in entry.remote or () if one.startswith(EVENT)]:
            if isinstance(self._engine, _Remote) and await self._engine.is_pending(event.removeprefix(EVENT)):
                raise DeliveryError("mem0 has not made memories of it yet", retry_after_s=5.0)
        for memory_id in await self._held(entries[0].space, *(one.key for one in entries)):
            await self._engine.delete(memory_id)

    async def tools(self) -> Sequence[Tool]:
        return [*await super().tools(), tool_of("mem0_update", _Update, self._update, PROMPTS)]

    async def _update(self, asked: _Update, context: ToolContext) -> str:
        async def update(space: str, memory_id: str) -> bool:
            if is_own := await self._has(space, memory_id):
                await self._engine.update(memory_id, clean(asked.text))
            return is_own

        await self.change(asked.memory_id, context, update)
        return "mem0 has changed it."

    async def take_out(self, space: str, memory_id: str) -> bool:
        if is_own := await self._has(space, memory_id):
            await self._engine.delete(memory_id)
        return is_own

    async def _has(self, space: str, memory_id: str) -> bool:
        return text_of(await self._engine.get(memory_id), "user_id") == space

    async def _held(self, space: str, *keys: str) -> list[str]:
        memories = await self._engine.memories(space)
        ours = [one for one in memories if text_of(one.get("metadata"), KEY) in keys and _is_of(space, one)]
        return [text_of(one, "id") for one in ours]


class _Remote:
    """The platform, or a server of one's own: other paths and another header for the same things."""

    def __init__(self, options: Options) -> None:
        self._is_platform = options.deployment == "platform"
        key = options.key.value
        if self._is_platform and not key:
            raise ConfigError("mem0 needs the key of the platform: set `key` to the variable that holds it.")
        if not self._is_platform and options.url == Options.url:
            raise ConfigError("mem0 needs the url of your server.")
        named = {"Authorization": f"Token {key}"} if self._is_platform else {"X-API-Key": key}
        self.http = JsonService("mem0", options.url, named if key else {})

    async def open(self, folder: Path) -> None:
        """It needs none."""

    async def close(self) -> None:
        await self.http.close()

    async def about(self) -> str:
        if not self._is_platform:
            await self.memories("mneme-nobody")
            return f"mem0, a server at {self.http.url.host}, which answers; it makes memories by its own model"
        answer = await self.http.call("GET", "/v1/ping/", patience=SEARCH)
        if not text_of(answer, "org_id"):
            raise DeliveryError("mem0 does not say whose the key is: is that its platform?")
        return f"mem0, the platform, project {text_of(answer, 'project_id')}; it makes memories some time after a turn"

    async def search(self, space: str, query: str, limit: int) -> Any:
        asked = {"query": query, "filters": {"user_id": space}, "top_k": limit}
        path = "/v3/memories/search/" if self._is_platform else "/search"
        return await self.http.call("POST", path, asked, patience=SEARCH, is_repeatable=True)

    async def add(self, space: str, told: Told, infer: bool) -> Any:
        body: dict[str, Any] = {**_messages(told), "user_id": space, "infer": infer, "metadata": {KEY: told.key}}
        if self._is_platform:
            body["timestamp"] = int(told.at.timestamp())
        return await self.http.call("POST", "/v3/memories/add/" if self._is_platform else "/memories", body)

    async def memories(self, space: str) -> Sequence[Json]:
        if not self._is_platform:
            params: Mapping[str, str | int] = {"user_id": space, "top_k": PAGE * PAGES}
            return objects(await self.http.call("GET", "/memories", params=params), "results")
        found: list[Json] = []
        for page in range(1, PAGES + 1):
            asked, params = {"filters": {"user_id": space}}, {"page": page, "page_size": PAGE}
            answer = await self.http.call("POST", "/v3/memories/", asked, params=params, is_repeatable=True)
            found += objects(answer, "results")
            if not answer.get("next"):
                break
        return found

    async def get(self, memory_id: str) -> Any:
        return await self.http.call("GET", self._path(memory_id), missing=None)

    async def update(self, memory_id: str, text: str) -> None:
        await self.http.call("PUT", self._path(memory_id), {"text": text})

    async def delete(self, memory_id: str) -> None:
        await self.http.call("DELETE", self._path(memory_id), missing=None)

    async def is_pending(self, event: str) -> bool:
        answer = await self.http.call("GET", f"/v1/event/{segment(event)}/", missing=None)
        return text_of(answer, "status").upper() in ("PENDING", "RUNNING")

    def _path(self, memory_id: str) -> str:
        one = segment(memory_id)
        return f"/v1/memories/{one}/" if self._is_platform else f"/memories/{one}"


class _Library:
    """mem0's own code in this process, which blocks: each call in a thread. One that nobody waits for any more goes on,
    and the files are closed after it: SQLite ends the process where it is closed while another thread writes."""

    def __init__(self, options: Options) -> None:
        if not options.llm_url and not options.embedder_url:
            raise ConfigError("mem0 needs llm_url: its library asks a model, and one for embeddings.")
        if _installed() is None:
            raise ConfigError('mem0 needs its library to be embedded: pip install "mneme-gateway[mem0]".')
        self._options = options
        self._memory: Any = None
        self._at_work: set[asyncio.Task[Any]] = set()

    async def open(self, folder: Path) -> None:
        given, dims = self._options, self._options.embedder_dims
        url, key = given.llm_url or given.embedder_url, given.key.value or "none"
        llm = {"openai_base_url": url, "model": given.llm_model, "api_key": key}
        embedder = {"openai_base_url": given.embedder_url or url, "model": given.embedder_model, "api_key": key}
        store = {"path": str(folder / "qdrant"), "on_disk": True, "collection_name": "mneme"}
        config = {
            "vector_store": {"provider": "qdrant", "config": store | {"embedding_model_dims": dims}},
            "embedder": {"provider": "openai", "config": embedder | {"embedding_dims": dims}},
            "llm": {"provider": "openai", "config": llm},
            # What it erases stays in its history: that is kept in memory only.
            "history_db_path": ":memory:",
        }

        def work() -> Any:
            hand_over({"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "mem0")})
            logging.getLogger("mem0").setLevel(logging.CRITICAL)
            from mem0 import Memory

            memory = Memory.from_config(config)
            for model in (memory.llm, memory.embedding_model):
                # A thread that hangs would hold up the end of the process.
                model.client = model.client.with_options(timeout=PATIENCE_S, max_retries=0)
            return memory

        self._memory = await asyncio.to_thread(work)

    async def close(self) -> None:
        if self._memory is not None:
            if self._at_work:
                await asyncio.wait(self._at_work)
            for held in (self._memory.vector_store, self._memory.llm, self._memory.embedding_model):
                await asyncio.to_thread(held.client.close)

    async def about(self) -> str:
        """Asks for one embedding, which shows whether the server is there, takes the key and has the model."""
        given = self._options
        asked = {"model": given.embedder_model, "input": ["hello"], "dimensions": given.embedder_dims}
        named = {"Authorization": f"Bearer {given.key.value}"} if given.key.value else {}
        server = JsonService("the server for mem0's embeddings", given.embedder_url or given.llm_url, named)
        try:
            answer = await server.call("POST", "/embeddings", asked, patience=SEARCH, is_repeatable=True)
        finally:
            await server.close()
        numbers = next(iter(objects(answer, "data")), {}).get("embedding")
        if not isinstance(numbers, list) or len(numbers) != given.embedder_dims:
            many = len(numbers) if isinstance(numbers, list) else "no"
            raise ConfigError(f"{given.embedder_model} makes embeddings of {many} numbers: set embedder_dims to that.")
        return f"mem0 {_installed()}, its library in this process, with a folder of its own; {given.embedder_model}"

    async def search(self, space: str, query: str, limit: int) -> Any:
        return await self._run(self._memory.search, query, filters={"user_id": space}, top_k=limit)

    async def add(self, space: str, told: Told, infer: bool) -> Any:
        marks = {KEY: told.key, "said_at": told.at.isoformat()}
        return await self._run(self._memory.add, **_messages(told), user_id=space, metadata=marks, infer=infer)

    async def memories(self, space: str) -> Sequence[Json]:
        found = await self._run(self._memory.get_all, filters={"user_id": space}, top_k=PAGE * PAGES)
        return objects(found, "results")

    async def get(self, memory_id: str) -> Any:
        return await self._run(self._memory.get, memory_id)

    async def update(self, memory_id: str, text: str) -> None:
        await self._run(self._memory.update, memory_id, text=text)

    async def delete(self, memory_id: str) -> None:
        if await self.get(memory_id) is not None:
            await self._run(self._memory.delete, memory_id)
        # The last turns, out of which it would read the same again.
        self._memory.db = type(self._memory.db)(":memory:")

    async def _run(self, call: Callable[..., Any], *given: object, **named: object) -> Any:
        work = asyncio.create_task(asyncio.to_thread(call, *given, **named))
        self._at_work.add(work)
        work.add_done_callback(self._ended)
        return await asyncio.shield(work)

    def _ended(self, work: asyncio.Task[Any]) -> None:
        self._at_work.discard(work)
        if not work.cancelled():
            # Looked at, also where nobody waits for it.
            work.exception()


def _installed() -> str | None:
    try:
        return version("mem0ai")
    except PackageNotFoundError:
        return None


def _messages(told: Told) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": text} for role, text in told.lines]}


def _is_of(space: str, one: Json) -> bool:
    """Whatever its filters do, what is another's is left alone."""
    return text_of(one, "user_id") in ("", space)


def _since(one: Json) -> str:
    return text_of(one.get("metadata"), "said_at") or text_of(one, "updated_at", "created_at")
