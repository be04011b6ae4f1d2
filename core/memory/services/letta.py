"""Use Letta, in its cloud or on your own server.

Each scope has an archive. Each item is a passage in the archive, with the item's key as a tag.
Letta searches passages by meaning, without a model of its own. The notes of a scope are also copied
to a core block, which you can attach to any agent of Letta. Mneme doesn't create agents.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import DeliveryError, Refused, Sentence
from core.memory.http import SEARCH, number_of, objects, segment, text_of
from core.memory.service import (
    Entry,
    RemoteMemory,
    ServerOptions,
    ServerService,
    SpaceIds,
    SyncItem,
    setup_option,
)
from core.types import Json

CLOUD = "https://api.letta.com"
# The field in the metadata of the core block: the notes by their keys.
NOTES = "mneme_notes"
# The maximum length of a core block. Further notes are left out, and the block says so.
BLOCK_CHARS = 50_000
LEFT_OUT = "({count} more notes are too long for this block.)"
# The maximum number of objects in a list. An item normally has one passage, and a space has one
# archive and one block.
PAGE_SIZE = 20


@dataclass(frozen=True, kw_only=True)
class Options(ServerOptions):
    url: str = setup_option(CLOUD, "the cloud, or the address of your server")
    embedding: str = setup_option(
        "",
        "the embedding model of new archives, like openai/text-embedding-3-small; without it, "
        "your own server finds only a text that contains the whole question",
    )


class Letta(ServerService):
    name = "letta"
    options = Options
    cloud = CLOUD
    search_tool = "letta_search"
    add_tool = "letta_insert"
    forget_tool = "letta_delete"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._embedding = options.embedding.strip()
        self._archives = SpaceIds(self._find_archive, self._create_archive)

    async def probe(self) -> Sentence:
        """Return a description of the server, after checking that it accepts the key."""
        health = await self._http.call("GET", "/v1/health/", call_timeout=SEARCH)
        await self._list("/v1/archives/", name=f"{self._namespace}-nobody")
        version = text_of(health, "version")
        product = f"letta {version}".strip()
        return Sentence("probe_letta", {"product": product, "place": self.location})

    async def find(self, space: str, query: str, limit: int) -> Sequence[RemoteMemory]:
        """Return the passages of a space that match the query, best first."""
        request = {"query": query, "limit": limit}
        return await self._archives.read(
            space, lambda archive: self._find_memories(archive, request, limit), ()
        )

    async def _find_memories(
        self, archive: str, request: Json, limit: int
    ) -> Sequence[RemoteMemory]:
        """Search an archive, and return its passages as memories."""
        results = await self._search(archive, request)
        memories = []
        for result in results:
            passage = result.get("passage")
            if text_of(passage, "text") and text_of(passage, "archive_id") in ("", archive):
                memories.append(
                    RemoteMemory(
                        id=text_of(passage, "id"),
                        text=text_of(passage, "text"),
                        at=text_of(passage, "created_at"),
                        score=number_of(result, "score"),
                    )
                )
        return memories[:limit]

    async def keep(self, space: str, item: SyncItem) -> Sequence[str]:
        """Store an item as one passage. Notes are also stored in the core block."""
        passages = await self._archives.write(
            space, lambda archive: self._keep_passage(archive, item)
        )
        if item.kind == "note":
            await self._change_block(space, item.key, item.text)
        return passages

    async def _keep_passage(self, archive: str, item: SyncItem) -> Sequence[str]:
        """Store an item as a passage and return the passage's id.

        A retry first checks whether the passage exists already.
        """
        if item.is_retry and (passages := await self._find_passages(archive, item.key)):
            return passages
        request = {
            "text": item.text,
            "created_at": item.at.isoformat(),
            "tags": [item.key, item.kind],
        }
        answer = await self._http.call("POST", f"/v1/archives/{segment(archive)}/passages", request)
        passage = text_of(answer, "id")
        if not passage:
            raise DeliveryError("service_not_confirmed", name=self.name)
        return [passage]

    async def erase(self, entry: Entry) -> None:
        await self._archives.read(
            entry.space, lambda archive: self._delete_passages(archive, entry), None
        )
        if entry.notes:
            await self._change_block(entry.space, entry.key, None)

    async def _delete_passages(self, archive: str, entry: Entry) -> None:
        passages = await self._find_passages(archive, entry.key)
        for passage in dict.fromkeys([*(entry.remote or ()), *passages]):
            await self._delete_passage(archive, passage)

    async def holds(self, entry: Entry) -> bool:
        if await self._archives.read(
            entry.space, lambda archive: self._find_passages(archive, entry.key), ()
        ):
            return True
        if not entry.notes:
            return False
        block = await self._find_block(entry.space)
        return block is not None and entry.key in _notes_of(block)

    async def take_out(self, space: str, memory_id: str) -> bool:
        """Delete one passage. Returns False if the archive of the space doesn't have it."""
        try:
            return await self._archives.read(
                space, lambda archive: self._delete_passage(archive, memory_id), False
            )
        except Refused:
            # Letta refuses the id of a passage in another archive, and a malformed id.
            return False

    async def _delete_passage(self, archive: str, passage: str) -> bool:
        path = f"/v1/archives/{segment(archive)}/passages/{segment(passage)}"
        missing = object()
        return await self._http.call("DELETE", path, missing=missing) is not missing

    async def _find_passages(self, archive: str, key: str) -> list[str]:
        """Return the ids of the passages of the item with this key."""
        request = {"tags": [key], "tag_match_mode": "all", "limit": PAGE_SIZE}
        passages = [result.get("passage") for result in await self._search(archive, request)]
        return [
            text_of(passage, "id")
            for passage in passages
            if isinstance(passage, dict) and key in (passage.get("tags") or ())
        ]

    async def _search(self, archive: str, request: Json) -> list[Json]:
        answer = await self._http.call(
            "POST",
            "/v1/passages/search",
            {**request, "archive_id": archive},
            call_timeout=SEARCH,
            is_repeatable=True,
        )
        return objects(answer)

    async def _find_archive(self, space: str) -> str | None:
        """Return the id of a space's archive, or None if it doesn't exist."""
        archives = await self._list("/v1/archives/", name=space)
        names = {text_of(archive, "name"): text_of(archive, "id") for archive in archives}
        return names.get(space) or None

    async def _create_archive(self, space: str) -> str:
        request = {"name": space, "description": "What Mneme was told"}
        if self._embedding:
            request["embedding"] = self._embedding
        archive = text_of(await self._http.call("POST", "/v1/archives/", request), "id")
        if not archive:
            raise DeliveryError("service_bad_answer", name=self.name)
        return archive

    async def _find_block(self, space: str) -> Json | None:
        """Return the core block of a space, or None if it doesn't exist."""
        for block in await self._list("/v1/blocks/", label=space):
            if text_of(block, "label") == space:
                return block
        return None

    async def _change_block(self, space: str, key: str, text: str | None) -> None:
        """Add or replace a note in the core block of a space, or remove it if `text` is None."""
        block = await self._find_block(space)
        notes = dict(_notes_of(block)) if block is not None else {}
        if text is None:
            notes.pop(key, None)
        else:
            notes[key] = text
        request: dict[str, Any] = {
            "value": _format_block(notes.values()),
            "metadata": {NOTES: notes},
        }
        if block is not None:
            path = f"/v1/blocks/{segment(text_of(block, 'id'))}"
            await self._http.call("PATCH", path, request, is_repeatable=True)
        elif notes:
            request |= {"label": space, "limit": BLOCK_CHARS, "description": "Mneme's notes"}
            await self._http.call("POST", "/v1/blocks/", request)

    async def _list(self, path: str, **filters: str) -> list[Json]:
        params: dict[str, str | int] = {**filters, "limit": PAGE_SIZE}
        return objects(await self._http.call("GET", path, params=params, call_timeout=SEARCH))


def _format_block(notes: Collection[str]) -> str:
    """Return the notes as lines. If they don't all fit, the last line counts the missing ones."""
    lines: list[str] = []
    free_chars = BLOCK_CHARS - len(LEFT_OUT.format(count=len(notes)))
    for note in notes:
        free_chars -= len(note) + 1
        if free_chars < 0:
            lines.append(LEFT_OUT.format(count=len(notes) - len(lines)))
            break
        lines.append(note)
    return "\n".join(lines)


def _notes_of(block: Json) -> Mapping[str, Any]:
    """Return the notes in a core block by their keys."""
    metadata = block.get("metadata")
    notes = metadata.get(NOTES) if isinstance(metadata, dict) else None
    return notes if isinstance(notes, dict) else {}
