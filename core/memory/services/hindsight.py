"""Use Hindsight, in its cloud or on your own server (0.5 or later).

Each scope is a bank, and each turn is a document in the bank. The server answers at once.
Afterwards its own model derives facts from the document, and some time later observations from the
facts. A new document replaces an earlier one with the same id, so a retry stores nothing twice.
Deleting a document also deletes its facts and observations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from core.errors import ConfigError, DeliveryError, Sentence
from core.memory.http import SEARCH, objects, segment, text_of
from core.memory.service import (
    Entry,
    ReflectionOptions,
    RemoteMemory,
    ServerOptions,
    ServerService,
    SyncItem,
    setup_option,
)

CLOUD = "https://api.hindsight.vectorize.io"
# The types of memories: facts about the world, facts about an experience, and observations.
TYPES = ("world", "experience", "observation")
BUDGETS = ("low", "mid", "high")
CONTEXTS = {
    "turn": "a conversation",
    "note": "a note",
    "tool": "what the assistant was to keep",
}
# The prefix of remote ids that name an operation: work that the server does after its answer.
OPERATION = "operation:"
RUNNING_STATUSES = ("pending", "processing")


@dataclass(frozen=True, kw_only=True)
class Options(ServerOptions, ReflectionOptions):
    url: str = setup_option(
        CLOUD, "the cloud, or the address of your server, like http://127.0.0.1:8888"
    )
    recall_types: str = field(
        default=",".join(TYPES), metadata={"help": f"what is recalled: {', '.join(TYPES)}"}
    )
    recall_budget: str = field(
        default="low", metadata={"help": "how thoroughly it searches: low, mid or high"}
    )
    recall_max_tokens: int = field(
        default=2048, metadata={"help": "the maximum size of search results"}
    )
    retain_async: bool = field(
        default=True, metadata={"help": "whether it answers before it has derived facts"}
    )


class Hindsight(ServerService):
    name = "hindsight"
    options = Options
    cloud = CLOUD
    search_tool = "hindsight_recall"
    add_tool = "hindsight_retain"
    ask_tool = "hindsight_reflect"

    def __init__(self, options: Options) -> None:
        """Check the options for recall. Raises ConfigError if one is invalid."""
        super().__init__(options)
        self._options = options
        self._types = [name.strip() for name in options.recall_types.split(",") if name.strip()]
        if not self._types or not set(self._types) <= set(TYPES):
            raise ConfigError(
                "memory_choices", name=self.name, option="recall_types", choices=", ".join(TYPES)
            )
        self._check_choice("recall_budget", options.recall_budget, BUDGETS)

    async def probe(self) -> Sentence:
        """Return the version and the features of the server, after checking the key.

        Raises DeliveryError if the server isn't Hindsight or rejects the key.
        """
        answer = await self._http.call("GET", "/version", call_timeout=SEARCH)
        if not (version := text_of(answer, "api_version")):
            raise DeliveryError("service_is_other", name=self.name)
        # The server returns its version without a key, so a second call checks the key.
        unused_bank = _bank_path(f"{self._namespace}-nobody")
        await self._http.call(
            "GET",
            f"{unused_bank}/memories/list",
            params={"limit": 1},
            call_timeout=SEARCH,
            missing=None,
        )
        features = answer.get("features")
        has_observations = isinstance(features, dict) and features.get("observations") is True
        key = "probe_hindsight_observes" if has_observations else "probe_hindsight"
        return Sentence(key, {"version": version, "place": self.location})

    async def find(self, space: str, query: str, limit: int) -> Sequence[RemoteMemory]:
        """Return facts and observations from the bank of the space, best first."""
        request = {
            "query": query,
            "types": self._types,
            "budget": self._options.recall_budget,
            "max_tokens": self._options.recall_max_tokens,
        }
        answer = await self._http.call(
            "POST",
            f"{_bank_path(space)}/memories/recall",
            request,
            call_timeout=SEARCH,
            is_repeatable=True,
            missing={"results": []},
        )
        memories = [
            RemoteMemory(
                id=text_of(result, "id"),
                text=text_of(result, "text"),
                at=text_of(result, "occurred_start", "mentioned_at"),
            )
            for result in objects(answer, "results")
        ]
        return [memory for memory in memories if memory.text][:limit]

    async def keep(self, space: str, item: SyncItem) -> Sequence[str]:
        """Store an item as a document.

        Returns the id of the operation if the server will process the item later. Raises
        DeliveryError if the server doesn't confirm the document.
        """
        document = {
            "content": item.text,
            "document_id": item.key,
            "timestamp": item.at.isoformat(),
            "context": CONTEXTS[item.kind],
            "tags": [f"session:{item.session}"] if item.session else [],
        }
        request = {"items": [document], "async": self._options.retain_async}
        answer = await self._http.call(
            "POST", f"{_bank_path(space)}/memories", request, is_repeatable=True
        )
        if not isinstance(answer, dict) or answer.get("success") is not True:
            raise DeliveryError("service_not_confirmed", name=self.name)
        operation = text_of(answer, "operation_id")
        return [OPERATION + operation] if operation else []

    async def erase(self, entry: Entry) -> None:
        for remote_id in entry.remote or ():
            await self._delete_operation(entry.space, remote_id.removeprefix(OPERATION))
        await self._http.call("DELETE", _document_path(entry), missing=None)

    async def _delete_operation(self, space: str, operation: str) -> None:
        """Delete an operation, which still contains the text that it processed.

        Raises DeliveryError while the operation is running, because its facts would appear only
        after the deletion.
        """
        path = f"{_bank_path(space)}/operations/{segment(operation)}"
        status = text_of(await self._http.call("GET", path, missing=None), "status")
        if status in RUNNING_STATUSES:
            raise DeliveryError("service_not_processed", name=self.name, retry_after_s=5.0)
        await self._http.call("DELETE", f"{path}/delete", missing=None)

    async def holds(self, entry: Entry) -> bool:
        return await self._http.call("GET", _document_path(entry), missing=None) is not None

    async def ask(self, space: str, query: str) -> str:
        request = {"query": query, "budget": self._options.recall_budget}
        answer = await self._http.call(
            "POST", f"{_bank_path(space)}/reflect", request, is_repeatable=True, missing=None
        )
        return text_of(answer, "text")


def _bank_path(space: str) -> str:
    return f"/v1/default/banks/{segment(space)}"


def _document_path(entry: Entry) -> str:
    return f"{_bank_path(entry.space)}/documents/{segment(entry.key)}"
