"""Writes files so that a crash leaves the old one or the new one; sets options in mneme.toml, where all else stays."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

_MARK = ".half"
Value = str | int | float | bool


def replace_file(path: Path, content: bytes) -> None:
    """Replaces a file atomically and durably; a link stays one. Raises OSError, and leaves nothing behind."""
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
    """Half-written files of processes that were killed."""
    path = Path(os.path.realpath(path))
    yield from path.parent.glob(f".{path.name}.*{_MARK}")


def keep_options(file: Path, table: Sequence[str], options: Mapping[str, Value]) -> None:
    """Sets `options` in the table of this dotted name; all else stays. Raises ValueError, with what to write by hand,
    where a part of the name is no table; OSError."""
    # It takes longer to load than most commands take, and few set an option.
    import tomlkit

    def with_options(document: tomlkit.TOMLDocument) -> str:
        place: Any = document
        for number, name in enumerate(table, 1):
            inner = place.setdefault(name, tomlkit.table(is_super_table=number < len(table)))
            if not isinstance(inner, MutableMapping):
                raise TypeError(f"{name} is no table")
            place = inner
        place.update(options)
        return tomlkit.dumps(document)

    file = file.resolve()
    try:
        text = with_options(tomlkit.parse(file.read_text(encoding="utf-8-sig") if file.exists() else ""))
    except (tomlkit.exceptions.TOMLKitError, TypeError) as error:
        raise ValueError(
            f"{file.name} is laid out in a way that I do not want to touch. Write this into it yourself:\n"
            + with_options(tomlkit.document()).strip()
        ) from error
    replace_file(file, text.encode())
