"""Finds options in the text of mneme.toml: an option's line, and the name that a person meant."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# A table header, "[model.servers.mine]", and the beginning of an option, "chat =".
_HEADER = re.compile(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
_OPTION = re.compile(
    r"""\s*((?:[\w-]+|"[^"\n]*"|'[^'\n]*')(?:\s*\.\s*(?:[\w-]+|"[^"\n]*"))*)\s*="""
)
# How similar a name must be to be suggested, from 0 to 1.
_MIN_SIMILARITY = 0.7


def find_line(text: str, path: str) -> int | None:
    """Return the number of the line that sets an option or opens its table, or None.

    `path` is dotted, such as "limits.day.answers", and may end with an index in brackets. If the
    option is in an inline table, the line of that table is returned. If `path` is a table without a
    header, the line of its first option is returned.
    """
    option_keys = split_path(re.sub(r"\[\d+\]", "", path))
    best_line = None
    best_length = 0
    first_inner_line = None
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.fullmatch(line)
        if header:
            table = _parse_key(header[1])
            keys = table
        else:
            option = _OPTION.match(line)
            if option is None:
                continue
            keys = [*table, *_parse_key(option[1])]
        if len(keys) > best_length and option_keys[: len(keys)] == keys:
            best_line = number
            best_length = len(keys)
        elif first_inner_line is None and keys[: len(option_keys)] == option_keys:
            first_inner_line = number
    return first_inner_line if best_line is None else best_line


def split_path(path: str) -> list[str]:
    """Split a dotted path with parts that may be quoted: ``chats."telegram:42".folders``."""
    return [part.strip('"') for part in re.findall(r'"[^"]*"|[^."]+', path)]


def _parse_key(key: str) -> list[str]:
    """Return the parts of a TOML key, or [] if the key is invalid."""
    try:
        value: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return []
    parts = []
    while isinstance(value, dict):
        ((name, value),) = value.items()
        parts.append(name)
    return parts


def find_option(options: Mapping[str, Any], path: str) -> object:
    """Return the value of an option by its dotted path, or None if it isn't set."""
    parts = split_path(path)
    value: object = options if parts else None
    for part in parts:
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def list_option_paths(options: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the dotted paths of all options and tables."""
    for name, value in options.items():
        path = f"{prefix}{name}"
        yield path
        if isinstance(value, dict):
            yield from list_option_paths(value, f"{path}.")


def suggest_name(name: str, known_names: Sequence[str]) -> str:
    """Return the known dotted name that a person probably meant, or ""."""
    # The option is in the wrong table, such as "general.chat" or "chat" for "model.chat".
    last = name.rpartition(".")[2]
    same = [known for known in known_names if known.rpartition(".")[2] == last]
    if len(same) == 1:
        return same[0]
    similar = find_similar_name(name, same)
    if similar:
        return similar
    # If several match, prefer the option of a whole table to that of one server in it.
    least_depth = min((known.count(".") for known in same), default=0)
    outermost = [known for known in same if known.count(".") == least_depth]
    if len(outermost) == 1:
        return outermost[0]
    return find_similar_name(name, known_names)


def find_similar_name(name: str, known_names: Sequence[str]) -> str:
    """Return the known name with the most similar spelling, or "" if none is similar."""
    matches = difflib.get_close_matches(name, known_names, 1, _MIN_SIMILARITY)
    return matches[0] if matches else ""
