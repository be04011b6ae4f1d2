"""All settings, typed and frozen: default.toml <- mneme.toml in the home <- the environment.

The only place that reads environment variables and TOML. Says everything that is wrong at once, with dotted paths;
secrets are in no message, repr or dump of it.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import tzlocal
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

DEFAULTS = Path(__file__).with_name("default.toml")
SOUL = Path(__file__).with_name("soul.md")
PLATFORMS = ("telegram", "discord")
PRIVATE = ("mneme.toml", "memories", "state.db", "state.db-wal", "state.db-shm", "mneme.log", "files")
"""What lies in a home and is for its owner's eyes only."""

ENVIRONMENT: Mapping[str, str] = {
    "home": "MNEME_HOME",
    "anthropic_api_key": "ANTHROPIC_API_KEY",
    "anthropic_base_url": "ANTHROPIC_BASE_URL",
    "telegram_token": "TELEGRAM_BOT_TOKEN",
    "telegram_api_url": "MNEME_TELEGRAM_API_URL",
    "discord_token": "DISCORD_BOT_TOKEN",
    "discord_api_url": "MNEME_DISCORD_API_URL",
    "discord_gateway_url": "MNEME_DISCORD_GATEWAY_URL",
}
"""Which variable fills which field; nothing else of the environment is looked at."""

SECRETS = ("anthropic_api_key", "telegram_token", "discord_token")


class SettingsError(ValueError):
    """Settings cannot be used; `problems` has one ``dotted.path: sentence`` for each thing that is wrong."""

    def __init__(self, problems: list[str], file: Path) -> None:
        self.problems = tuple(problems)
        count = "one thing" if len(problems) == 1 else f"{len(problems)} things"
        listed = "".join(f"\n  {problem}" for problem in problems)
        super().__init__(f"The settings have {count} to put right (options are read from {file}):{listed}")


def _zone(name: str) -> str:
    if name == "auto":
        return _local_zone()
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{name[:40]!r} is no time zone; write an IANA name like 'Europe/Lisbon', or 'auto'") from None
    return name


def _local_zone() -> str:
    """The machine's zone; UTC where the machine does not say or says something that is not a zone, as containers do."""
    try:
        name = tzlocal.get_localzone_name()
        ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        return "UTC"
    return str(name)


def _user_id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str) or not re.fullmatch(r"[1-9][0-9]{0,19}", str(value)):
        raise ValueError(
            f"{str(value)[:40]!r} is not a numeric user id; /whoami tells it (names can be taken by anybody)"
        )
    return str(value)


def _person(key: str) -> str:
    platform, number = _split(key)
    if number.startswith("-"):
        raise ValueError(f"{key!r} is a room, not a person; it belongs into the rooms")
    return f"{platform}:{number}"


def _room(key: str) -> str:
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


def _web_address(value: str) -> str:
    return _checked_url(value, ("http", "https"))


def _socket_address(value: str) -> str:
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


UserIds = Annotated[tuple[Annotated[str, BeforeValidator(_user_id)], ...], Field(strict=False)]
People = Annotated[tuple[Annotated[str, AfterValidator(_person)], ...], Field(strict=False)]
Rooms = Annotated[tuple[Annotated[str, AfterValidator(_room)], ...], Field(strict=False)]
Enabled = Literal["auto", True, False]
Count = Annotated[int, Field(gt=0, le=10**9)]
Seconds = Annotated[float, Field(gt=0, le=10**7, allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class General(_Section):
    """`zone` is always an IANA name here, also where the file says auto."""

    zone: Annotated[str, AfterValidator(_zone)]
    log_level: Literal["debug", "info", "warning", "error"]
    log_format: Literal["text", "json"]


class ModelOptions(_Section):
    """The section [model]."""

    chat: Annotated[str, Field(min_length=1)]
    cheap: Annotated[str, Field(min_length=1)]
    max_tokens: Count
    window_tokens: Annotated[int, Field(ge=8000, le=10**8)]
    max_rounds: Annotated[int, Field(gt=0, le=1000)]
    tool_timeout_s: Seconds
    tries: Annotated[int, Field(gt=0, le=100)]
    patience_s: Seconds


class Owner(_Section):
    """Numeric ids as strings."""

    telegram: UserIds
    discord: UserIds
    rooms: Rooms

    @property
    def accounts(self) -> tuple[str, ...]:
        """``"telegram:42"`` for each account."""
        return tuple(f"telegram:{id}" for id in self.telegram) + tuple(f"discord:{id}" for id in self.discord)


class Access(_Section):
    """``"telegram:42"``, ``"telegram:-1001"``, ``"discord:77"``."""

    people: People
    rooms: Rooms


class Room(_Section):
    """The section [room]."""

    listen: bool


class Turn(_Section):
    """The section [turn]."""

    answer_after_restart_s: Seconds


class MemoryOptions(_Section):
    """The section [memory]."""

    memory_chars: Count
    user_chars: Count
    prefetch_chars: Annotated[int, Field(ge=0, le=10**6)]
    prefetch_timeout_s: Seconds


class Telegram(_Section):
    """The section [telegram]."""

    enabled: Enabled


class Discord(_Section):
    """The section [discord]."""

    enabled: Enabled
    limit_chars: Annotated[int, Field(ge=100, le=4000)]
    message_content: bool


class Cron(_Section):
    """The section [cron]."""

    late_after_s: Seconds
    max_jobs: Count


class Settings(BaseSettings):
    """Everything that can be set. Make one with `Settings.load`."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", strict=True, protected_namespaces=())

    home: Path
    general: General
    model: ModelOptions
    owner: Owner
    access: Access
    room: Room
    turn: Turn
    memory: MemoryOptions
    telegram: Telegram
    discord: Discord
    cron: Cron
    anthropic_api_key: SecretStr | None = None
    telegram_token: SecretStr | None = None
    discord_token: SecretStr | None = None
    # Addresses may carry a password in front of the host, so they stay out of the repr too.
    anthropic_base_url: Annotated[str, AfterValidator(_web_address)] | None = Field(default=None, repr=False)
    telegram_api_url: Annotated[str, AfterValidator(_web_address)] | None = Field(default=None, repr=False)
    discord_api_url: Annotated[str, AfterValidator(_web_address)] | None = Field(default=None, repr=False)
    discord_gateway_url: Annotated[str, AfterValidator(_socket_address)] | None = Field(default=None, repr=False)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load` has put together counts: a stray variable called MODEL or HOME must not."""
        return (init_settings,)

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Reads all sources and makes the home (mode 0700), or closes one of ours that others can read. `environ`
        stands in for the process's environment.

        Raises SettingsError that names every problem.
        """
        variables = os.environ if environ is None else environ
        given = {field: variables.get(name, "").strip() for field, name in ENVIRONMENT.items()}
        home, problems = _home(given.pop("home") or "~/.mneme")
        file = home / "mneme.toml"
        options, wrong = _options(cls, file)
        for field, value in given.items():
            if value:
                options[field] = SecretStr(value) if field in SECRETS else value
        problems += wrong
        problems += _missing(options)
        try:
            settings = cls(**options, home=home)
        except ValidationError as error:
            problems += [_problem(detail) for detail in error.errors(include_url=False, include_context=True)]
            raise SettingsError(problems, file) from None
        if problems:
            raise SettingsError(problems, file)
        return settings

    @property
    def is_telegram_on(self) -> bool:
        """Whether to connect to Telegram."""
        return self.telegram.enabled is not False and self.telegram_token is not None

    @property
    def is_discord_on(self) -> bool:
        """Whether to connect to Discord."""
        return self.discord.enabled is not False and self.discord_token is not None

    def secrets(self) -> tuple[str, ...]:
        """The secrets in clear, for who has to keep them out of a log."""
        held: list[SecretStr | None] = [getattr(self, field) for field in SECRETS]
        return tuple(secret.get_secret_value() for secret in held if secret is not None)


def _home(name: str) -> tuple[Path, list[str]]:
    """The home, made if need be, and what is wrong with it."""
    home = Path(name)
    try:
        home = home.expanduser().absolute()
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        return home, [f"MNEME_HOME: the folder {home} cannot be made ({error.strerror}); name another one"]
    except RuntimeError:
        return home.absolute(), [f"MNEME_HOME: there is no user as in {name}; name another folder"]
    _close(home)
    return home, []


def _close(home: Path) -> None:
    """Takes from others the rights to the home and to what lies in it, where it is ours to do so. A home that is more
    than Mneme's (the user's own folder, one above it, /tmp) is left as it is; `mneme check` says so."""
    shared: tuple[Path, ...] = ()
    with contextlib.suppress(RuntimeError):
        shared = (Path.home(), *Path.home().parents)
    for path in (home, *(home / name for name in PRIVATE)):
        with contextlib.suppress(OSError):
            found = path.stat()
            is_shared = path == home and (path.resolve() in shared or bool(found.st_mode & stat.S_ISVTX))
            if found.st_uid == os.geteuid() and found.st_mode & 0o077 and not is_shared:
                path.chmod(stat.S_IMODE(found.st_mode) & ~0o077)


def _options(settings: type[Settings], file: Path) -> tuple[dict[str, Any], list[str]]:
    """default.toml with mneme.toml laid over it, and what is wrong with the latter as a whole."""
    try:
        TomlConfigSettingsSource(settings, toml_file=file)
        files, problems = [DEFAULTS, file], []
        if file.exists() and not file.is_file():
            problems = [f"{file.name}: is not a file; write the options into a text file of this name"]
    except tomllib.TOMLDecodeError as error:
        files, problems = [DEFAULTS], [f"{file.name}: is not valid TOML: {error}"]
    except UnicodeDecodeError:
        files, problems = [DEFAULTS], [f"{file.name}: is not UTF-8 text; save it as such"]
    except OSError as error:
        files, problems = [DEFAULTS], [f"{file.name}: cannot be read: {error.strerror}"]
    options = dict(TomlConfigSettingsSource(settings, toml_file=files, deep_merge=True)())
    for field, variable in ENVIRONMENT.items():
        if options.pop(field, None) is not None:
            problems.append(f"{field}: is no option; set the environment variable {variable} instead")
    return options, problems


def _missing(options: Mapping[str, Any]) -> Iterator[str]:
    for platform in PLATFORMS:
        section = options.get(platform)
        if isinstance(section, dict) and section.get("enabled") is True and f"{platform}_token" not in options:
            variable = ENVIRONMENT[f"{platform}_token"]
            yield f"{platform}.enabled: is true, but there is no token; set the environment variable {variable}"


_EXPECTED: Mapping[str, str] = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a number, neither nan nor inf",
    "string_type": "a text in quotes",
    "tuple_type": "a list in brackets",
    "missing": "there; it is gone from config/default.toml",
}
"""What pydantic's kinds of error ask for, in the words of somebody who edits TOML."""


def _problem(detail: Any) -> str:
    """One pydantic finding as ``dotted.path: sentence``; values are left out, because they may be secrets."""
    first, *rest = detail["loc"]
    path = ENVIRONMENT.get(first, first) + "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest
    )
    kind = detail["type"]
    if kind == "extra_forbidden":
        return f"{path}: is not an option; config/default.toml has them all"
    if kind == "value_error":
        return f"{path}: {detail['ctx']['error']}"
    if kind in ("model_type", "model_attributes_type"):
        return f"{path}: should be a table, written [{path}]"
    if kind == "literal_error":
        listed = str(detail["ctx"]["expected"]).replace("'", '"')
        return f"{path}: should be {re.sub('True|False', lambda found: found[0].lower(), listed)}"
    expected = _EXPECTED.get(kind)
    return f"{path}: should be {expected}" if expected else f"{path}: {str(detail['msg']).removeprefix('Input ')}"
