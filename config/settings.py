"""Reads all settings: `Settings.load` returns them as typed, immutable objects.

default.toml contains the defaults, and mneme.toml in the home overrides them. Secrets and addresses
come from secrets.env in the home and from environment variables, which override the file. Outside
of this package, no module reads the environment. An error lists all problems with the dotted paths
of their options. Secrets never appear in an error or a repr.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from config.field_types import (
    ChatKey,
    Count,
    DayLimit,
    Days,
    Enabled,
    Folders,
    Groups,
    KeyVariable,
    Language,
    MachineZone,
    OptionalWebAddress,
    People,
    ProviderName,
    Roles,
    Seconds,
    SocketAddress,
    UserIds,
    WebAddress,
    Zone,
    check_memory_providers,
    check_model_name,
    check_webhook,
)
from config.locating import (
    drop_obsolete_options,
    find_line,
    find_similar_name,
    list_option_paths,
    rename_options,
    suggest_name,
)
from config.masking import mask_secrets, register_secrets
from config.media_options import MediaOptions
from config.model_options import DEFAULT_SERVER, ModelOptions, ModelServer, UsageOptions
from config.secrets_file import SECRETS_FILE, read_secrets
from config.tool_options import CalendarSource, McpServer, SourceName, WebToolOptions
from config.upkeep_options import (
    BackupOptions,
    MetricsOptions,
    PageOptions,
    RetentionOptions,
    StoreOptions,
)
from config.variables import get_table, list_named_variables

SETTINGS_FILE = "mneme.toml"
DEFAULTS = Path(__file__).with_name("default.toml")
MODEL_SERVERS = Path(__file__).with_name("model_servers.toml")
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
PROBLEMS = Path(__file__).with_name("problems.toml")
SOUL = Path(__file__).with_name("soul.md")
PLATFORMS = ("telegram", "discord")
# The environment variable for each field of `Settings` that isn't in mneme.toml.
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
SECRETS = ("anthropic_api_key", "telegram_token", "discord_token")
# Options of [model] that may be lists, with the options for all names after the first.
_FALLBACK_OPTIONS = {"chat": "fallbacks", "helper": "helper_fallbacks"}

LimitedResource = Literal[
    "answers",
    "input_tokens",
    "output_tokens",
    "money",
    # The input and output of models without a price.
    "tokens",
    "scheduled_questions",
    "reminders",
    "files",
]
# The daily limit of each resource. 0 means no limit.
DayLimits = Mapping[LimitedResource, DayLimit]


class SettingsError(ValueError):
    """Raised if the settings are invalid.

    `problems` has ``dotted.path: explanation`` for each mistake. `located_problems` also have the
    line in mneme.toml, if it's known.
    """

    def __init__(self, problems: list[str], file: Path, text: str = "") -> None:
        self.file = file
        self.problems = tuple(mask_secrets(_name_list(problem, text)) for problem in problems)
        self.located_problems = tuple(_add_line(problem, text) for problem in self.problems)
        count = "a mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
        lines = "".join(f"\n  {problem}" for problem in self.located_problems)
        super().__init__(f"The settings have {count} (options are read from {file}):{lines}")


def _name_list(problem: str, text: str) -> str:
    """Return a problem of a fallback with its place in the list as written: `model.chat[1]`."""
    for name, fallbacks in _FALLBACK_OPTIONS.items():
        match = re.match(rf"model\.{fallbacks}\[(\d+)\]", problem)
        if match and not re.search(rf"(?m)^\s*(model\.)?{fallbacks}\s*=", text):
            return f"model.{name}[{int(match[1]) + 1}]{problem[match.end() :]}"
    return problem


def _add_line(problem: str, text: str) -> str:
    """Return the problem with its line in mneme.toml: ``model.tries: should be … (line 7)``."""
    line = find_line(text, problem.partition(": ")[0]) if text else None
    return problem if line is None else f"{problem} (line {line})"


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class GeneralOptions(_Section):
    # An IANA name, even if mneme.toml has "auto".
    zone: Zone
    # "auto": the language of the shell.
    language: Language
    log_level: Literal["debug", "info", "warning", "error"]
    log_format: Literal["text", "json"]

    @property
    def is_zone_chosen(self) -> bool:
        """Whether mneme.toml names the zone, instead of "auto"."""
        return not isinstance(self.zone, MachineZone)


class CompressionOptions(_Section):
    threshold: Annotated[float, Field(ge=0.2, le=0.95)]


class OwnerOptions(_Section):
    telegram: UserIds
    discord: UserIds
    rooms: Groups

    @property
    def accounts(self) -> tuple[str, ...]:
        """The keys of all accounts, such as ``"telegram:42"``."""
        keys = [f"telegram:{user_id}" for user_id in self.telegram]
        keys += [f"discord:{user_id}" for user_id in self.discord]
        return tuple(keys)


class AccessOptions(_Section):
    # Keys such as "telegram:42".
    people: People
    # Keys such as "telegram:-1001" and "discord:77".
    rooms: Groups
    # Keys such as "discord:123".
    roles: Roles


class GroupOptions(_Section):
    listen: bool


class TurnOptions(_Section):
    answer_after_restart_s: Seconds
    working_reaction: bool
    gather_s: Annotated[float, Field(ge=0, le=1.2)]
    while_answering: Literal["join", "queue", "interrupt"]
    error_replies: Literal["everywhere", "direct", "never"]


class ProviderOptions(BaseModel):
    """A section [memory.providers.NAME]. The provider itself checks all other options."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    enabled: bool = True
    mode: Literal["hybrid", "context", "tools"] = "hybrid"
    # An option of earlier versions that is ignored: every turn is synced.
    sync_every_turns: int = 1


class MemoryOptions(_Section):
    memory_chars: Count
    user_chars: Count
    prefetch_chars: Annotated[int, Field(ge=0, le=10**6)]
    prefetch_timeout_s: Seconds
    max_external: Annotated[int, Field(ge=0, le=100)]
    providers: dict[ProviderName, ProviderOptions]
    engines: dict[Literal["hindsight"], dict[str, str | int]]
    facts: bool
    review_turns: Annotated[int, Field(ge=0, le=10**6)]
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
    """The options of one chat.

    The context files in `folders` are used in this chat even if other people can read it.
    """

    instructions: Annotated[str, Field(max_length=20_000)] = ""
    folders: Folders = ()


class TelegramOptions(_Section):
    enabled: Enabled
    webhook_url: Annotated[str, Field(pattern=r"^(https?://.+)?$")]
    webhook_listen: Annotated[str, Field(pattern=r"^.+:\d{1,5}$")]


class DiscordOptions(_Section):
    enabled: Enabled
    message_content: bool
    auto_threads: bool
    max_lines: Annotated[int, Field(ge=0, le=1000)]
    presence: Annotated[str, Field(max_length=128)]


class SessionOptions(_Section):
    idle_hours: Annotated[float, Field(ge=0, le=100_000)]
    daily_at: Annotated[str, Field(pattern=r"^(([01]\d|2[0-3]):[0-5]\d)?$")]


class CronOptions(_Section):
    late_after_s: Seconds


class DelegationOptions(_Section):
    max_rounds: Annotated[int, Field(ge=0, le=100)]
    max_tokens: Count
    patience_s: Seconds


class LimitOptions(_Section):
    turns_per_minute: Count
    room_turns_per_minute: Count
    commands_per_minute: Count
    jobs: Count
    scheduled_questions: Annotated[int, Field(ge=0, le=10**6)]
    question_every_s: Annotated[float, Field(ge=0, le=10**7)]
    planned_question_every_s: Annotated[float, Field(ge=0, le=10**7)]
    room_questions: bool
    day: DayLimits
    room_day: DayLimits
    day_for_owner: bool
    owner_day: Mapping[Literal["money", "tokens"], DayLimit]


class EmbeddingOptions(_Section):
    # Empty if there is no server.
    url: OptionalWebAddress
    model: str
    # The name of an environment variable. Empty if the server needs no key.
    key: KeyVariable
    query_prefix: str
    passage_prefix: str

    @field_validator("model")
    @classmethod
    def _check_model(cls, model: str, info: ValidationInfo) -> str:
        if info.data.get("url") and not model:
            raise ValueError("write the name of the model that the server should use")
        return check_model_name(model)


class RecallOptions(_Section):
    expand: bool
    rerank: bool
    background: bool
    embeddings: EmbeddingOptions


class Settings(_Section):
    """All settings. Create an object with `Settings.load`."""

    home: Path
    general: GeneralOptions
    model: ModelOptions
    compression: CompressionOptions
    sessions: SessionOptions
    owner: OwnerOptions
    access: AccessOptions
    room: GroupOptions
    turn: TurnOptions
    usage: UsageOptions
    memory: MemoryOptions
    facts: FactOptions
    recall: RecallOptions
    web_tools: WebToolOptions
    mcp: Mapping[SourceName, McpServer]
    calendar: Mapping[SourceName, CalendarSource]
    skills: SkillOptions
    context: ContextOptions
    chats: Mapping[ChatKey, ChatOptions]
    telegram: TelegramOptions
    discord: DiscordOptions
    cron: CronOptions
    delegation: DelegationOptions
    limits: LimitOptions
    backup: BackupOptions
    media: MediaOptions
    retention: RetentionOptions
    metrics: MetricsOptions
    web: PageOptions
    store: StoreOptions
    anthropic_api_key: SecretStr | None = None
    telegram_token: SecretStr | None = None
    discord_token: SecretStr | None = None
    anthropic_base_url: WebAddress = None
    telegram_api_url: WebAddress = None
    discord_api_url: WebAddress = None
    discord_gateway_url: SocketAddress = None
    # The environment variables that other options name.
    variables: Mapping[str, SecretStr] = Field(default={}, repr=False)
    # Advice on options in mneme.toml that still work but should be changed.
    advice: str = ""

    @classmethod
    def load(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        own_text: str | None = None,
        own_secrets: Mapping[str, str] | None = None,
    ) -> Settings:
        """Read all settings, and create the home with mode 0700 if it's missing.

        `environ` replaces the environment of the process, `own_text` the text of mneme.toml, and
        `own_secrets` the content of secrets.env. Raises SettingsError with all problems if the
        settings are invalid.
        """
        environment = os.environ if environ is None else environ
        home = find_home(environment)
        secrets, secret_problems = read_secrets(home / SECRETS_FILE)
        if own_secrets is not None:
            secrets = dict(own_secrets)
        variables = secrets | {name: value for name, value in environment.items() if value.strip()}
        values = {field: variables.get(name, "").strip() for field, name in ENVIRONMENT.items()}
        del values["home"]
        file = home / SETTINGS_FILE
        text, problems = _read_text(file) if own_text is None else (own_text, [])
        options, option_problems = read_options(file.name, text)
        problems += [*option_problems, *secret_problems]
        for field, value in values.items():
            if value:
                options[field] = SecretStr(value) if field in SECRETS else value
        options["variables"] = {
            name: SecretStr(variables[name].strip())
            for name in list_named_variables(options)
            if variables.get(name, "").strip()
        }
        problems += _check_tokens(options)
        problems += check_webhook(options)
        problems += check_memory_providers(options, home)
        try:
            settings = cls(**options, home=home)
        except ValidationError as error:
            problems += map(_describe_problem, error.errors(include_url=False))
            raise SettingsError(problems, file, text) from None
        if problems:
            raise SettingsError(problems, file, text)
        register_secrets(settings.secret_values())
        return settings

    @property
    def has_model(self) -> bool:
        """Return whether a chat model is configured and the key of its server is available."""
        return any(
            not self.missing_key(self.model.split_name(name)[0]) for name in self.model.chat_models
        )

    def missing_key(self, server: str) -> str:
        """Return the environment variable that is missing for a model's server, or "".

        A server at ANTHROPIC_BASE_URL may not need a key.
        """
        key = self.model.servers[server].key
        if server == DEFAULT_SERVER:
            has_access = self.anthropic_api_key is not None or self.anthropic_base_url is not None
        else:
            has_access = not key or key in self.variables
        return "" if has_access else key

    @property
    def platform_tokens(self) -> dict[str, str]:
        """The tokens of the enabled platforms, by platform, as plain text."""
        tokens = {}
        if self.telegram_token and self.telegram.enabled:
            tokens["telegram"] = self.telegram_token.get_secret_value()
        if self.discord_token and self.discord.enabled:
            tokens["discord"] = self.discord_token.get_secret_value()
        return tokens

    def secret_values(self) -> tuple[str, ...]:
        """Return all secrets as plain text, so that they can be masked in errors and in the log."""
        secrets: list[SecretStr | None] = [getattr(self, field) for field in SECRETS]
        secrets += self.variables.values()
        values = [secret.get_secret_value() for secret in secrets if secret is not None]
        return tuple(dict.fromkeys(values))


def find_home(environ: Mapping[str, str] | None = None) -> Path:
    """Return the home, and create it if it's missing. Raises SettingsError if it can't be created.

    `environ` replaces the environment of the process.
    """
    variables = os.environ if environ is None else environ
    return _prepare_home(variables.get(ENVIRONMENT["home"], "").strip() or "~/.mneme")


def list_environment_names(names: Sequence[str]) -> list[str]:
    """Return the names that are set as environment variables. They override secrets.env."""
    return [name for name in names if os.environ.get(name, "").strip()]


def _prepare_home(name: str) -> Path:
    """Create the home if it's missing, remove other users' access to it, and return its path.

    The permissions aren't changed if the folder also has other uses, such as the user's home folder
    or /tmp. Raises SettingsError if the folder can't be created or used.
    """
    home = Path(name)
    if _CONTROL_CHARACTER.search(name):
        # Files of other programs, such as the service's, name the home in one line.
        problem = "MNEME_HOME: has a line break or another control character; choose another folder"
        raise SettingsError([problem], home / "mneme.toml")
    try:
        home = home.expanduser().absolute()
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        problem = (
            f"MNEME_HOME: the folder {home} can't be created ({reason}); choose another folder"
        )
        raise SettingsError([problem], home / "mneme.toml") from error
    with contextlib.suppress(OSError, RuntimeError):
        status = home.stat()
        is_own = status.st_uid == os.geteuid()
        is_open_to_others = bool(status.st_mode & 0o077)
        has_sticky_bit = bool(status.st_mode & stat.S_ISVTX)
        contains_user_folder = home.resolve() in (Path.home(), *Path.home().parents)
        if is_own and is_open_to_others and not has_sticky_bit and not contains_user_folder:
            home.chmod(0o700)
    return home


def _read_text(file: Path) -> tuple[str, list[str]]:
    """Return the text of mneme.toml and a list of problems.

    The text is empty if the file is missing.
    """
    try:
        return (file.read_text(encoding="utf-8") if file.exists() else ""), []
    except UnicodeDecodeError:
        return "", [f"{file.name}: isn't UTF-8 text; save it as UTF-8"]
    except OSError as error:
        return "", [f"{file.name}: can't be read: {error.strerror}"]


def load_default_options() -> dict[str, Any]:
    """Return the options of default.toml with the model servers that Mneme knows."""
    options: dict[str, Any] = json.loads(_read_default_options())
    return options


@cache
def _read_default_options() -> str:
    """Return the default options as JSON, which is read faster than TOML."""
    options = tomllib.loads(DEFAULTS.read_text(encoding="utf-8"))
    options["model"]["servers"] = tomllib.loads(MODEL_SERVERS.read_text(encoding="utf-8"))
    return json.dumps(options)


def read_options(file_name: str, text: str) -> tuple[dict[str, Any], list[str]]:
    """Return the merged options of default.toml and mneme.toml, and a list of problems."""
    options = load_default_options()
    problems = []
    advice = ""
    try:
        own_options = tomllib.loads(text)
        advice = rename_options(own_options)
        drop_obsolete_options(own_options)
        _override_options(options, own_options)
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{file_name}: isn't valid TOML: {error}")
    _complete_model_names(get_table(options, "model"))
    for field, variable in ENVIRONMENT.items():
        if options.pop(field, None) is not None:
            problems.append(
                f"{field}: isn't an option; set {variable} in {SECRETS_FILE} or in the environment"
            )
    hint = _advise_server(get_table(options, "model"))
    options["advice"] = " ".join(sentence for sentence in (advice, hint) if sentence)
    return options, problems


def _complete_model_names(model: dict[str, Any]) -> None:
    """Split lists of models into the first model and its fallbacks, and set the helper models.

    If the helper model is "" (the default), it becomes the small model of the chat model's server,
    or the chat model itself. Its fallbacks are then the small models of the chat model's fallbacks,
    unless the settings name others.
    """
    for name in ("chat", "helper"):
        names = model.get(name)
        if names == []:
            model[name] = ""
        elif isinstance(names, list):
            model[name], *model[_FALLBACK_OPTIONS[name]] = names
    if model.get("helper") != "":
        return
    chat = model.get("chat")
    # A mistake is reported for the chat model only.
    model["helper"] = _find_helper(model, chat if isinstance(chat, str) else DEFAULT_SERVER)
    fallbacks = model.get("fallbacks")
    if isinstance(fallbacks, list) and not model.get("helper_fallbacks"):
        helpers = [_find_helper(model, name) for name in fallbacks if isinstance(name, str)]
        model["helper_fallbacks"] = [
            name for name in dict.fromkeys(helpers) if name != model["helper"]
        ]


def _find_helper(model: dict[str, Any], chat: str) -> Any:
    """Return the small model of a chat model's server, or the chat model itself."""
    server, _, name = chat.partition("/")
    servers = get_table(model, "servers")
    small = get_table(servers, server).get("helper")
    if small:
        return f"{server}/{small}"
    if name and server in servers:
        return chat
    return get_table(servers, DEFAULT_SERVER).get("helper")


def _override_options(options: dict[str, Any], own_options: Mapping[str, Any]) -> None:
    """Override options in place. Tables are merged key by key."""
    for name, value in own_options.items():
        if isinstance(value, dict) and isinstance(options.get(name), dict):
            _override_options(options[name], value)
        else:
            options[name] = value


def _check_tokens(options: Mapping[str, Any]) -> list[str]:
    """Return a problem for each platform that is turned on without a token."""
    problems = []
    for name in PLATFORMS:
        token_field = f"{name}_token"
        if get_table(options, name).get("enabled") is True and token_field not in options:
            problems.append(
                f"{name}.enabled: is true, but there is no token; "
                f"set {ENVIRONMENT[token_field]} in {SECRETS_FILE} or in the environment"
            )
    return problems


def _describe_problem(detail: Any) -> str:
    """Return one of pydantic's errors as ``dotted.path: explanation``."""
    first, *other_parts = detail["loc"]
    path = ENVIRONMENT.get(first, first)
    for part in other_parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part != "[key]":
            path += f".{part}"
    error_type = detail["type"]
    context = detail.get("ctx", {})
    if error_type == "literal_error":
        choices = str(context["expected"]).replace("'", '"')
        # TOML writes booleans in lower case.
        choices = re.sub("True|False", lambda match: match[0].lower(), choices)
        return f"{path}: should be {choices}"
    template = tomllib.loads(PROBLEMS.read_text(encoding="utf-8")).get(error_type)
    if error_type == "extra_forbidden":
        suggestion = _suggest_option(path)
        if suggestion:
            return f"{path}: isn't a known option; did you mean {suggestion}?"
    if template:
        return f"{path}: {template.format(path=path, **context)}"
    return f"{path}: {str(detail['msg']).removeprefix('Input ')}"


def _suggest_option(path: str) -> str:
    """Return the option that a person probably meant instead of an unknown one, or ""."""
    known_paths = list(list_option_paths(load_default_options()))
    table, _, name = path.rpartition(".")
    group = table.rpartition(".")[0]
    if group == "model.servers" and table not in known_paths:
        # A custom server has the same options as the known ones.
        similar = find_similar_name(name, list(ModelServer.model_fields))
        return f"{table}.{similar}" if similar else ""
    return suggest_name(path, known_paths)


def _advise_server(model: Mapping[str, Any]) -> str:
    """Return advice if a chat model without a server is named like one of another server, or ""."""
    chat = model.get("chat")
    if not isinstance(chat, str) or "/" in chat or chat.startswith("claude"):
        return ""
    family = chat.partition("-")[0].lower()
    for name, server in get_table(model, "servers").items():
        if name != DEFAULT_SERVER and str(server.get("chat", "")).partition("-")[0] == family:
            return (
                f"{chat} is asked at Anthropic, because no server is named; "
                f'if you mean that of {name}, write chat = "{name}/{chat}".'
            )
    return ""
