"""Reports bytes that belong to no message, for `mneme check`."""

from __future__ import annotations

from core.media.leftovers import find_orphaned_bytes
from gateway.services import Services
from gateway.texts.catalog import Texts
from gateway.upkeep.home_checks import CheckResult

# Younger bytes may belong to a file that is being received, in seconds.
MIN_AGE_S = 3_600.0


async def check_media(texts: Texts, services: Services) -> list[CheckResult]:
    """Return a problem if a killed process left bytes without a file, or no result."""
    paths = await find_orphaned_bytes(services.unfinished_files, services.media_folder, MIN_AGE_S)
    if not paths:
        return []
    files = texts.format_count(len(paths), "file")
    folder = services.media_folder.root
    return [
        CheckResult(
            subject="files",
            state="wrong",
            text=texts.compose("files_wrong", files=files, folder=folder),
            key="files_orphaned",
            values={"paths": paths},
            advice=texts.compose("files_advice"),
            where=str(folder),
            command="mneme run",
        )
    ]
