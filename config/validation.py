"""What a value of a setting must look like: ids, places, addresses, names. Each returns the value in its one form.

Raises ValueError with a sentence for somebody who edits TOML.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

PLATFORMS = ("telegram", "discord")


def user_id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str) or not re.fullmatch(r"[1-9][0-9]{0,19}", str(value)):
        raise ValueError(
            f"{str(value)[:40]!r} is not a numeric user id; /whoami tells it (names can be taken by anybody)"
        )
    return str(value)


def person(key: str) -> str:
    platform, number = _split(key)
    if number.startswith("-"):
        raise ValueError(f"{key!r} is a room, not a person; it belongs into the rooms")
    return f"{platform}:{number}"


def room(key: str) -> str:
    platform, number = _split(key)
    if platform == "telegram" and not number.startswith("-"):
        raise ValueError(f"{key!r} is a person, not a room; ids of Telegram groups are negative")
    if platform == "discord" and number.startswith("-"):
        raise ValueError(f"{key[:40]!r} is no Discord channel; their ids are not negative")
    return f"{platform}:{number}"


def _split(key: str) -> tuple[str, str]:
    platform, _, number = key.partition(":")
    if platform not in PLATFORMS:
        raise ValueError(
            f"{key[:40]!r} does not begin with a platform; write {' or '.join(f'{p}:42' for p in PLATFORMS)}"
        )
    if not re.fullmatch(r"-?[1-9][0-9]{0,19}", number):
        raise ValueError(f"{key[:40]!r} has no numeric id after its platform; names can be taken by anybody")
    return platform, number


def web_address(value: str) -> str:
    return _checked_url(value, ("http", "https"))


def provider_name(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", value):
        raise ValueError("is no name of a memory provider; they have small letters, digits and _")
    return value


def socket_address(value: str) -> str:
    return _checked_url(value, ("ws", "wss"))


def _checked_url(value: str, schemes: tuple[str, str]) -> str:
    try:
        parts = urlsplit(value)
        is_good = parts.scheme in schemes and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_good = False
    if not is_good:
        raise ValueError(f"is not an address; write {schemes[0]}://host:port or {schemes[1]}://host")
    return value.rstrip("/")
