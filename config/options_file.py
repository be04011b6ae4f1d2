"""Writes a table of options into mneme.toml: what else stands there, comments included, stays as it is.

Reads back what it is about to write; where the file is laid out in a way that it does not understand, it refuses.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from config.atomic_write import replace_file

Value = str | int | float | bool


def keep_options(file: Path, table: Sequence[str], options: Mapping[str, Value]) -> None:
    """Sets `options` in the table of this dotted name; what the table has besides stays. Atomic, and durable when it
    returns. Raises ValueError, with what to write by hand, when the file cannot be changed; OSError."""
    file = file.resolve()
    text = file.read_text(encoding="utf-8-sig") if file.exists() else ""
    changed = with_options(text, table, options)
    try:
        fits = tomllib.loads(changed) == _merged(tomllib.loads(text), table, options)
    except tomllib.TOMLDecodeError:
        fits = False
    if not fits:
        raise ValueError(
            f"{file.name} is laid out in a way that I do not want to touch. Write this into it yourself:\n"
            + with_options("", table, options).strip()
        )
    replace_file(file, changed.encode())


def with_options(text: str, table: Sequence[str], options: Mapping[str, Value]) -> str:
    """The text of a TOML file with `options` in the table of this name, where its header stands on a line of its own
    and an option on one line."""
    header = re.compile(r"\s*\[\s*" + r"\s*\.\s*".join(map(re.escape, table)) + r"\s*\]\s*(#.*)?")
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if header.fullmatch(line)), None)
    if start is None:
        body = "\n".join([f"[{'.'.join(table)}]", *(f"{name} = {_dumped(value)}" for name, value in options.items())])
        return f"{text.rstrip()}\n\n{body}\n".lstrip("\n")
    end = next((at for at in range(start + 1, len(lines)) if lines[at].lstrip().startswith("[")), len(lines))
    for name, value in options.items():
        line = f"{name} = {_dumped(value)}"
        known = re.compile(rf"\s*{re.escape(name)}\s*=")
        place = next((at for at in range(start + 1, end) if known.match(lines[at])), None)
        if place is not None:
            lines[place] = line
            continue
        last = max(at for at in range(start, end) if lines[at].strip() or at == start)
        lines.insert(last + 1, line)
        end += 1
    return "\n".join(lines).rstrip("\n") + "\n"


def _dumped(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A JSON string is a TOML string but for one sign.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def _merged(known: dict[str, Any], table: Sequence[str], options: Mapping[str, Value]) -> dict[str, Any]:
    place = known
    for name in table:
        inner = place.setdefault(name, {})
        if not isinstance(inner, dict):
            return {}
        place = inner
    place.update(options)
    return known
