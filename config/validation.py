"""Checks of single values, which return the value in its one form or raise ValueError with a sentence; and pydantic's
findings in the words of somebody who edits TOML.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

PLATFORMS = ("telegram", "discord")


def user_id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str) or not re.fullmatch(r"[1-9][0-9]{0,19}", str(value)):
        raise ValueError(
            f"{str(value)[:40]!r} is not a numeric user id; /whoami tells it (names can be taken by anybody)"
        )
    return str(value)


def person(key: str) -> str:
    if not re.fullmatch(r"(telegram|discord):[1-9][0-9]{0,19}", key):
        raise ValueError(f"{key[:40]!r} is no person; write telegram:42 or discord:42, with the id that /whoami tells")
    return key


def room(key: str) -> str:
    if not re.fullmatch(r"(telegram:-|discord:)[1-9][0-9]{0,19}", key):
        raise ValueError(
            f"{key[:40]!r} is no room; write discord:77, or telegram:-1001234567890: ids of its groups are negative"
        )
    return key


def provider_name(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", value):
        raise ValueError("is no name of a memory provider; they have small letters, digits and _")
    return value


def web_address(value: str, schemes: tuple[str, str] = ("http", "https")) -> str:
    try:
        parts = urlsplit(value)
        is_good = parts.scheme in schemes and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_good = False
    if not is_good:
        raise ValueError(f"is not an address; write {schemes[0]}://host:port or {schemes[1]}://host")
    return value.rstrip("/")


def socket_address(value: str) -> str:
    return web_address(value, ("ws", "wss"))


_EXPECTED: Mapping[str, str] = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a number, neither nan nor inf",
    "string_type": "a text in quotes",
    "string_too_short": "a text that is not empty",
    "string_too_long": "a shorter text",
    "tuple_type": "a list in brackets",
    "missing": "there too",
}
"""What pydantic's kinds of error ask for."""


def problem(detail: Any, variables: Mapping[str, str]) -> str:
    """One pydantic finding as a line; `variables` names the environment variable of a field that has one."""
    first, *rest = detail["loc"]
    path = variables.get(first, first) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)
    kind = detail["type"]
    if kind == "extra_forbidden":
        return f"{path}: is not an option; config/default.toml has them all"
    if kind == "value_error":
        return f"{path}: {detail['ctx']['error']}"
    if kind in ("model_type", "dict_type", "mapping_type"):
        return f"{path}: should be a table, written [{path}]"
    if kind == "literal_error":
        listed = str(detail["ctx"]["expected"]).replace("'", '"')
        return f"{path}: should be {re.sub('True|False', lambda found: found[0].lower(), listed)}"
    expected = _EXPECTED.get(kind)
    return f"{path}: should be {expected}" if expected else f"{path}: {str(detail['msg']).removeprefix('Input ')}"
