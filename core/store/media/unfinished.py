"""Stores the files whose download hasn't ended, and finds bytes without a file after a crash."""

from __future__ import annotations

from collections.abc import Sequence

from core.store import rows
from core.store.engine import Connection, Database
from core.store.media.files import INSERT_FILE, SELECT_FILES, AttachedFile, file_values, read_file
from core.store.rows import address_values
from core.types import ErasureEpoch

_INSERT_UNFINISHED = INSERT_FILE.partition("ON CONFLICT")[0] + "ON CONFLICT DO NOTHING"
_SELECT_ROW = f"""
SELECT 1 FROM message_files WHERE address_id = ({rows.ADDRESS_ID})
    AND external_id = :external_id AND position = :position
"""
_SELECT_ERASED = f"""
SELECT 1 FROM messages WHERE address_id = ({rows.ADDRESS_ID}) AND external_id = :external_id
    AND kind = 'command' AND text = ''
"""


class UnfinishedFiles:
    """The files that are being downloaded, in state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store(self, file: AttachedFile, epoch: ErasureEpoch | None) -> None:
        """Store the row of a file that is still being downloaded, unless the file has a row.

        Nothing is stored if the message was erased.
        """

        def write(connection: Connection) -> None:
            connection.execute(_INSERT_UNFINISHED, file_values(connection, file))

        await self._database.write(write, epoch)

    async def list_downloads(self, platform: str) -> list[AttachedFile]:
        """Return the files of a platform whose download hasn't ended, oldest first."""
        statement = f"""
            {SELECT_FILES} WHERE message_files.hash IS NULL AND problem = ''
                AND reference IS NOT NULL AND addresses.platform = :platform
            ORDER BY message_files.id
        """
        found_rows = await self._database.fetch_all(statement, {"platform": platform})
        return [read_file(row) for row in found_rows]

    async def has_row(self, file: AttachedFile) -> bool:
        """Return whether a file is recorded, and wasn't removed."""
        values = {
            **address_values(file.address),
            "external_id": file.external_id,
            "position": file.position,
        }
        return await self._database.fetch_one(_SELECT_ROW, values) is not None

    async def is_message_erased(self, file: AttachedFile) -> bool:
        """Return whether the message of a file was erased."""
        values = {**address_values(file.address), "external_id": file.external_id}
        return await self._database.fetch_one(_SELECT_ERASED, values) is not None

    async def select_unused(self, hashes: Sequence[str]) -> list[str]:
        """Return those of the hashes that belong to no stored content."""
        stored_rows = await self._database.fetch_all("SELECT hash FROM files", {})
        stored_hashes = {row["hash"] for row in stored_rows}
        return [content_hash for content_hash in hashes if content_hash not in stored_hashes]
