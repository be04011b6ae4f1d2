"""Loads kept files to send them again. The position in a picture stays here."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from core.media.decoding import Decoder
from core.media.folder import MediaFolder
from core.store.media.files import AttachedFile
from core.types import File


async def load_outgoing(file: AttachedFile, folder: MediaFolder, decoder: Decoder) -> File | None:
    """Return a file to send with an answer, or None if its bytes are gone."""
    if file.content is None:
        return None
    content = await asyncio.to_thread(folder.read, file.content.hash)
    if content is None:
        return None
    if file.content.width:
        content = await _remove_position(content, file, folder, decoder)
    return File(
        name=_add_suffix(file),
        content=content,
        mime=file.content.type,
        is_document=file.kind == "document",
    )


async def _remove_position(
    content: bytes, file: AttachedFile, folder: MediaFolder, decoder: Decoder
) -> bytes:
    """Return a picture without the position in its EXIF data."""
    assert file.content is not None
    with tempfile.TemporaryDirectory(prefix="mneme-") as scratch:
        copy_path = Path(scratch, "copy")
        path = folder.path_of(file.content.hash)
        if await decoder.clean(path, copy_path, file.name):
            return await asyncio.to_thread(copy_path.read_bytes)
    return content


def _add_suffix(file: AttachedFile) -> str:
    """Return the name of a file, which may have no ending on its platform."""
    name = " ".join(file.name.split()).replace("/", "_") or "file"
    if "." in name or file.content is None:
        return name
    return f"{name}.{file.content.type.rpartition('/')[2]}"
