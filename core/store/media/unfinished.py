"""Finds what a killed process left unfinished: downloads, bytes without a file, and speech."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.store import rows
from core.store.engine import Connection, Database
from core.store.media.files import INSERT_FILE, SELECT_FILES, AttachedFile, file_values, read_file
from core.store.media.sent_forms import forget_sent_form
from core.store.rows import address_values
from core.types import Address, ErasureEpoch

_INSERT_UNFINISHED = INSERT_FILE.partition("ON CONFLICT")[0] + "ON CONFLICT DO NOTHING"
_SELECT_ROW = f"""
SELECT address_id FROM message_files WHERE address_id = ({rows.ADDRESS_ID})
    AND external_id = :external_id AND position = :position
"""
_SELECT_ERASED = f"""
SELECT 1 FROM messages WHERE address_id = ({rows.ADDRESS_ID}) AND external_id = :external_id
    AND kind = 'command' AND text = ''
"""


VOICE_PREFIX = "voice:"
"""Begins the key of the outbox item with a spoken answer."""
_SELECT_UNSPOKEN = f"""
SELECT outbox.key, outbox.address, messages.text
FROM outbox LEFT JOIN messages ON messages.id = outbox.message_id
WHERE outbox.done_at IS NULL AND outbox.dead_at IS NULL AND outbox.payload IS NULL
    AND outbox.key LIKE '{VOICE_PREFIX}%'
ORDER BY outbox.id
"""


@dataclass(frozen=True, slots=True)
class UnspokenAnswer:
    """An answer whose speech isn't in the outbox yet."""

    # The key of the outbox item that the speech fills.
    key: str
    address: Address
    # The text of the answer, or "" if it isn't stored any more.
    text: str


class UnfinishedFiles:
    """The files that are being downloaded or spoken, in state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store(self, file: AttachedFile, epoch: ErasureEpoch | None) -> None:
        """Store the row of a file that is still being downloaded, unless the file has a row.

        Nothing is stored if the message was erased.
        """

        def write(connection: Connection) -> None:
            connection.execute(_INSERT_UNFINISHED, file_values(connection, file))

        await self._database.write(write, epoch)

    async def forget_sent_form(self, file: AttachedFile) -> None:
        """Delete the sent form of the message of a file, which says that the file is missing.

        The next request then shows the file.
        """

        def write(connection: Connection) -> None:
            row = connection.execute(_SELECT_ROW, _position_values(file)).fetchone()
            if row is not None:
                values = {"address_id": row["address_id"], "external_id": file.external_id}
                forget_sent_form(connection, values)

        await self._database.write(write)

    async def list_downloads(self, platform: str) -> list[AttachedFile]:
        """Return the files of a platform whose download hasn't ended, oldest first."""
        statement = f"""
            {SELECT_FILES} WHERE message_files.hash IS NULL AND problem = ''
                AND reference IS NOT NULL AND addresses.platform = :platform
            ORDER BY message_files.id
        """
        found_rows = await self._database.fetch_all(statement, {"platform": platform})
        return [read_file(row) for row in found_rows]

    async def list_unspoken(self, platform: str) -> list[UnspokenAnswer]:
        """Return the answers in the chats of a platform whose speech isn't finished."""
        answers = [
            UnspokenAnswer(row["key"], Address.parse(row["address"]), row["text"] or "")
            for row in await self._database.fetch_all(_SELECT_UNSPOKEN, {})
        ]
        return [answer for answer in answers if answer.address.platform == platform]

    async def has_row(self, file: AttachedFile) -> bool:
        """Return whether a file is recorded, and wasn't removed."""
        return await self._database.fetch_one(_SELECT_ROW, _position_values(file)) is not None

    async def is_message_erased(self, file: AttachedFile) -> bool:
        """Return whether the message of a file was erased."""
        values = {**address_values(file.address), "external_id": file.external_id}
        return await self._database.fetch_one(_SELECT_ERASED, values) is not None

    async def select_unused(self, hashes: Sequence[str]) -> list[str]:
        """Return those of the hashes that belong to no stored content."""
        stored_rows = await self._database.fetch_all("SELECT hash FROM files", {})
        stored_hashes = {row["hash"] for row in stored_rows}
        return [content_hash for content_hash in hashes if content_hash not in stored_hashes]


def _position_values(file: AttachedFile) -> dict[str, object]:
    """Return the parameters that name the row of a file."""
    return {
        **address_values(file.address),
        "external_id": file.external_id,
        "position": file.position,
    }
