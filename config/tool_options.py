"""Defines the options of tools that use external services: the web, MCP servers and calendars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from config.field_types import KeyVariable, OptionalWebAddress

SECTION = ConfigDict(frozen=True, extra="forbid", strict=True)
# The longest time that a call of an MCP server may take.
MAX_TIMEOUT_S = 600.0


class WebToolOptions(BaseModel):
    model_config = SECTION

    fetch: bool
    fetch_with: Literal["mneme", "anthropic"]
    search: Literal["", "searxng", "brave", "anthropic"]
    searxng_url: OptionalWebAddress
    # The name of an environment variable with the key of Brave Search.
    key: KeyVariable
    max_calls_per_day: Annotated[int, Field(ge=0)]
    timeout_s: Annotated[float, Field(gt=0, le=60)]

    @field_validator("searxng_url")
    @classmethod
    def _check_searxng_url(cls, url: str, info: ValidationInfo) -> str:
        if info.data.get("search") == "searxng" and not url:
            raise ValueError("write the address of the SearXNG server")
        return url


SourceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,30}$")]
EffectName = Literal["read", "add", "change", "weaken", "remove", "plan", "spend", "send"]


class McpServer(BaseModel):
    model_config = SECTION

    # A program to start, with its arguments and further environment variables. Otherwise, `url` is
    # set.
    command: str = ""
    args: Annotated[tuple[str, ...], Field(strict=False)] = ()
    env: Mapping[str, str] = Field(default={}, repr=False)
    # The folder in which the program starts. Empty for the folder in which Mneme was started.
    cwd: str = ""
    # A web address, with further headers. ${NAME} in `args`, `url` or a value of `env` or
    # `headers` stands for a variable of secrets.env or the environment.
    url: OptionalWebAddress = ""
    headers: Mapping[str, str] = Field(default={}, repr=False)
    enabled: bool = True
    # The names of the tools that the model may use. Empty for all.
    tools: Annotated[tuple[str, ...], Field(strict=False)] = ()
    effects: Mapping[str, EffectName] = {}
    people: Literal["owner", "everyone"] = "owner"
    timeout_s: Annotated[float, Field(gt=0, le=MAX_TIMEOUT_S)] = 30.0
    max_result_chars: Annotated[int, Field(ge=200, le=30_000)] = 12_000

    @model_validator(mode="after")
    def _check_place(self) -> McpServer:
        if bool(self.command) == bool(self.url):
            raise ValueError("write either a command or a url")
        return self


class CalendarSource(BaseModel):
    model_config = SECTION

    # A feed to read, or the address of a CalDAV account. ${NAME} in it stands for a variable,
    # because the address of a private feed is a secret.
    url: Annotated[str, Field(pattern=r"^(https?://|webcals?://|\$\{[A-Z])", repr=False)]
    kind: Literal["ics", "caldav"] = "ics"
    user: str = ""
    # The name of an environment variable with the password.
    key: KeyVariable = ""
    # How long before each event the owner is reminded. 0 for no reminders.
    remind_minutes: Annotated[int, Field(ge=0, le=1440)] = 0
    timeout_s: Annotated[float, Field(gt=0, le=60)] = 15.0
