"""Replaces a file so that a crash leaves the old one or the new one, and that what is said to be written is.

What a killed process leaves beside it can be told from what an editor keeps there.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_MARK = ".half"


def replace_file(path: Path, content: bytes) -> None:
    """Writes beside, forces it to the disk, renames, forces the folder too. What is a link stays one. Raises OSError;
    nothing stays behind."""
    path = Path(os.path.realpath(path))
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_MARK)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def leftovers(path: Path) -> Iterator[Path]:
    """What processes left beside the file that were killed while they wrote it."""
    path = Path(os.path.realpath(path))
    yield from path.parent.glob(f".{path.name}.*{_MARK}")
