"""Defines the options of models and their prices: the sections [model] and [usage].

`config/settings.py` reads the options. This module defines their types and the methods that depend
only on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from config.field_types import (
    Amount,
    Count,
    KeyVariable,
    ModelServerName,
    Month,
    OptionalWebAddress,
    Seconds,
    check_model_name,
)
from config.locating import find_similar_name

# The server for model names without a server.
DEFAULT_SERVER = "anthropic"
CacheLife = Literal["5m", "1h"]
# How much a model thinks before it answers: a level, or a number of tokens. "": its default.
Level = Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max"]
MIN_BUDGET_TOKENS = 1024
MAX_BUDGET_TOKENS = 10**6


def _check_level(effort: object) -> object:
    """Return a level of thinking or a number of tokens if it's valid.

    The texts are in problems.toml.
    """
    if isinstance(effort, int) and not isinstance(effort, bool):
        is_valid = MIN_BUDGET_TOKENS <= effort <= MAX_BUDGET_TOKENS
    else:
        is_valid = effort in get_args(Level)
    if not is_valid:
        levels = ", ".join(f'"{level}"' for level in get_args(Level) if level)
        details = {"levels": levels, "minimum": MIN_BUDGET_TOKENS}
        raise PydanticCustomError("effort", "{levels}", details)
    return effort


Effort = Annotated[Level | int, BeforeValidator(_check_level)]
# What a model may be unable to use.
Ability = Literal["tools", "pictures", "effort"]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _refuse_password(url: str) -> str:
    """Raise ValueError if an address contains a name or a password, because addresses are shown."""
    if "@" in urlsplit(url).netloc:
        raise ValueError("has a password in it; leave it out, and name a variable with it in `key`")
    return url


class ModelServer(_Section):
    """A section [model.servers.NAME]: a server with models that are called "NAME/model"."""

    # The form of the server's API: that of Anthropic or that of OpenAI.
    api: Literal["messages", "chat-completions"]
    url: Annotated[OptionalWebAddress, AfterValidator(_refuse_password)]
    key: KeyVariable = ""
    # The page where people get a key.
    key_page: OptionalWebAddress = ""
    # A model of this server to begin with, for the documentation and the setup.
    chat: str = ""
    # A small model of this server. If the settings name no helper model, this is the helper model.
    helper: str = ""
    # Whether the server caches the beginning of a conversation and charges less for it.
    caches: bool = False
    # The beginnings of model names whose server caches only marked parts of a prompt.
    cache_breakpoints: Annotated[tuple[str, ...], Field(strict=False)] = ()
    # Abilities that all models of this server lack.
    lacks: Annotated[tuple[Ability, ...], Field(strict=False)] = ()
    # The models that replace retired ones, by the beginning of the retired model's name.
    successors: Mapping[str, str] = {}


def _check_server(name: str, info: ValidationInfo) -> str:
    """Check a model's name and the server in front of it. The texts are in problems.toml."""
    if not name.strip():
        raise PydanticCustomError("no_model", "{name}", {"name": name})
    server, slash, model = name.partition("/")
    # Names of Anthropic's models have no spaces. Those of another server may.
    check_model_name(name, may_have_spaces=bool(slash))
    servers = info.data.get("servers")
    if not slash or servers is None:
        return name
    if server not in servers:
        similar = find_similar_name(server, list(servers))
        kind = "similar_server" if similar else "unknown_server"
        details = {"server": server, "model": model, "similar": similar, "name": name}
        raise PydanticCustomError(kind, "{name}", details)
    if not model:
        raise PydanticCustomError("no_model_name", "{server}", {"server": server})
    return name


ModelName = Annotated[str, AfterValidator(_check_server)]


class ModelOptions(_Section):
    # The names of models are checked against the servers, so these come first.
    servers: Mapping[ModelServerName, ModelServer]
    chat: ModelName
    # The models that answer, in this order, if the chat model is unreachable.
    fallbacks: Annotated[tuple[ModelName, ...], Field(strict=False)]
    # Further models that `/model` offers.
    choices: Annotated[tuple[ModelName, ...], Field(strict=False)]
    helper: ModelName
    # The models to ask, in this order, if the helper model doesn't answer.
    helper_fallbacks: Annotated[tuple[ModelName, ...], Field(strict=False)]
    # Further helper models that `/model helper` offers.
    helper_choices: Annotated[tuple[ModelName, ...], Field(strict=False)]
    max_tokens: Count
    window_tokens: Annotated[int, Field(ge=8000, le=10**8)]
    windows: Mapping[str, Annotated[int, Field(ge=8000, le=10**8)]]
    max_rounds: Annotated[int, Field(ge=1, le=1000)]
    max_helper_calls: Annotated[int, Field(ge=0, le=10_000)]
    max_helper_tokens: Annotated[int, Field(ge=0, le=10**9)]
    cache: CacheLife
    effort: Effort
    # The effort of single models, by name.
    efforts: Mapping[ModelName, Effort]
    # The abilities that single models lack, by name.
    lacks: Mapping[ModelName, Annotated[tuple[Ability, ...], Field(strict=False)]]
    tool_timeout_s: Seconds
    tries: Annotated[int, Field(ge=1, le=100)]
    patience_s: Seconds

    @property
    def chat_models(self) -> tuple[str, ...]:
        """The chat model and its fallbacks."""
        return (self.chat, *self.fallbacks)

    @property
    def offered_models(self) -> tuple[str, ...]:
        """The models that people may choose for a conversation, the chat model first."""
        return tuple(dict.fromkeys((*self.chat_models, *self.choices)))

    @property
    def offered_helpers(self) -> tuple[str, ...]:
        """The helper models that people may choose, the configured one first."""
        return tuple(dict.fromkeys((self.helper, *self.helper_choices)))

    @field_validator("effort", "efforts")
    @classmethod
    def _check_effort(cls, value: Any, info: ValidationInfo) -> Any:
        """Check budgets of thinking against the length of answers and the server's API."""
        efforts = value.values() if isinstance(value, Mapping) else (value,)
        max_tokens = info.data.get("max_tokens", 0)
        if any(isinstance(effort, int) and effort >= max_tokens for effort in efforts):
            raise ValueError("write fewer tokens than model.max_tokens, which includes them")
        servers = info.data.get("servers", {})
        for name, effort in value.items() if isinstance(value, Mapping) else ():
            server = servers.get(name.partition("/")[0])
            if isinstance(effort, int) and server is not None and server.api != "messages":
                raise ValueError(f'{name} takes a level such as "low", and no number of tokens')
        return value

    def effort_of(self, name: str) -> Effort:
        """Return how much a model thinks about an answer.

        `effort` applies to the models that answer, and `efforts` to any model.
        """
        default = self.effort if name in self.offered_models else ""
        return self.efforts.get(name, default)

    def known_lacks(self, name: str) -> frozenset[Ability]:
        """Return the abilities that a model lacks according to the settings."""
        server, _ = self.split_name(name)
        return frozenset((*self.servers[server].lacks, *self.lacks.get(name, ())))

    def has_all_abilities(self, name: str) -> bool:
        """Return whether the settings give a model all abilities, despite earlier refusals."""
        return self.lacks.get(name) == ()

    def find_successor(self, name: str) -> str:
        """Return the model that replaces a retired model, or "" if the settings name none."""
        server, model = self.split_name(name)
        successors = self.servers[server].successors
        beginnings = [start for start in successors if model.startswith(start)]
        if not beginnings:
            return ""
        successor = successors[max(beginnings, key=len)]
        if successor == model:
            return ""
        return successor if "/" not in name else f"{server}/{successor}"

    def find_substitute(self, name: str) -> str:
        """Return the model to ask if this one doesn't answer, or "" if the settings name none."""
        if name in self.offered_models:
            models = self.chat_models
        else:
            models = (self.helper, *self.helper_fallbacks)
        return next((model for model in models if model != name), "")

    def keep_name(self, name: str) -> str:
        """Return the model for the continuation of a conversation with the model `name`.

        A model that the settings no longer offer is replaced by the chat model.
        """
        return name if name in self.offered_models else self.chat

    def split_name(self, name: str) -> tuple[str, str]:
        """Return the server of a model and the model's name on that server.

        A name without a server, such as "claude-sonnet-5-5", belongs to the server "anthropic".
        """
        server, _, model = name.partition("/")
        return (server, model) if model and server in self.servers else (DEFAULT_SERVER, name)


class Price(_Section):
    """The prices of a million tokens of one model, and of a thousand web searches."""

    input: Amount
    output: Amount
    # For a cache life of five minutes.
    cache_write: Amount
    # For a cache life of one hour. None if the price is the same.
    cache_write_hour: Amount | None = None
    cache_read: Amount
    # For `search = "anthropic"` in `[web_tools]`.
    web_search: Amount = 0.0
    # The month in which the price was looked up: "2026-11".
    date: Month = ""


class UsageOptions(_Section):
    currency: Annotated[str, Field(min_length=1, max_length=10)]
    # The owner is informed if a month will probably cost more. 0 turns this off.
    month_line: Amount = 0.0
    prices: Mapping[str, Price]
