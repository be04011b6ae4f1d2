"""Writes a table of options into mneme.toml; what else stands there, comments included, stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from config.atomic_write import replace_file

Value = str | int | float | bool


def keep_options(file: Path, table: Sequence[str], options: Mapping[str, Value]) -> None:
    """Sets `options` in the table of this dotted name; what the table has besides stays. Atomic, and durable when it
    returns. Raises ValueError, with what to write by hand, where a part of the name is no table; OSError."""
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
