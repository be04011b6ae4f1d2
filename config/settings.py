"""All settings, typed and frozen: default.toml <- mneme.toml in the home <- the environment, which nothing else reads.

Says everything that is wrong at once, with dotted paths; secrets are in no message, repr or dump of it.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import tzlocal
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from config.masking import hide, masked

DEFAULTS, PROBLEMS, SOUL = map(Path(__file__).with_name, ("default.toml", "problems.toml", "soul.md"))
PLATFORMS = ("telegram", "discord")

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
"""The field that a variable fills; nothing else of the environment is read."""

SECRETS = ("anthropic_api_key", "telegram_token", "discord_token")


class SettingsError(ValueError):
    """Settings cannot be used; `problems` has one ``dotted.path: sentence`` for each thing that is wrong."""

    def __init__(self, problems: list[str], file: Path) -> None:
        self.problems = tuple(map(masked, problems))
        count = "one thing" if len(problems) == 1 else f"{len(problems)} things"
        listed = "".join(f"\n  {problem}" for problem in self.problems)
        super().__init__(f"The settings have {count} to put right (options are read from {file}):{listed}")


def hand_over(variables: Mapping[str, str]) -> None:
    """For a library that reads its own settings from the environment, before it is loaded."""
    os.environ.update(variables)


def passed_on(names: Sequence[str]) -> dict[str, str]:
    """Those of these variables that there are, for a program that gets no others."""
    return {name: os.environ[name] for name in names if name in os.environ}


def _zone(name: str) -> str:
    """The name of a zone; for auto the machine's, or UTC where it has none, as in containers."""
    try:
        zone = (tzlocal.get_localzone_name() or "UTC") if name == "auto" else name
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{name[:40]!r} is no time zone; write an IANA name like 'Europe/Lisbon', or 'auto'") from None
    return zone


def _of_form(pattern: str, advice: str) -> BeforeValidator:
    """A text or a whole number of this form, as a text."""

    def check(value: object) -> str:
        is_plain = isinstance(value, int | str) and not isinstance(value, bool)
        if not is_plain or not re.fullmatch(pattern, str(value)):
            raise ValueError(f"{str(value)[:40]!r} {advice}")
        return str(value)

    return BeforeValidator(check)


def _address(*schemes: str, is_optional: bool = False) -> AfterValidator:
    def check(value: str) -> str:
        if is_optional and not value:
            return value
        try:
            parts = urlsplit(value)
            is_good = parts.scheme in schemes and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            is_good = False
        if not is_good:
            raise ValueError(f"is not an address; write {schemes[0]}://host:port or {schemes[1]}://host")
        return value.rstrip("/")

    return AfterValidator(check)


def _folder(value: object) -> Path:
    folder = Path(os.path.expanduser(value)) if isinstance(value, str) and value.startswith(("/", "~/")) else None
    if folder is None:
        raise ValueError(f"{str(value)[:80]!r} is no folder; write its whole path, from / or ~/ on")
    return folder


_USER_ID = _of_form(r"[1-9][0-9]{0,19}", "is not a numeric user id; /whoami tells it (names can be taken by anybody)")
_PERSON = _of_form(
    r"(telegram|discord):[1-9][0-9]{0,19}",
    "is no person; write telegram:42 or discord:42, with the id that /whoami tells",
)
_ROOM = _of_form(
    r"(telegram:-|discord:)[1-9][0-9]{0,19}",
    "is no room; write discord:77, or telegram:-1001234567890: ids of its groups are negative",
)
_CHAT = _of_form(
    r"(telegram:-?|discord:)[1-9][0-9]{0,19}|terminal:local",
    "is no chat; write telegram:-1001234567890 or discord:77 for a room, telegram:42 for the chat with a person",
)
_PROVIDER = _of_form(r"[a-z][a-z0-9_]{0,39}", "is no name of a memory provider: small letters, digits and _")
UserIds = Annotated[tuple[Annotated[str, _USER_ID], ...], Field(strict=False)]
People = Annotated[tuple[Annotated[str, _PERSON], ...], Field(strict=False)]
Rooms = Annotated[tuple[Annotated[str, _ROOM], ...], Field(strict=False)]
Folders = Annotated[tuple[Annotated[Path, BeforeValidator(_folder)], ...], Field(strict=False)]
# Addresses may carry a password in front of the host, so they stay out of the repr too.
WebAddress = Annotated[Annotated[str, _address("http", "https")] | None, Field(repr=False)]
SocketAddress = Annotated[Annotated[str, _address("ws", "wss")] | None, Field(repr=False)]
Name = Annotated[str, Field(min_length=1)]
Enabled = Literal["auto", True, False]
CacheLife = Literal["5m", "1h"]
Count = Annotated[int, Field(gt=0, le=10**9)]
Days = Annotated[float, Field(gt=0, le=36_500, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, le=10**6, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=10**7, allow_inf_nan=False)]
Limited = Literal["answers", "input_tokens", "output_tokens", "money", "scheduled_questions", "reminders", "files"]
_OFF = BeforeValidator(lambda value: 0 if value == "off" else value)
DayLimits = Mapping[Limited, Annotated[float, Field(ge=0, le=10**12, allow_inf_nan=False), _OFF]]
"""The most of each in a day; 0: no limit."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class General(_Section):
    """`zone` is always an IANA name here, also where the file says auto."""

    zone: Annotated[str, AfterValidator(_zone)]
    log_level: Literal["debug", "info", "warning", "error"]
    log_format: Literal["text", "json"]


class ModelOptions(_Section):
    chat: Name
    helper: Name
    max_tokens: Count
    window_tokens: Annotated[int, Field(ge=8000, le=10**8)]
    windows: Mapping[str, Annotated[int, Field(ge=8000, le=10**8)]]
    max_rounds: Annotated[int, Field(gt=0, le=1000)]
    cache: CacheLife
    tool_timeout_s: Seconds
    tries: Annotated[int, Field(gt=0, le=100)]
    patience_s: Seconds


class CompressionOptions(_Section):
    threshold: Annotated[float, Field(ge=0.2, le=0.95)]


class Owner(_Section):
    telegram: UserIds
    discord: UserIds
    rooms: Rooms

    @property
    def accounts(self) -> tuple[str, ...]:
        """``"telegram:42"`` for each account."""
        return tuple(f"{platform}:{id}" for platform in PLATFORMS for id in getattr(self, platform))


class Access(_Section):
    """``"telegram:42"``, ``"telegram:-1001"``, ``"discord:77"``."""

    people: People
    rooms: Rooms


class Room(_Section):
    listen: bool


class Turn(_Section):
    answer_after_restart_s: Seconds


class ProviderOptions(BaseModel):
    """A section [memory.providers.NAME]; the provider checks the options of its own."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    enabled: bool = True
    mode: Literal["hybrid", "context", "tools"] = "hybrid"
    sync_every_turns: int = 1
    """Of earlier versions; each turn is told by itself."""


class Price(_Section):
    """What a million tokens cost; `cache_write` for 5 minutes, `cache_write_hour` None where it is the same."""

    input: Amount
    output: Amount
    cache_write: Amount
    cache_write_hour: Amount | None = None
    cache_read: Amount


class UsageOptions(_Section):
    currency: Annotated[str, Field(min_length=1, max_length=10)]
    prices: Mapping[str, Price]


class MemoryOptions(_Section):
    memory_chars: Count
    user_chars: Count
    prefetch_chars: Annotated[int, Field(ge=0, le=10**6)]
    prefetch_timeout_s: Seconds
    max_external: Annotated[int, Field(ge=0, le=100)]
    providers: dict[Annotated[str, _PROVIDER], ProviderOptions]
    engines: dict[Literal["hindsight"], dict[str, str | int]]
    facts: bool
    project_half_life_days: Days
    episode_half_life_days: Days
    working_half_life_days: Days


class FactOptions(_Section):
    hrr_weight: Annotated[float, Field(ge=0, le=1)]


class SkillOptions(_Section):
    folders: Folders
    index_chars: Count


class ContextOptions(_Section):
    folders: Folders
    file_chars: Annotated[int, Field(ge=1_000, le=45_000)]


class ChatOptions(_Section):
    """Of one chat; with `folders` of its own it is given context files whoever is in it."""

    instructions: Annotated[str, Field(max_length=20_000)] = ""
    folders: Folders = ()


class Telegram(_Section):
    enabled: Enabled


class Discord(_Section):
    enabled: Enabled
    message_content: bool


class SessionOptions(_Section):
    idle_hours: Annotated[float, Field(ge=0, le=100_000)]
    daily_at: Annotated[str, Field(pattern=r"^(([01]\d|2[0-3]):[0-5]\d)?$")]


class Cron(_Section):
    late_after_s: Seconds


class Delegation(_Section):
    max_rounds: Annotated[int, Field(ge=0, le=1000)]
    max_tokens: Count
    patience_s: Seconds


class Limits(_Section):
    turns_per_minute: Count
    room_turns_per_minute: Count
    commands_per_minute: Count
    jobs: Count
    scheduled_questions: Annotated[int, Field(ge=0, le=10**6)]
    question_every_s: Annotated[float, Field(ge=0, le=10**7)]
    room_questions: bool
    day: DayLimits
    room_day: DayLimits
    day_for_owner: bool


class EmbeddingOptions(_Section):
    """`url` is empty where there is none. `key`: the name of an environment variable, where the server wants one."""

    url: Annotated[str, Field(repr=False), _address("http", "https", is_optional=True)]
    model: str
    key: str
    query_prefix: str
    passage_prefix: str

    @field_validator("model")
    @classmethod
    def _is_named(cls, model: str, found: ValidationInfo) -> str:
        if found.data.get("url") and not model:
            raise ValueError("name the model that the server is to use")
        return model

    @field_validator("key")
    @classmethod
    def _is_variable(cls, name: str) -> str:
        # What was written may be the key itself, so it is not repeated.
        if name and not re.fullmatch(r"[A-Z][A-Z0-9_]+", name):
            raise ValueError(
                'write the name of an environment variable that holds the key, such as "EMBEDDINGS_API_KEY"'
            )
        return name


class RecallOptions(_Section):
    expand: bool
    rerank: bool
    embeddings: EmbeddingOptions


class Settings(_Section):
    """Everything that can be set. Make one with `Settings.load`."""

    home: Path
    general: General
    model: ModelOptions
    compression: CompressionOptions
    sessions: SessionOptions
    owner: Owner
    access: Access
    room: Room
    turn: Turn
    usage: UsageOptions
    memory: MemoryOptions
    facts: FactOptions
    recall: RecallOptions
    skills: SkillOptions
    context: ContextOptions
    chats: Mapping[Annotated[str, _CHAT], ChatOptions]
    telegram: Telegram
    discord: Discord
    cron: Cron
    delegation: Delegation
    limits: Limits
    anthropic_api_key: SecretStr | None = None
    telegram_token: SecretStr | None = None
    discord_token: SecretStr | None = None
    anthropic_base_url: WebAddress = None
    telegram_api_url: WebAddress = None
    discord_api_url: WebAddress = None
    discord_gateway_url: SocketAddress = None
    variables: Mapping[str, SecretStr] = Field(default={}, repr=False)
    """Of the environment, what the options of memory providers name."""
    advice: str = ""
    """What to change in mneme.toml, which works as it is."""

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Reads all sources and makes the home (mode 0700). `environ` stands in for the process's environment. Raises
        SettingsError that names every problem."""
        variables = os.environ if environ is None else environ
        given = {field: variables.get(name, "").strip() for field, name in ENVIRONMENT.items()}
        home = _home(given.pop("home") or "~/.mneme")
        file = home / "mneme.toml"
        options, problems = _options(file)
        for field, value in given.items():
            if value:
                options[field] = SecretStr(value) if field in SECRETS else value
        options["variables"] = {name: SecretStr(variables[name]) for name in _named(options) if variables.get(name)}
        for name in PLATFORMS:
            token = f"{name}_token"
            if _table(options, name).get("enabled") is True and token not in options:
                unset = ENVIRONMENT[token]
                problems.append(f"{name}.enabled: is true, but there is no token; set the environment variable {unset}")
        try:
            settings = cls(**options, home=home)
        except ValidationError as error:
            problems += map(_problem, error.errors(include_url=False))
            raise SettingsError(problems, file) from None
        if problems:
            raise SettingsError(problems, file)
        hide(settings.secrets())
        return settings

    @property
    def has_model(self) -> bool:
        return self.anthropic_api_key is not None or self.anthropic_base_url is not None

    @property
    def platforms(self) -> dict[str, str]:
        """Those that are on, each with its token in clear."""
        tokens = {"telegram": self.telegram_token, "discord": self.discord_token}
        is_on = {"telegram": self.telegram.enabled, "discord": self.discord.enabled}
        return {name: token.get_secret_value() for name, token in tokens.items() if token and is_on[name]}

    def secrets(self) -> tuple[str, ...]:
        """The secrets in clear, to keep them out of errors and the log."""
        held: list[SecretStr | None] = [*(getattr(self, field) for field in SECRETS), *self.variables.values()]
        return tuple(secret.get_secret_value() for secret in held if secret is not None)


def _home(name: str) -> Path:
    """The folder, made where it is missing. Other users' rights to it are taken away, unless it is more than Mneme's:
    the user's own folder, or /tmp."""
    home = Path(name)
    try:
        home = home.expanduser().absolute()
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        problem = f"MNEME_HOME: the folder {home} cannot be made ({reason}); name another one"
        raise SettingsError([problem], home / "mneme.toml") from error
    with contextlib.suppress(OSError, RuntimeError):
        found = home.stat()
        is_shared = home.resolve() in (Path.home(), *Path.home().parents) or bool(found.st_mode & stat.S_ISVTX)
        if found.st_uid == os.geteuid() and found.st_mode & 0o077 and not is_shared:
            home.chmod(0o700)
    return home


def _options(file: Path) -> tuple[dict[str, Any], list[str]]:
    """default.toml with mneme.toml laid over it, and the problems of the latter."""
    options, problems = tomllib.loads(DEFAULTS.read_text(encoding="utf-8")), []
    advice = ""
    try:
        if file.exists():
            own = tomllib.loads(file.read_text(encoding="utf-8"))
            for old, new in (("model.cheap", "model.helper"), ("cron.max_jobs", "limits.jobs")):
                (section, name), (now_in, now) = old.split("."), new.split(".")
                if name in (table := _table(own, section)):
                    _table(options, now_in)[now] = table.pop(name)
                    advice += f"{old} is now called {new}; rename it in mneme.toml. "
            own.pop("curator", None)  # What earlier versions did while nobody was there.
            _table(own, "memory").pop("nudge_after", None)  # They reminded the model of its notes.
            _table(own, "discord").pop("limit_chars", None)  # Not all kinds of messages took more.
            _lay_over(options, own)
    except tomllib.TOMLDecodeError as error:
        problems = [f"{file.name}: is not valid TOML: {error}"]
    except UnicodeDecodeError:
        problems = [f"{file.name}: is not UTF-8 text; save it as such"]
    except OSError as error:
        problems = [f"{file.name}: cannot be read: {error.strerror}"]
    for field, variable in ENVIRONMENT.items():
        if options.pop(field, None) is not None:
            problems.append(f"{field}: is no option; set the environment variable {variable} instead")
    return {**options, "advice": advice.strip()}, problems


def _lay_over(options: dict[str, Any], own: Mapping[str, Any]) -> None:
    for name, value in own.items():
        if isinstance(value, dict) and isinstance(options.get(name), dict):
            _lay_over(options[name], value)
        else:
            options[name] = value


def _table(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The table of this name; empty where there is none, or something else."""
    found = options.get(name)
    return found if isinstance(found, dict) else {}


def _named(options: Mapping[str, Any]) -> Iterator[str]:
    """What looks like the name of an environment variable among the options of memory providers and engines, and of
    recall."""
    groups = [_table(_table(options, "memory"), group) for group in ("providers", "engines")]
    groups.append(_table(options, "recall"))
    for value in [value for group in groups for name in group for value in _table(group, name).values()]:
        if isinstance(value, str) and re.fullmatch(r"[A-Z][A-Z0-9_]+", value):
            yield value


def _problem(detail: Any) -> str:
    first, *rest = detail["loc"]
    path = ENVIRONMENT.get(first, first) + "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest if part != "[key]"
    )
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "literal_error":
        listed = str(context["expected"]).replace("'", '"')
        return f"{path}: should be {re.sub('True|False', lambda found: found[0].lower(), listed)}"
    if said := tomllib.loads(PROBLEMS.read_text(encoding="utf-8")).get(kind):
        return f"{path}: {said.format(path=path, error=context.get('error'))}"
    return f"{path}: {str(detail['msg']).removeprefix('Input ')}"
