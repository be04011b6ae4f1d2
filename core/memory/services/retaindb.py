"""RetainDB: its cloud, or RetainDB Local. A scope is a user of one project, a turn a memory with a session of its own.

It takes no key with what it is told, so the session is one: by it a memory is found again whose id is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from core.errors import ConfigError, DeliveryError
from core.guard.guard import Arguments, service_lines, tool_of
from core.memory.http import SEARCH, number_of, objects, segment, text_of
from core.memory.service import PROMPTS, AskedOptions, Entry, Found, ServerOptions, ServerService, Told
from core.types import Json, Tool, ToolContext

CLOUD = "https://api.retaindb.com"
TYPES = {"turn": "event", "note": "factual", "tool": "factual"}
IMPORTANCE = {"turn": 0.4, "note": 0.8, "tool": 0.7}


@dataclass(frozen=True, kw_only=True)
class Options(ServerOptions, AskedOptions):
    url: str = field(
        default=CLOUD, metadata={"help": "the cloud, or where Local listens: http://127.0.0.1:3111", "ask": True}
    )
    project: str = field(default="mneme", metadata={"help": "the project in which memories are kept"})


class RetainDb(ServerService):
    name = "retaindb"
    options = Options
    cloud = CLOUD
    search_tool, add_tool, ask_tool = "retaindb_search", "retaindb_remember", "retaindb_context"
    forget_tool = "retaindb_forget"

    def __init__(self, options: Options) -> None:
        super().__init__(options, "X-API-Key")
        self._project = options.project.strip()
        if not self._project:
            raise ConfigError("project of retaindb should be a name.")

    async def probe(self) -> str:
        # Of somebody whom it does not know it may say that there is no profile, and so does what is no RetainDB.
        await self.find(f"{self._namespace}-nobody", "hello", 1)
        return f"retaindb, {self.where}, which answers; search, profile, project {self._project}"

    async def find(self, space: str, query: str, limit: int) -> Sequence[Found]:
        asked = {"query": query, "user_id": space, "project": self._project, "top_k": limit, "include_pending": True}
        answer = await self._http.call("POST", "/v1/memory/search", asked, patience=SEARCH, is_repeatable=True)
        found = []
        for one in objects(answer, "results"):
            memory = _memory(one)
            # A server that asks nobody who they are may give another's.
            if text_of(memory, "user_id") in ("", space) and (text := text_of(memory, "content")):
                at = text_of(memory, "created_at", "createdAt")
                found.append(Found(id=text_of(memory, "id"), text=text, at=at, score=number_of(one, "score")))
        return found[:limit]

    async def keep(self, space: str, told: Told) -> Sequence[str]:
        if told.is_again and (held := await self._held(space, told.key, told.text)):
            return held
        body = {
            "project": self._project,
            "user_id": space,
            "session_id": told.key,
            "content": told.text,
            "memory_type": TYPES[told.kind],
            "importance": IMPORTANCE[told.kind],
            "write_mode": "sync",
        }
        answer = await self._http.call("POST", "/v1/memory", body)
        if memory_id := text_of(answer, "memory_id", "id") or text_of(_memory(answer), "id"):
            return [memory_id]
        raise DeliveryError("retaindb does not say that it has kept it")

    async def erase(self, entry: Entry) -> None:
        for memory_id in dict.fromkeys([*(entry.remote or ()), *await self._held(entry.space, entry.key)]):
            await self._http.call("DELETE", f"/v1/memory/{segment(memory_id)}", missing=None)

    async def holds(self, entry: Entry) -> bool:
        ids = {text_of(one, "id") for one in await self._memories(entry.space)}
        return not ids.isdisjoint(entry.remote or ()) or bool(await self._held(entry.space, entry.key))

    async def tools(self) -> Sequence[Tool]:
        return [*await super().tools(), tool_of("retaindb_profile", Arguments, self._profile, PROMPTS)]

    async def _profile(self, _: Arguments, context: ToolContext) -> str:
        """What it knows of whoever asks, the latest last."""
        known = [one for scope in sorted(context.scopes) for one in await self._memories(self.space(scope))]
        lines = service_lines(self.name, [f"{text_of(one, 'id')} {text_of(one, 'content')}" for one in known])
        return "\n".join(lines) or "It has nothing to say."

    async def ask(self, space: str, query: str) -> str:
        body = {"project": self._project, "user_id": space, "query": query}
        more = {"include_memories": True, "max_tokens": 1_000}
        return text_of(await self._http.call("POST", "/v1/context/query", body | more, is_repeatable=True), "context")

    async def take_out(self, space: str, memory_id: str) -> bool:
        is_there = memory_id in [text_of(one, "id") for one in await self._memories(space)]
        if is_there:
            await self._http.call("DELETE", f"/v1/memory/{segment(memory_id)}", missing=None)
        return is_there

    async def _held(self, space: str, key: str, text: str | None = None) -> list[str]:
        """Ids of what was told with this key; where the server does not repeat sessions, with this text."""
        return [
            text_of(one, "id")
            for one in await self._memories(space)
            if (session := text_of(one, "session_id", "sessionId")) == key
            or (not session and text is not None and text_of(one, "content") == text)
        ]

    async def _memories(self, space: str) -> list[Json]:
        params = {"project": self._project, "include_pending": "true"}
        path = f"/v1/memory/profile/{segment(space)}"
        answer = await self._http.call("GET", path, params=params, missing={"memories": []})
        return [_memory(one) for one in objects(answer, "memories")]


def _memory(one: Json) -> Json:
    """It stands in a field of its own, or in the object itself."""
    inner = one.get("memory") if isinstance(one, dict) else None
    return inner if isinstance(inner, dict) else one
