"""Use RetainDB, in its cloud or as RetainDB Local.

Each scope is a user of one project, and each turn is a memory in its own session. RetainDB doesn't
accept our key as the id of a memory. So the key is the id of the session, and Mneme finds a memory
with an unknown id by its session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from core.errors import ConfigError, DeliveryError, Sentence
from core.guard.guard import clean_service_lines
from core.guard.tool_definitions import ToolArguments, build_tool
from core.memory.http import SEARCH, number_of, objects, segment, text_of
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

CLOUD = "https://api.retaindb.com"
TYPES = {"turn": "event", "note": "factual", "tool": "factual"}
IMPORTANCE = {"turn": 0.4, "note": 0.8, "tool": 0.7}


@dataclass(frozen=True, kw_only=True)
class Options(ServerOptions, ReflectionOptions):
    url: str = setup_option(
        CLOUD, "the cloud, or the address of RetainDB Local, like http://127.0.0.1:3111"
    )
    project: str = field(
        default="mneme", metadata={"help": "the project in which memories are stored"}
    )


class RetainDb(ServerService):
    name = "retaindb"
    options = Options
    cloud = CLOUD
    search_tool = "retaindb_search"
    add_tool = "retaindb_remember"
    ask_tool = "retaindb_context"
    forget_tool = "retaindb_forget"

    def __init__(self, options: Options) -> None:
        super().__init__(options, "X-API-Key")
        self._project = options.project.strip()
        if not self._project:
            raise ConfigError("memory_option_name", name=self.name, option="project")

    async def probe(self) -> Sentence:
        """Return a description of the server, after checking with a search that it's RetainDB."""
        # Loading the profile of an unknown user wouldn't prove anything: RetainDB answers with 404,
        # and so would any other server.
        await self.find(f"{self._namespace}-nobody", "hello", 1)
        values = {"place": self.location, "project": self._project}
        return Sentence("probe_retaindb", values)

    async def find(self, space: str, query: str, limit: int) -> Sequence[RemoteMemory]:
        """Return the memories of the space that match the query, in RetainDB's order."""
        request = {
            "query": query,
            "user_id": space,
            "project": self._project,
            "top_k": limit,
            "include_pending": True,
        }
        answer = await self._http.call(
            "POST", "/v1/memory/search", request, call_timeout=SEARCH, is_repeatable=True
        )
        memories = []
        for result in objects(answer, "results"):
            memory = _unwrap(result)
            text = text_of(memory, "content")
            # A server without keys may return memories of other users.
            is_own = text_of(memory, "user_id") in ("", space)
            if text and is_own:
                memories.append(
                    RemoteMemory(
                        id=text_of(memory, "id"),
                        text=text,
                        at=text_of(memory, "created_at", "createdAt"),
                        score=number_of(result, "score"),
                    )
                )
        return memories[:limit]

    async def keep(self, space: str, item: SyncItem) -> Sequence[str]:
        """Store an item as one memory, and return the id of the memory.

        A retry stores the item only if the server doesn't have it yet. Raises DeliveryError if the
        server returns no id.
        """
        if item.is_retry:
            existing_ids = await self._find_ids(space, item.key, item.text)
            if existing_ids:
                return existing_ids
        request = {
            "project": self._project,
            "user_id": space,
            "session_id": item.key,
            "content": item.text,
            "memory_type": TYPES[item.kind],
            "importance": IMPORTANCE[item.kind],
            "write_mode": "sync",
        }
        answer = await self._http.call("POST", "/v1/memory", request)
        memory_id = text_of(answer, "memory_id", "id") or text_of(_unwrap(answer), "id")
        if not memory_id:
            raise DeliveryError("service_not_confirmed", name=self.name)
        return [memory_id]

    async def erase(self, entry: Entry) -> None:
        ids = [*(entry.remote or ()), *await self._find_ids(entry.space, entry.key)]
        for memory_id in dict.fromkeys(ids):
            await self._http.call("DELETE", f"/v1/memory/{segment(memory_id)}", missing=None)

    async def holds(self, entry: Entry) -> bool:
        ids = {text_of(memory, "id") for memory in await self._load_memories(entry.space)}
        if not ids.isdisjoint(entry.remote or ()):
            return True
        return bool(await self._find_ids(entry.space, entry.key))

    async def tools(self) -> Sequence[Tool]:
        profile = build_tool(
            "retaindb_profile", ToolArguments, self._run_profile, PROMPT_PACKAGE, Effect.READ
        )
        return [*await super().tools(), profile]

    async def _run_profile(self, _: ToolArguments, context: ToolContext) -> str:
        """List all memories that the person may see, each with its id."""
        lines = []
        for scope in sorted(context.scopes):
            for memory in await self._load_memories(self.space(scope)):
                lines.append(f"{text_of(memory, 'id')} {text_of(memory, 'content')}")
        return "\n".join(clean_service_lines(self.name, lines)) or "It has nothing to say."

    async def ask(self, space: str, query: str) -> str:
        """Return the service's summary of the memories that concern a question."""
        request = {
            "project": self._project,
            "user_id": space,
            "query": query,
            "include_memories": True,
            "max_tokens": 1_000,
        }
        answer = await self._http.call("POST", "/v1/context/query", request, is_repeatable=True)
        return text_of(answer, "context")

    async def take_out(self, space: str, memory_id: str) -> bool:
        ids = [text_of(memory, "id") for memory in await self._load_memories(space)]
        if memory_id not in ids:
            return False
        await self._http.call("DELETE", f"/v1/memory/{segment(memory_id)}", missing=None)
        return True

    async def _find_ids(self, space: str, key: str, text: str | None = None) -> list[str]:
        """Return the ids of the memories in the session `key`.

        Some servers return memories without their session. Such a memory matches if its text equals
        `text`.
        """
        ids = []
        for memory in await self._load_memories(space):
            session = text_of(memory, "session_id", "sessionId")
            if session:
                is_match = session == key
            else:
                is_match = text is not None and text_of(memory, "content") == text
            if is_match:
                ids.append(text_of(memory, "id"))
        return ids

    async def _load_memories(self, space: str) -> list[Json]:
        """Return all memories of a space."""
        answer = await self._http.call(
            "GET",
            f"/v1/memory/profile/{segment(space)}",
            params={"project": self._project, "include_pending": "true"},
            missing={"memories": []},
        )
        return [_unwrap(result) for result in objects(answer, "memories")]


def _unwrap(result: Json) -> Json:
    """Return the field `memory` of a result if it's an object, otherwise the result itself."""
    memory = result.get("memory") if isinstance(result, dict) else None
    return memory if isinstance(memory, dict) else result
