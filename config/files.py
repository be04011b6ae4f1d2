"""Writes files so that a crash leaves the old one or the new one; sets options in mneme.toml, where all else stays."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

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
    file = file.resolve()
    try:
        document = tomlkit.parse(file.read_text(encoding="utf-8-sig") if file.exists() else "")
        _set(document, table, options)
    except (TOMLKitError, TypeError) as error:
        alone = tomlkit.document()
        _set(alone, table, options)
        raise ValueError(
            f"{file.name} is laid out in a way that I do not want to touch. Write this into it yourself:\n"
            + tomlkit.dumps(alone).strip()
        ) from error
    replace_file(file, tomlkit.dumps(document).encode())


def _set(document: tomlkit.TOMLDocument, table: Sequence[str], options: Mapping[str, Value]) -> None:
    place: Any = document
    for number, name in enumerate(table, 1):
        if name not in place:
            place[name] = tomlkit.table(is_super_table=number < len(table))
        inner = place[name]
        if not isinstance(inner, tomlkit.items.AbstractTable | tomlkit.container.OutOfOrderTableProxy):
            raise TypeError(f"{name} is no table")
        place = inner
    place.update(options)
