"""Removes files, and what summaries of conversations quote from them.

`core/store/media/sent_forms.py` removes what tools quoted. The answers of the model stay, like the
messages of people.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from core.privacy.forgetting import Forgetting
from core.privacy.quotes import remove_quoting_lines
from core.store.engine import Connection, Database, Row
from core.store.media.files import AttachedFile, Files
from core.store.visibility import scope_parameter, visible
from core.types import Scopes

_SELECT_SUMMARIES = f"""
SELECT id, text FROM messages WHERE kind = 'summary' AND id > :first_id AND text <> ''
    AND session_id IN (SELECT sessions.id FROM sessions WHERE {visible()})
"""
_SELECT_EQUAL_FILES = f"""
SELECT id, name FROM message_files
WHERE {visible("message_files.scope_id")} AND hash = :hash AND id <> :id ORDER BY id
"""


@dataclass(frozen=True)
class FileRemoval:
    """Removes a file of a message. The message stays."""

    database: Database
    files: Files
    forgetting: Forgetting

    async def list_equal_files(self, file: AttachedFile, scopes: Scopes) -> list[tuple[int, str]]:
        """Return the ids and names of the files of other messages with the same bytes."""
        if file.content is None:
            return []
        values = {"hash": file.content.hash, "id": file.id, "scopes": scope_parameter(scopes)}
        rows = await self.database.fetch_all(_SELECT_EQUAL_FILES, values)
        return [(row["id"], row["name"]) for row in rows]

    async def remove(self, file: AttachedFile, scopes: Scopes) -> None:
        """Remove a file, its bytes, and what summaries and tool results quote from it.

        The summaries come first, so that nothing is left over if the process is killed in between.
        """
        texts: list[str] = []
        if file.content is not None:
            texts = [part.text for part in await self.files.load_parts(file.content.hash)]
        values = {"first_id": file.message_id or 0, "scopes": scope_parameter(scopes)}
        summaries = await self.database.fetch_all(_SELECT_SUMMARIES, values)
        changed = await asyncio.to_thread(_shorten_summaries, summaries, file.id, texts)
        if changed:
            await self.database.write(partial(_store_summaries, summaries=changed))
        await self.files.remove(file.id, scopes)
        await self.forgetting.maintain()


def _shorten_summaries(
    summaries: Sequence[Row], file_id: int, texts: Sequence[str]
) -> list[tuple[int, str]]:
    """Return the summaries that quote a file, without the quoting lines, by their ids."""
    changed: list[tuple[int, str]] = []
    for row in summaries:
        remaining_text = remove_quoting_lines(row["text"], texts, frozenset({file_id}))
        if remaining_text != row["text"]:
            changed.append((row["id"], remaining_text))
    return changed


def _store_summaries(connection: Connection, *, summaries: Sequence[tuple[int, str]]) -> None:
    for message_id, text in summaries:
        values = {"id": message_id, "text": text}
        connection.execute("UPDATE messages SET text = :text, sent = NULL WHERE id = :id", values)
