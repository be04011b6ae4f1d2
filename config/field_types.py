"""Defines the types of single settings, and checks options that depend on others.

A type checks a value and explains mistakes in mneme.toml. A check of several options returns
problems like ``dotted.path: explanation``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import tzlocal
from pydantic import AfterValidator, BeforeValidator, Field

from config.variables import PLACEHOLDER, VARIABLE, get_table

# Quotes, brackets and the like are left over from a list or a text that isn't closed.
_NOT_IN_MODEL_NAMES = re.compile(r"""[\x00-\x1f\x7f"'`\[\]{}<>,;|]|\A\s|\s\Z""")
# The languages in which Mneme has texts.
LANGUAGES = ("en", "de", "es", "fr", "pt-BR", "ru", "tr", "zh", "ja", "ko")

# The codes of two letters in ISO 639-1.
_ISO_639_1 = """
aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da
de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz
ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln
lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi
pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti
tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""

# The memory providers of core/memory/services. Any other provider is a file in a folder of the
# home.
MEMORY_PROVIDERS = (
    "byterover",
    "hindsight",
    "honcho",
    "langchain",
    "letta",
    "mem0",
    "openviking",
    "retaindb",
    "supermemory",
    "zep",
)
# These providers are always on, so the plugins explain why they can't have a table.
_BUILT_IN_PROVIDERS = ("notes", "history", "facts", "memory")
_PLUGINS_FOLDER = "plugins"
# A name that is at least this similar to the name of a service is a misspelling ("mem9" for
# "mem0").
_MISSPELLED_RATIO = 0.7


def fill_placeholders(value: str, variables: Mapping[str, str]) -> str:
    """Replace each ``${NAME}`` with the unchanged value of the variable.

    Raises ValueError, with a sentence that names the variable, if a variable isn't set.
    """

    def find_value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in variables:
            raise ValueError(f"{name} isn't set. Put it into secrets.env.")
        return variables[name]

    return PLACEHOLDER.sub(find_value, value)


class MachineZone(str):
    """The name of the machine's time zone, which counts because the settings have "auto"."""

    __slots__ = ()


def _resolve_zone(name: str) -> str:
    """Return the name of a time zone, which may be typed in any letter case.

    "auto" means the machine's zone, or UTC if it has none. Raises ValueError if the zone doesn't
    exist.
    """
    try:
        zone = name
        if name == "auto":
            zone = MachineZone(tzlocal.get_localzone_name() or "UTC")
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        for known in available_timezones():
            if known.lower() == name.lower():
                return known
        raise ValueError(
            f"{name[:40]!r} isn't a time zone; write an IANA name like 'Europe/Lisbon', or 'auto'"
        ) from None
    return zone


def _check_language(code: str) -> str:
    """Return the code of a language, which may name a country, or "auto".

    A language without texts is accepted: its dates are understood, and the texts are English.
    Raises ValueError if there is no such language.
    """
    if code != "auto" and re.split("[-_]", code)[0].lower() not in _ISO_639_1.split():
        names = ", ".join(f'"{language}"' for language in ("auto", *LANGUAGES[:-1]))
        raise ValueError(f'should be {names} or "{LANGUAGES[-1]}"')
    return code


def _matches(pattern: str, advice: str) -> BeforeValidator:
    """Return a check that accepts a text or integer that matches the pattern.

    The check returns the value as text. `advice` completes the error message: ``'ana' isn't a
    person; write …``.
    """

    def check(value: object) -> str:
        """Return the value as a text. Raises ValueError if it doesn't match."""
        is_scalar = isinstance(value, int | str) and not isinstance(value, bool)
        if not is_scalar or not re.fullmatch(pattern, str(value)):
            raise ValueError(f"{str(value)[:40]!r} {advice}")
        return str(value)

    return BeforeValidator(check)


def _is_url(*schemes: str, is_optional: bool = False) -> AfterValidator:
    """Return a check that accepts a URL with one of two schemes, and removes trailing slashes.

    If `is_optional`, the check also accepts an empty text.
    """

    def check(value: str) -> str:
        """Return the URL without trailing slashes. Raises ValueError if it's invalid."""
        if is_optional and not value:
            return value
        try:
            parts = urlsplit(value)
            has_port = parts.port is None or parts.port > 0
            is_valid = parts.scheme in schemes and bool(parts.hostname) and has_port
        except ValueError:
            is_valid = False
        if not is_valid:
            raise ValueError(
                f"isn't an address; write {schemes[0]}://host:port or {schemes[1]}://host"
            )
        return value.rstrip("/")

    return AfterValidator(check)


def _check_variable_name(name: str) -> str:
    # The text may be the key itself, so the message doesn't repeat it.
    if name and not VARIABLE.fullmatch(name):
        raise ValueError(
            'write the name of an environment variable that holds the key, such as "MY_KEY"'
        )
    return name


def check_model_name(name: str, *, may_have_spaces: bool = True) -> str:
    """Return the name of a model. Raises ValueError if no server can have a model of that name."""
    is_wrong = bool(_NOT_IN_MODEL_NAMES.search(name)) or not any(map(str.isalnum, name))
    has_spaces = len(name.split()) > 1
    if name and (is_wrong or (has_spaces and not may_have_spaces)):
        raise ValueError(
            f"{name[:80]!r} isn't the name of a model; write the name as its server spells it"
        )
    return name


def _check_folder(value: object) -> Path:
    if not isinstance(value, str) or not value.startswith(("/", "~/")):
        raise ValueError(
            f"{str(value)[:80]!r} isn't a folder; write its whole path, beginning with / or ~/"
        )
    return Path(os.path.expanduser(value))


def _parse_interval(value: object) -> timedelta:
    """Parse "12h", "1d" or "2w". "off" is an interval of zero.

    Raises ValueError for other texts.
    """
    match = re.fullmatch(r"([1-9]\d{0,3})([hdw])", value) if isinstance(value, str) else None
    if match is None and value != "off":
        raise ValueError(
            f"{str(value)[:40]!r} isn't an interval; write hours, days or weeks like '12h', '1d' "
            "or '2w', or 'off'"
        )
    if match is None:
        return timedelta()
    units = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
    return int(match[1]) * units[match[2]]


def _check_optional_folder(value: object) -> Path | None:
    return None if value == "" else _check_folder(value)


def _convert_off(value: object) -> object:
    return 0 if value == "off" else value


def check_webhook(options: Mapping[str, Any]) -> list[str]:
    """Return a problem if Telegram would refuse the address of the webhook."""
    address = get_table(options, "telegram").get("webhook_url")
    has_own_server = "telegram_api_url" in options
    if not isinstance(address, str) or not address.startswith("http://") or has_own_server:
        return []
    return [
        "telegram.webhook_url: must begin with https://, because Telegram accepts no other "
        "address; only your own Bot API server (MNEME_TELEGRAM_API_URL) also accepts http://"
    ]


def check_memory_providers(options: Mapping[str, Any], home: Path) -> list[str]:
    """Return a problem for each misspelled memory provider that is switched on.

    An unknown name may belong to a plugin whose file is missing. Mneme starts without the plugin.
    """
    plugins = home / _PLUGINS_FOLDER
    providers = get_table(get_table(options, "memory"), "providers")
    problems = []
    for name, table in providers.items():
        is_off = isinstance(table, dict) and table.get("enabled") is False
        file = plugins / f"{name}.py"
        has_file = file.is_file() or (plugins / name / "__init__.py").is_file()
        if is_off or has_file or name in (*MEMORY_PROVIDERS, *_BUILT_IN_PROVIDERS):
            continue
        if not get_close_matches(name, MEMORY_PROVIDERS, 1, _MISSPELLED_RATIO):
            continue
        names = ", ".join(MEMORY_PROVIDERS)
        problems.append(
            f"memory.providers.{name}: there is no such memory provider; choose {names}, "
            f"or put your own into {file}"
        )
    return problems


Zone = Annotated[str, AfterValidator(_resolve_zone)]
Language = Annotated[str, AfterValidator(_check_language)]
UserId = Annotated[
    str,
    _matches(
        r"[1-9][0-9]{0,19}",
        "isn't a numeric user id; /whoami shows it (don't use names, because names can change)",
    ),
]
PersonKey = Annotated[
    str,
    _matches(
        r"(telegram|discord):[1-9][0-9]{0,19}",
        "isn't a person; write telegram:42 or discord:42, with the id that /whoami shows",
    ),
]
GroupKey = Annotated[
    str,
    _matches(
        r"(telegram:-|discord:)[1-9][0-9]{0,19}",
        "isn't a group; write discord:77 or telegram:-1001234567890 (Telegram's group ids are "
        "negative)",
    ),
]
RoleKey = Annotated[
    str,
    _matches(
        r"discord:[1-9][0-9]{0,19}",
        "isn't a role of Discord; write discord:123, with the id that Discord copies in developer "
        "mode",
    ),
]
ChatKey = Annotated[
    str,
    _matches(
        r"(telegram:-?|discord:)[1-9][0-9]{0,19}|terminal:local",
        "isn't a chat; write telegram:-1001234567890 or discord:77 for a group, "
        "telegram:42 for the chat with a person",
    ),
]
ScopeName = Annotated[
    str,
    _matches(
        r"owner|(account|room):[a-z][a-z0-9_-]{0,31}:[^\s:]{1,100}",
        "isn't a scope; write owner, account:telegram:42 or room:discord:77",
    ),
]
ProviderName = Annotated[
    str,
    _matches(
        r"[a-z][a-z0-9_]{0,39}",
        "isn't the name of a memory provider; use lower-case letters, digits and _",
    ),
]
ModelServerName = Annotated[
    str,
    _matches(
        r"[a-z][a-z0-9_-]{0,39}",
        "isn't a name for a model's server; use lower-case letters, digits, - and _",
    ),
]
Month = Annotated[
    str, _matches(r"(\d{4}-(0[1-9]|1[0-2]))?", "isn't a month; write it like 2026-11")
]
UserIds = Annotated[tuple[UserId, ...], Field(strict=False)]
People = Annotated[tuple[PersonKey, ...], Field(strict=False)]
Groups = Annotated[tuple[GroupKey, ...], Field(strict=False)]
Roles = Annotated[tuple[RoleKey, ...], Field(strict=False)]
Folder = Annotated[Path, BeforeValidator(_check_folder)]
Folders = Annotated[tuple[Folder, ...], Field(strict=False)]
# A folder. None if the settings name no folder.
OptionalFolder = Annotated[Path | None, BeforeValidator(_check_optional_folder)]
# Zero for "off".
Interval = Annotated[timedelta, BeforeValidator(_parse_interval)]
# URLs can contain a password, so they don't appear in a repr.
WebAddress = Annotated[Annotated[str, _is_url("http", "https")] | None, Field(repr=False)]
SocketAddress = Annotated[Annotated[str, _is_url("ws", "wss")] | None, Field(repr=False)]
# A web address, or an empty text.
OptionalWebAddress = Annotated[str, Field(repr=False), _is_url("http", "https", is_optional=True)]
Name = Annotated[str, Field(min_length=1)]
# The name of an environment variable that holds a key. Empty if no key is needed.
KeyVariable = Annotated[str, AfterValidator(_check_variable_name)]
# The name of a model that a server offers. May be empty.
ServedModel = Annotated[str, AfterValidator(check_model_name)]
Enabled = Literal["auto", True, False]
Count = Annotated[int, Field(ge=1, le=10**9)]
Days = Annotated[float, Field(gt=0, le=36_500, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, le=10**6, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=10**7, allow_inf_nan=False)]
# 0 or "off" means no limit.
DayLimit = Annotated[
    float, Field(ge=0, le=10**12, allow_inf_nan=False), BeforeValidator(_convert_off)
]
