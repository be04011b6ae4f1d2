"""Deletes the bytes of files that no message has any more or that were never recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog

from core.media.folder import FOLDER, MediaFolder
from core.store.media.files import Files
from core.store.media.unfinished import UnfinishedFiles

# A file whose message wasn't stored after this time is deleted.
ORPHAN_LIFETIME = timedelta(days=1)
_log = structlog.get_logger("media")


async def remove_erased_files(files: Files, folder: MediaFolder, now: datetime) -> Sequence[str]:
    """Delete the bytes of files that no longer belong to any message.

    Returns the paths in the home that couldn't be deleted. They are tried again later.
    """
    await files.drop_orphans(now - ORPHAN_LIFETIME)
    removed: list[str] = []
    unwritable: list[str] = []
    for content_hash in await files.list_removals():
        try:
            await asyncio.to_thread(folder.remove, content_hash)
            removed.append(content_hash)
        except (OSError, ValueError):
            unwritable.append(f"{FOLDER}/{content_hash[:2]}/{content_hash}")
    if removed:
        await files.forget_removals(removed)
    return unwritable


async def remove_orphaned_bytes(
    files: UnfinishedFiles, folder: MediaFolder, lifetime_s: float
) -> None:
    """Delete the bytes that a killed process wrote without recording their file.

    Bytes that are younger than `lifetime_s` seconds stay, because another process may be about to
    record them.
    """
    hashes = await asyncio.to_thread(folder.list_old_hashes, lifetime_s)
    for content_hash in await files.select_unused(hashes) if hashes else ():
        try:
            await asyncio.to_thread(folder.remove, content_hash)
        except OSError as error:
            _log.warning("bytes without a file can't be deleted", error=str(error))


async def find_orphaned_bytes(
    files: UnfinishedFiles, folder: MediaFolder, lifetime_s: float
) -> list[str]:
    """Return the paths in the home of bytes without a file that are at least that old.

    A killed process wrote them. `remove_orphaned_bytes` deletes them at the next start.
    """
    hashes = await asyncio.to_thread(folder.list_old_hashes, lifetime_s)
    unused = await files.select_unused(hashes) if hashes else ()
    return [f"{FOLDER}/{content_hash[:2]}/{content_hash}" for content_hash in unused]
