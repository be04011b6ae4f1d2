"""Hindsight: its cloud, or a server of one's own (0.5 or later). A scope is a bank, and a turn a document in it.

The server's own model makes facts of what it is told after it has answered, and observations some time later. A
document is replaced by one of its name, so what arrives twice is there once, and what was made of it goes with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from core.errors import ConfigError, DeliveryError
from core.memory.http import SEARCH, objects, segment, text_of
from core.memory.service import AskedOptions, Entry, Found, ServerOptions, ServerService, Told

CLOUD = "https://api.hindsight.vectorize.io"
TYPES = ("world", "experience", "observation")
"""A fresh fact is one of the first two; the last is what the server concludes of several, some time later."""
BUDGETS = ("low", "mid", "high")
CONTEXTS = {"turn": "a conversation", "note": "a note", "tool": "what the assistant was to keep"}
OPERATION = "operation:"
UNDER_WAY = ("pending", "processing")


@dataclass(frozen=True, kw_only=True)
class Options(ServerOptions, AskedOptions):
    url: str = field(
        default=CLOUD, metadata={"help": "the cloud, or where your server listens: http://127.0.0.1:8888", "ask": True}
    )
    recall_types: str = field(default=",".join(TYPES), metadata={"help": f"what is recalled: {', '.join(TYPES)}"})
    recall_budget: str = field(default="low", metadata={"help": "how hard it looks: low, mid or high"})
    recall_max_tokens: int = field(default=2048, metadata={"help": "how much a search may bring"})
    retain_async: bool = field(default=True, metadata={"help": "whether it answers before it has made facts"})


class Hindsight(ServerService):
    name = "hindsight"
    options = Options
    cloud = CLOUD
    search_tool, add_tool, ask_tool = "hindsight_recall", "hindsight_retain", "hindsight_reflect"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._options = options
        self._types = [one.strip() for one in options.recall_types.split(",") if one.strip()]
        if not self._types or not {*self._types} <= {*TYPES} or options.recall_budget not in BUDGETS:
            raise ConfigError(f"recall_types should be of {', '.join(TYPES)}, and recall_budget low, mid or high.")

    async def probe(self) -> str:
        answer = await self._http.call("GET", "/version", patience=SEARCH)
        if not (version := text_of(answer, "api_version")):
            raise DeliveryError("what answers at the url of hindsight does not say its version")
        # The version is told without a key.
        nobody = _bank(f"{self._namespace}-nobody")
        await self._http.call("GET", f"{nobody}/memories/list", params={"limit": 1}, patience=SEARCH, missing=None)
        features = answer.get("features")
        has_more = isinstance(features, dict) and features.get("observations") is True
        return f"hindsight {version}, {self.where}; recall, reflect{', observations' if has_more else ''}"

    async def find(self, space: str, query: str, limit: int) -> Sequence[Found]:
        asked = {
            "query": query,
            "types": self._types,
            "budget": self._options.recall_budget,
            "max_tokens": self._options.recall_max_tokens,
        }
        path = f"{_bank(space)}/memories/recall"
        answer = await self._http.call(
            "POST", path, asked, patience=SEARCH, is_repeatable=True, missing={"results": []}
        )
        found = [
            Found(id=text_of(one, "id"), text=text_of(one, "text"), at=text_of(one, "occurred_start", "mentioned_at"))
            for one in objects(answer, "results")
        ]
        return [one for one in found if one.text][:limit]

    async def keep(self, space: str, told: Told) -> Sequence[str]:
        item = {
            "content": told.text,
            "document_id": told.key,
            "timestamp": told.at.isoformat(),
            "context": CONTEXTS[told.kind],
            "tags": [f"session:{told.session}"] if told.session else [],
        }
        body = {"items": [item], "async": self._options.retain_async}
        answer = await self._http.call("POST", f"{_bank(space)}/memories", body, is_repeatable=True)
        if not isinstance(answer, dict) or answer.get("success") is not True:
            raise DeliveryError("hindsight does not say that it has kept it")
        operation = text_of(answer, "operation_id")
        return [OPERATION + operation] if operation else []

    async def erase(self, entry: Entry) -> None:
        for path in self._operations(entry):
            if text_of(await self._http.call("GET", path, missing=None), "status") in UNDER_WAY:
                raise DeliveryError("hindsight has not made facts of it yet", retry_after_s=5.0)
            # It still holds what it was to make them of.
            await self._http.call("DELETE", f"{path}/delete", missing=None)
        await self._http.call("DELETE", self._document(entry), missing=None)

    async def holds(self, entry: Entry) -> bool:
        return await self._http.call("GET", self._document(entry), missing=None) is not None

    async def ask(self, space: str, query: str) -> str:
        body = {"query": query, "budget": self._options.recall_budget}
        path = f"{_bank(space)}/reflect"
        return text_of(await self._http.call("POST", path, body, is_repeatable=True, missing=None), "text")

    @staticmethod
    def _document(entry: Entry) -> str:
        return f"{_bank(entry.space)}/documents/{segment(entry.key)}"

    @staticmethod
    def _operations(entry: Entry) -> Iterator[str]:
        for one in entry.remote or ():
            yield f"{_bank(entry.space)}/operations/{segment(one.removeprefix(OPERATION))}"


def _bank(space: str) -> str:
    return f"/v1/default/banks/{segment(space)}"
