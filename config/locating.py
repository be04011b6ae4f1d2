"""Finds options in mneme.toml: their lines, the name that a person meant, and their earlier names.

A name of an earlier version still works. `rename_options` also returns advice with the new name.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from config.variables import get_table

# Each old dotted path with the new one.
_RENAMED_OPTIONS: Mapping[str, str] = {
    "model.cheap": "model.helper",
    "cron.max_jobs": "limits.jobs",
}
# The options of the tools that look things up, which were in [web].
_WEB_TOOL_OPTIONS = ("fetch", "search", "searxng_url", "key", "max_calls_per_day", "timeout_s")
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


def find_current_path(path: str) -> str:
    """Return the dotted path that an option has now. An unknown path is returned unchanged."""
    section, _, name = path.partition(".")
    if section == "page" and name:
        return f"web.{name}"
    if section == "web" and name in _WEB_TOOL_OPTIONS:
        return f"web_tools.{name}"
    return _RENAMED_OPTIONS.get(path, path)


def list_old_paths(path: str) -> Iterator[str]:
    """Yield the dotted paths that an option had in earlier versions."""
    section, _, name = path.partition(".")
    if section == "web" and name:
        yield f"page.{name}"
    if section == "web_tools" and name in _WEB_TOOL_OPTIONS:
        yield f"web.{name}"
    yield from (old for old, new in _RENAMED_OPTIONS.items() if new == path)


def rename_options(own_options: dict[str, Any]) -> str:
    """Give the options of mneme.toml their new names, and return advice to rename them, or "".

    An option that has both its old and its new name keeps the value of the new one.
    """
    advice = []
    for old_path, new_path in _RENAMED_OPTIONS.items():
        if _move_option(own_options, old_path, new_path):
            advice.append(f"{old_path} is now called {new_path}; rename it in mneme.toml.")
    web_tools = [
        name
        for name in _WEB_TOOL_OPTIONS
        if _move_option(own_options, f"web.{name}", f"web_tools.{name}")
    ]
    if web_tools:
        names = ", ".join(web_tools)
        advice.append(f"[web] is now about the local page; move {names} to [web_tools].")
    page_options = list(get_table(own_options, "page"))
    for name in page_options:
        _move_option(own_options, f"page.{name}", f"web.{name}")
    if page_options:
        del own_options["page"]
        advice.append("[page] is now called [web]; rename it in mneme.toml.")
    blind_models = get_table(own_options, "media").pop("blind_models", None)
    if isinstance(blind_models, list) and blind_models:
        _add_blind_models(own_options, blind_models)
        names = ", ".join(f'"{name}" = ["pictures"]' for name in blind_models)
        advice.append(
            f"media.blind_models is now part of model.lacks; write lacks = {{ {names} }} below "
            "[model] in mneme.toml instead."
        )
    return " ".join(advice)


def drop_obsolete_options(own_options: dict[str, Any]) -> None:
    """Remove options of earlier versions that no longer have an effect."""
    own_options.pop("curator", None)
    get_table(own_options, "memory").pop("nudge_after", None)
    get_table(own_options, "discord").pop("limit_chars", None)


def _move_option(own_options: dict[str, Any], old_path: str, new_path: str) -> bool:
    """Move an option to its new path, and return whether it had the old one."""
    old_section, old_name = old_path.split(".")
    new_section, new_name = new_path.split(".")
    table = get_table(own_options, old_section)
    if old_name not in table:
        return False
    value = table.pop(old_name)
    new_table = own_options.setdefault(new_section, {})
    if isinstance(new_table, dict):
        new_table.setdefault(new_name, value)
    return True


def _add_blind_models(own_options: dict[str, Any], names: Sequence[Any]) -> None:
    """Add to `model.lacks` that these models can't use pictures."""
    model = own_options.setdefault("model", {})
    lacks = model.setdefault("lacks", {}) if isinstance(model, dict) else None
    if not isinstance(lacks, dict):
        # The mistake is reported for `model` or `model.lacks`.
        return
    for name in names:
        abilities = lacks.setdefault(str(name), [])
        if isinstance(abilities, list) and "pictures" not in abilities:
            abilities.append("pictures")
