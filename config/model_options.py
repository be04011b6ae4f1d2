"""The options of models and their prices: the sections [model] and [usage].

`config/settings.py` reads them; this module has their types and what follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
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
    Name,
    OptionalWebAddress,
    Seconds,
)
from config.locating import find_similar_name

# The server of models whose names have no server.
DEFAULT_SERVER = "anthropic"
CacheLife = Literal["5m", "1h"]
# How much a model thinks before it answers: a level, or a number of tokens. "": its default.
Effort = (
    Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max"]
    | Annotated[int, Field(ge=1024, le=10**6)]
)
# What a model may be unable to use.
Ability = Literal["tools", "pictures", "effort"]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ModelServer(_Section):
    """A section [model.servers.NAME]: a server whose models are called "NAME/model"."""

    # The form of the server's API: the one of Anthropic or the one of OpenAI.
    api: Literal["messages", "chat-completions"]
    url: OptionalWebAddress
    key: KeyVariable = ""
    # The page where people get a key.
    key_page: OptionalWebAddress = ""
    # A model of this server to begin with, for the documentation and the setup.
    chat: str = ""
    # A small model of this server. It is the helper model if the settings name none.
    helper: str = ""
    # Whether the server keeps the beginning of a conversation, and charges less for it.
    caches: bool = False
    # The beginnings of the names of models of which the server keeps only what is marked.
    cache_marks: Annotated[tuple[str, ...], Field(strict=False)] = ()
    # What no model of this server can use.
    lacks: Annotated[tuple[Ability, ...], Field(strict=False)] = ()
    # The models that replace retired ones, by the beginning of the retired model's name.
    successors: Mapping[str, str] = {}


def _check_server(name: str, info: ValidationInfo) -> str:
    """Check the server in front of a model's name. The texts are in problems.toml."""
    server, slash, model = name.partition("/")
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


ModelName = Annotated[Name, AfterValidator(_check_server)]


class ModelOptions(_Section):
    # The names of models are checked against the servers, so these come first.
    servers: Mapping[ModelServerName, ModelServer]
    chat: ModelName
    # The models that answer instead, in this order, if the chat model is out of reach.
    fallbacks: Annotated[tuple[ModelName, ...], Field(strict=False)]
    # Further models that `/model` offers.
    choices: Annotated[tuple[ModelName, ...], Field(strict=False)]
    helper: ModelName
    # The models that help instead, in this order, if the helper model doesn't answer.
    helper_fallbacks: Annotated[tuple[ModelName, ...], Field(strict=False)]
    # Further helper models that `/model helper` offers.
    helper_choices: Annotated[tuple[ModelName, ...], Field(strict=False)]
    max_tokens: Count
    window_tokens: Annotated[int, Field(ge=8000, le=10**8)]
    windows: Mapping[str, Annotated[int, Field(ge=8000, le=10**8)]]
    max_rounds: Annotated[int, Field(gt=0, le=1000)]
    max_helper_calls: Annotated[int, Field(ge=0, le=10_000)]
    max_helper_tokens: Annotated[int, Field(ge=0, le=10**9)]
    cache: CacheLife
    effort: Effort
    # The effort of single models, by name.
    efforts: Mapping[str, Effort]
    # What single models can't use, by name.
    lacks: Mapping[str, Annotated[tuple[Ability, ...], Field(strict=False)]]
    tool_timeout_s: Seconds
    tries: Annotated[int, Field(gt=0, le=100)]
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
        """The helper models that people may choose, the one of the settings first."""
        return tuple(dict.fromkeys((self.helper, *self.helper_choices)))

    @field_validator("effort", "efforts")
    @classmethod
    def _check_effort(cls, value: Any, info: ValidationInfo) -> Any:
        efforts = value.values() if isinstance(value, Mapping) else (value,)
        max_tokens = info.data.get("max_tokens", 0)
        if any(isinstance(effort, int) and effort >= max_tokens for effort in efforts):
            raise ValueError("write fewer tokens than model.max_tokens, which includes them")
        return value

    def effort_of(self, name: str) -> Effort:
        """Return how much a model thinks about an answer.

        `effort` applies to the models that answer, and `efforts` to any model.
        """
        default = self.effort if name in self.offered_models else ""
        return self.efforts.get(name, default)

    def known_lacks(self, name: str) -> frozenset[Ability]:
        """Return what a model can't use, as far as the settings say."""
        server, _ = self.split_name(name)
        return frozenset((*self.servers[server].lacks, *self.lacks.get(name, ())))

    def forgets_lacks(self, name: str) -> bool:
        """Return True if the settings say that a model lacks nothing, whatever was learnt."""
        return self.lacks.get(name) == ()

    def find_successor(self, name: str) -> str:
        """Return the model that replaces a retired model, or "" if the settings don't say."""
        server, model = self.split_name(name)
        successors = self.servers[server].successors
        beginnings = [start for start in successors if model.startswith(start)]
        if not beginnings:
            return ""
        successor = successors[max(beginnings, key=len)]
        if successor == model:
            return ""
        return successor if "/" not in name else f"{server}/{successor}"

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
    """The prices of a million tokens of one model."""

    input: Amount
    output: Amount
    # For a cache life of five minutes.
    cache_write: Amount
    # For a cache life of one hour; None if the price is the same.
    cache_write_hour: Amount | None = None
    cache_read: Amount
    # The month in which the price was looked up: "2026-11".
    date: Annotated[str, Field(pattern=r"^(\d{4}-(0[1-9]|1[0-2]))?$")] = ""


class UsageOptions(_Section):
    currency: Annotated[str, Field(min_length=1, max_length=10)]
    # The owner is told if a month will probably cost more. 0 means no line.
    month_line: Amount = 0.0
    prices: Mapping[str, Price]
