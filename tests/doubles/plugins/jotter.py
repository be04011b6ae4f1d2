"""A memory service behind two HTTP calls: keeps each turn, looks up what is asked about."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from core.errors import Refused
from core.memory.forgotten import Forgotten
from core.memory.provider import MemoryProvider
from core.memory.secret import Secret
from core.types import Message, Session, ToolContext


@dataclass(frozen=True)
class Options:
    url: str = field(metadata={"help": "where the service listens"})
    key: Secret = field(metadata={"help": "what it knows us by"})


class Jotter(MemoryProvider):
    name = "jotter"
    options = Options

    def __init__(self, options: Options) -> None:
        self.url, self.key = options.url, options.key.value

    async def is_available(self) -> bool:
        return self.url.startswith("http")

    async def initialize(self, folder: Path) -> None:
        """Nothing has to be prepared."""

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        asked = urlencode([("q", text), *(("scope", scope.key) for scope in sorted(context.scopes))])
        found = await asyncio.to_thread(self._call, f"/memories?{asked}")
        return [f"j{memory['id']} {memory['text']}" for memory in found["memories"]]

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        text = "\n".join(f"{row.role}: {row.text}" for row in messages if row.role != "tool")
        told = {"key": key, "scope": session.scope.key, "text": text, "ids": [row.id for row in messages]}
        await asyncio.to_thread(self._call, "/memories", told)

    async def on_forget(self, forgotten: Forgotten) -> None:
        gone = {"scope": forgotten.scope.key, "ids": forgotten.messages}
        await asyncio.to_thread(self._call, "/forgotten", gone)

    def _call(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        try:
            with urlopen(Request(self.url + path, data, {"Authorization": f"Bearer {self.key}"}), timeout=10) as answer:
                return json.load(answer)
        except HTTPError as error:
            error.close()
            if error.code in (400, 401, 403, 413, 422):
                raise Refused(f"the service says {error.code}") from None
            raise
